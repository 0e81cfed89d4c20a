//! The profiles that come with zenkai: the files in `profiles/` at the root of the repository.

/// Each profile's name and the text of its file. Without an installed profile of the same name it is used under its
/// bare name, always under `zenkai/NAME`.
pub static BUILTIN: &[(&str, &str)] = &[
    ("balanced", include_str!("../../../../profiles/balanced.conf")),
    ("database", include_str!("../../../../profiles/database.conf")),
    ("hpc-compute", include_str!("../../../../profiles/hpc-compute.conf")),
    ("latency-performance", include_str!("../../../../profiles/latency-performance.conf")),
    ("network-latency", include_str!("../../../../profiles/network-latency.conf")),
    ("network-throughput", include_str!("../../../../profiles/network-throughput.conf")),
    ("powersave", include_str!("../../../../profiles/powersave.conf")),
    ("storage-server", include_str!("../../../../profiles/storage-server.conf")),
    ("throughput-performance", include_str!("../../../../profiles/throughput-performance.conf")),
    ("virtual-guest", include_str!("../../../../profiles/virtual-guest.conf")),
    ("virtual-host", include_str!("../../../../profiles/virtual-host.conf")),
    ("web-server", include_str!("../../../../profiles/web-server.conf")),
    ("xen-dom0", include_str!("../../../../profiles/xen-dom0.conf")),
];
