//! Checks of the net subsystem, worst first.

mod net_bond_degraded;
mod net_bond_mode;
mod net_carrier_flapping;
mod net_channels_below_cpus;
mod net_cloud_allowance_exceeded;
mod net_coalesce_high;
mod net_coalesce_zero;
mod net_conntrack_full;
mod net_crc_errors;
mod net_eee_on;
mod net_emulated_driver;
mod net_half_duplex;
mod net_link_slow;
mod net_listen_overflows;
mod net_mtu_mismatch;
mod net_offload_off;
mod net_pause_frames;
mod net_promiscuous;
mod net_remote_node_irqs;
mod net_retransmits;
mod net_ring_small;
mod net_rps_missing;
mod net_slow_start_after_idle;
mod net_softnet_drops;
mod net_softnet_squeezed;
mod net_somaxconn_small;
mod net_tcp_buffers_small;
mod net_tcp_features_off;
mod net_tcp_memory_pressure;
mod net_tx_timeouts;
mod net_udp_buffer_errors;
pub(in crate::checks) mod shared;
#[cfg(test)]
pub(in crate::checks) mod shared_testing;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &net_half_duplex::CHECK,
    &net_emulated_driver::CHECK,
    &net_conntrack_full::CHECK,
    &net_tcp_features_off::CHECK,
    &net_link_slow::CHECK,
    &net_cloud_allowance_exceeded::CHECK,
    &net_tx_timeouts::CHECK,
    &net_ring_small::CHECK,
    &net_crc_errors::CHECK,
    &net_carrier_flapping::CHECK,
    &net_bond_degraded::CHECK,
    &net_pause_frames::CHECK,
    &net_softnet_drops::CHECK,
    &net_offload_off::CHECK,
    &net_listen_overflows::CHECK,
    &net_retransmits::CHECK,
    &net_udp_buffer_errors::CHECK,
    &net_tcp_memory_pressure::CHECK,
    &net_tcp_buffers_small::CHECK,
    &net_channels_below_cpus::CHECK,
    &net_softnet_squeezed::CHECK,
    &net_coalesce_zero::CHECK,
    &net_coalesce_high::CHECK,
    &net_eee_on::CHECK,
    &net_promiscuous::CHECK,
    &net_somaxconn_small::CHECK,
    &net_slow_start_after_idle::CHECK,
    &net_mtu_mismatch::CHECK,
    &net_remote_node_irqs::CHECK,
    &net_bond_mode::CHECK,
    &net_rps_missing::CHECK,
];
