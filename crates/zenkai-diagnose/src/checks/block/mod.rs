//! Checks of the block subsystem, worst first.

mod block_merges_off;
mod block_partition_misaligned;
mod block_queue_depth_one;
mod block_read_ahead_off;
mod block_read_ahead_unfit;
mod block_requests_small;
mod block_rotational_flag_wrong;
mod block_scheduler_unfit;
mod block_stack_read_ahead_small;
mod block_write_cache_off;
mod block_write_throttling;
mod lvm_snapshot_left;
mod md_degraded;
mod md_resync_running;
mod md_single_writer;
mod md_stripe_cache_small;
mod mount_discard;
mod mount_geometry_unfit;
mod mount_nearly_full;
mod mount_strictatime;
mod mount_sync;
mod nvme_controller_down;
mod nvme_queues_few;
mod nvme_sleeps;
mod sas_link_slow;
mod sas_uplink_oversubscribed;
mod sata_link_slow;
mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &nvme_controller_down::CHECK,
    &md_degraded::CHECK,
    &mount_sync::CHECK,
    &lvm_snapshot_left::CHECK,
    &sata_link_slow::CHECK,
    &sas_link_slow::CHECK,
    &sas_uplink_oversubscribed::CHECK,
    &md_resync_running::CHECK,
    &block_queue_depth_one::CHECK,
    &block_partition_misaligned::CHECK,
    &mount_nearly_full::CHECK,
    &block_scheduler_unfit::CHECK,
    &nvme_queues_few::CHECK,
    &mount_geometry_unfit::CHECK,
    &mount_discard::CHECK,
    &mount_strictatime::CHECK,
    &block_stack_read_ahead_small::CHECK,
    &block_merges_off::CHECK,
    &block_rotational_flag_wrong::CHECK,
    &block_requests_small::CHECK,
    &block_write_cache_off::CHECK,
    &block_read_ahead_unfit::CHECK,
    &block_write_throttling::CHECK,
    &md_stripe_cache_small::CHECK,
    &md_single_writer::CHECK,
    &nvme_sleeps::CHECK,
    &block_read_ahead_off::CHECK,
];
