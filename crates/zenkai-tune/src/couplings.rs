//! Knobs that move when another one is turned.
//!
//! A transaction reads these before it writes, so that undoing can put them back, and so that it does not take the
//! kernel's own doing for somebody else's. Listed is what a write *may* change: only those that did change matter.

use std::collections::{BTreeSet, HashSet};

use zenkai_host::{EthtoolRequest, Host, Knob};

use crate::{plugins::glob_paths, profile::fnmatch};

/// Files that one write may change, by the file that is written. In the first column a `*` matches within one part of
/// the path, and `**/` at the start stands for any directory. In the second, `{1}` is the part that the first pattern
/// with a `*` matched, `{2}` the next, `{dir}` the directory of the written file, and the rest is a glob.
const COUPLED: &[(&str, &[&str])] = &[
    // mm/page-writeback.c, dirty_ratio_handler() and its three sisters: setting one form zeroes the other. Zero itself
    // is refused for the byte forms, so the way back is to set the ratio.
    ("/proc/sys/vm/dirty_bytes", &["/proc/sys/vm/dirty_ratio"]),
    ("/proc/sys/vm/dirty_ratio", &["/proc/sys/vm/dirty_bytes"]),
    ("/proc/sys/vm/dirty_background_bytes", &["/proc/sys/vm/dirty_background_ratio"]),
    ("/proc/sys/vm/dirty_background_ratio", &["/proc/sys/vm/dirty_background_bytes"]),
    // mm/util.c, overcommit_ratio_handler() and overcommit_kbytes_handler().
    ("/proc/sys/vm/overcommit_ratio", &["/proc/sys/vm/overcommit_kbytes"]),
    ("/proc/sys/vm/overcommit_kbytes", &["/proc/sys/vm/overcommit_ratio"]),
    // mm/khugepaged.c, set_recommended_min_free_kbytes(): huge pages raise it, and without them it is calculated anew.
    ("/sys/kernel/mm/transparent_hugepage/enabled", &["/proc/sys/vm/min_free_kbytes"]),
    // mm/hugetlb.c, set_max_huge_pages(): one pool under several names, shared out among the nodes.
    (
        "/proc/sys/vm/nr_hugepages",
        &[
            "/proc/sys/vm/nr_hugepages_mempolicy",
            "/sys/kernel/mm/hugepages/*/nr_hugepages",
            "/sys/devices/system/node/*/hugepages/*/nr_hugepages",
        ],
    ),
    (
        "/sys/kernel/mm/hugepages/*/nr_hugepages",
        &["/sys/devices/system/node/*/hugepages/*/nr_hugepages", "/proc/sys/vm/nr_hugepages"],
    ),
    (
        "/sys/devices/system/node/*/hugepages/*/nr_hugepages",
        &["/sys/kernel/mm/hugepages/*/nr_hugepages", "/proc/sys/vm/nr_hugepages"],
    ),
    // kernel/watchdog.c, proc_watchdog_common(): the first switches both of the others, and shows either.
    ("/proc/sys/kernel/watchdog", &["/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/soft_watchdog"]),
    ("/proc/sys/kernel/nmi_watchdog", &["/proc/sys/kernel/watchdog"]),
    ("/proc/sys/kernel/soft_watchdog", &["/proc/sys/kernel/watchdog"]),
    // net/ipv4/devinet.c, inet_forward_change(): all interfaces follow, and redirects are accepted the other way round.
    (
        "/proc/sys/net/ipv4/ip_forward",
        &["/proc/sys/net/ipv4/conf/*/forwarding", "/proc/sys/net/ipv4/conf/all/accept_redirects"],
    ),
    (
        "/proc/sys/net/ipv4/conf/all/forwarding",
        &[
            "/proc/sys/net/ipv4/conf/*/forwarding",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sys/net/ipv4/conf/all/accept_redirects",
        ],
    ),
    // net/ipv4/devinet.c, devinet_copy_dflt_conf(): interfaces where nobody set the value follow the default.
    ("/proc/sys/net/ipv4/conf/default/*", &["/proc/sys/net/ipv4/conf/*/{1}"]),
    // net/ipv6/addrconf.c, addrconf_fixup_forwarding(), addrconf_disable_ipv6(), addrconf_sysctl_proxy_ndp(), …: `all`
    // is written through to every interface.
    ("/proc/sys/net/ipv6/conf/all/*", &["/proc/sys/net/ipv6/conf/*/{1}"]),
    // net/ipv4/tcp_cong.c, tcp_set_default_congestion_control(): the default becomes one that everybody may use.
    ("/proc/sys/net/ipv4/tcp_congestion_control", &["/proc/sys/net/ipv4/tcp_allowed_congestion_control"]),
    // net/netfilter/nf_conntrack_core.c, nf_conntrack_set_hashsize(): one number under two names.
    ("/proc/sys/net/netfilter/nf_conntrack_buckets", &["/sys/module/nf_conntrack/parameters/hashsize"]),
    ("/sys/module/nf_conntrack/parameters/hashsize", &["/proc/sys/net/netfilter/nf_conntrack_buckets"]),
    // block/blk-mq-sched.c, blk_mq_init_sched(): another scheduler brings its own depth and tunables; block/blk-wbt.c,
    // wbt_disable_default() and wbt_enable_default(): BFQ switches write-back throttling off, and leaving it on again.
    ("**/queue/scheduler", &["{dir}/nr_requests", "{dir}/wbt_lat_usec", "{dir}/iosched/*"]),
    // block/mq-deadline.c and block/kyber-iosched.c, depth_updated: the depth of asynchronous requests follows.
    ("**/queue/nr_requests", &["{dir}/iosched/async_depth"]),
    // drivers/cpufreq/intel_pstate.c, intel_pstate_hwp_set(), and amd-pstate.c, amd_pstate_epp_set_policy(): the
    // governor `performance` sets the preference and refuses another; another governor brings the old one back.
    ("/sys/devices/system/cpu/cpufreq/*/scaling_governor", GOVERNOR),
    ("/sys/devices/system/cpu/*/cpufreq/scaling_governor", GOVERNOR),
    // drivers/cpufreq/cpufreq.c, store_boost(): all policies follow the machine; the limits follow the highest clock.
    (
        "/sys/devices/system/cpu/cpufreq/boost",
        &[
            "/sys/devices/system/cpu/cpufreq/*/boost",
            "/sys/devices/system/cpu/cpufreq/*/scaling_max_freq",
            "/sys/devices/system/cpu/cpufreq/*/scaling_min_freq",
        ],
    ),
    ("/sys/devices/system/cpu/cpufreq/*/boost", &["{dir}/scaling_max_freq", "{dir}/scaling_min_freq"]),
    // drivers/cpufreq/intel_pstate.c, store_no_turbo(): the global minimum is squeezed below the highest clock left,
    // and update_cpu_qos_request() moves every policy's limits.
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", PSTATE_LIMITS),
    ("/sys/devices/system/cpu/intel_pstate/max_perf_pct", PSTATE_LIMITS),
    ("/sys/devices/system/cpu/intel_pstate/min_perf_pct", PSTATE_LIMITS),
    // drivers/cpufreq/intel_pstate.c, intel_pstate_register_driver(): another mode starts from nothing.
    (
        "/sys/devices/system/cpu/intel_pstate/status",
        &[
            "/sys/devices/system/cpu/intel_pstate/max_perf_pct",
            "/sys/devices/system/cpu/intel_pstate/min_perf_pct",
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
            "/sys/devices/system/cpu/cpufreq/*/scaling_governor",
            "/sys/devices/system/cpu/cpufreq/*/energy_performance_preference",
            "/sys/devices/system/cpu/cpufreq/*/scaling_max_freq",
            "/sys/devices/system/cpu/cpufreq/*/scaling_min_freq",
        ],
    ),
    // drivers/cpufreq/amd-pstate.c, amd_pstate_change_driver_mode(): the same.
    (
        "/sys/devices/system/cpu/amd_pstate/status",
        &[
            "/sys/devices/system/cpu/cpufreq/*/scaling_governor",
            "/sys/devices/system/cpu/cpufreq/*/energy_performance_preference",
            "/sys/devices/system/cpu/cpufreq/*/scaling_max_freq",
            "/sys/devices/system/cpu/cpufreq/*/scaling_min_freq",
        ],
    ),
    // drivers/platform/x86/intel/uncore-frequency/uncore-frequency-tpmi.c, uncore_write(): a package hands its limit on
    // to the clusters on it.
    (
        "/sys/devices/system/cpu/intel_uncore_frequency/package_*/*",
        &["/sys/devices/system/cpu/intel_uncore_frequency/uncore*/{2}"],
    ),
    // kernel/cpu.c, __store_smt_control().
    ("/sys/devices/system/cpu/smt/control", &["/sys/devices/system/cpu/cpu*/online"]),
];

const GOVERNOR: &[&str] =
    &["{dir}/energy_performance_preference", "{dir}/scaling_max_freq", "{dir}/scaling_min_freq"];

const PSTATE_LIMITS: &[&str] = &[
    "/sys/devices/system/cpu/intel_pstate/max_perf_pct",
    "/sys/devices/system/cpu/intel_pstate/min_perf_pct",
    "/sys/devices/system/cpu/cpufreq/*/scaling_max_freq",
    "/sys/devices/system/cpu/cpufreq/*/scaling_min_freq",
];

/// The two forms of one limit: setting one zeroes the other.
const FORMS: [(&str, &str); 3] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    ("/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"),
    ("/proc/sys/vm/overcommit_kbytes", "/proc/sys/vm/overcommit_ratio"),
];

/// One name for the limit that this file is a form of; the sources are those of the table above.
pub(crate) fn limit(path: &str) -> Option<&'static str> {
    FORMS.iter().find(|(one, other)| path == *one || path == *other).map(|(_, ratio)| *ratio)
}

/// What turning knobs may change besides. Whether a knob is among it is a question of names alone, so that asking costs
/// no look at the machine. Sysctls count as files.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// What belongs to a card and is no file.
    knobs: HashSet<Knob>,
    /// Paths without a `*`.
    files: HashSet<String>,
    /// Paths with a `*` within a part, each with the path that moves them: no knob is moved by itself.
    globs: BTreeSet<(String, String)>,
}

impl Moves {
    /// What turning this one moves.
    pub(crate) fn by(knob: &Knob) -> Self {
        Self::by_any([knob])
    }

    /// What turning any of these moves.
    pub(crate) fn by_any<'k>(knobs: impl IntoIterator<Item = &'k Knob>) -> Self {
        let mut moves = Self::default();
        for knob in knobs {
            match knob.path() {
                Some(path) => moves.add_files(&path),
                None => moves.add_card(knob),
            }
        }
        moves
    }

    fn add_files(&mut self, path: &str) {
        let taken = COUPLED.iter().filter_map(|(pattern, others)| Some((taken(pattern, path)?, others)));
        for (parts, others) in taken {
            others.iter().for_each(|other| self.add(fill(other, path, &parts), path));
        }
    }

    /// Most drivers take the queues down to change their number or size: what is set per queue starts anew, and the
    /// link may go down and come back (net/core/dev.c, netif_set_real_num_tx_queues() resets XPS; the drivers'
    /// `set_ringparam` and `set_channels`).
    fn add_card(&mut self, knob: &Knob) {
        let Knob::Ethtool { device, request } = knob else { return };
        let other = |request| Knob::Ethtool { device: device.clone(), request };
        match request {
            EthtoolRequest::Rings => self.knobs.extend([other(EthtoolRequest::Coalesce)]),
            EthtoolRequest::Channels => {
                self.knobs.extend([other(EthtoolRequest::Rings), other(EthtoolRequest::Coalesce)]);
                for queue in ["rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus", "tx-*/xps_rxqs"] {
                    self.add(format!("/sys/class/net/{device}/queues/{queue}"), "");
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, path: String, by: &str) {
        // A path that leads out of its tree names nothing.
        if path == by || path.split('/').any(|part| part == "..") {
            return;
        }
        if path.contains('*') {
            self.globs.insert((path, by.to_owned()));
        } else {
            self.files.insert(path);
        }
    }

    /// Whether it is nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.knobs.is_empty() && self.files.is_empty() && self.globs.is_empty()
    }

    /// Whether this knob is among it.
    pub(crate) fn contains(&self, knob: &Knob) -> bool {
        match knob.path() {
            Some(path) => {
                let matches = |(glob, by): &(String, String)| *by != path && taken(glob, &path).is_some();
                self.files.contains(&path) || self.globs.iter().any(matches)
            }
            None => self.knobs.contains(knob),
        }
    }

    /// All of it that exists here.
    pub(crate) fn here(&self, host: &dyn Host) -> BTreeSet<Knob> {
        let globs = self.globs.iter().flat_map(|(glob, by)| {
            let paths = glob_paths(host, glob).into_iter();
            paths.filter(move |path| path != by)
        });
        let files = self.files.iter().flat_map(|file| glob_paths(host, file)).chain(globs);
        files.map(Knob::Attribute).chain(self.knobs.iter().cloned()).collect()
    }
}

/// The parts of the path that the pattern's parts with a `*` matched; `None` when the path is not of that form.
fn taken<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    if let Some(tail) = pattern.strip_prefix("**/") {
        return path.strip_suffix(tail)?.ends_with('/').then(Vec::new);
    }
    if pattern.split('/').count() != path.split('/').count() {
        return None;
    }
    let mut parts = Vec::new();
    for (pattern, part) in pattern.split('/').zip(path.split('/')) {
        if !pattern.contains('*') {
            if pattern != part {
                return None;
            }
        } else if fnmatch(part, pattern) {
            parts.push(part);
        } else {
            return None;
        }
    }
    Some(parts)
}

fn fill(other: &str, path: &str, parts: &[&str]) -> String {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let filled = other.replace("{dir}", dir);
    parts.iter().zip(1..).fold(filled, |text, (part, nth)| text.replace(&format!("{{{nth}}}"), part))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn disturbed(host: &FakeHost, knob: &Knob) -> Vec<String> {
        Moves::by(knob).here(host).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_other_form_of_a_limit() {
        let host = FakeHost::new(&[
            ("/proc/sys/vm/dirty_bytes", "0\n"),
            ("/proc/sys/vm/dirty_ratio", "20\n"),
            ("/proc/sys/vm/dirty_background_ratio", "10\n"),
        ]);
        assert_eq!(disturbed(&host, &Knob::Sysctl("vm.dirty_bytes".into())), ["/proc/sys/vm/dirty_ratio"]);
        assert!(disturbed(&host, &Knob::Sysctl("vm.dirty_background_ratio".into())).is_empty());
        assert!(disturbed(&host, &Knob::Sysctl("vm.swappiness".into())).is_empty());
    }

    #[test]
    fn only_the_same_queue() {
        let host = FakeHost::new(&[
            ("/sys/block/sda/queue/nr_requests", "64\n"),
            ("/sys/block/sda/queue/iosched/fifo_batch", "16\n"),
            ("/sys/block/sdb/queue/nr_requests", "64\n"),
        ]);
        assert_eq!(
            disturbed(&host, &Knob::Attribute("/sys/block/sda/queue/scheduler".into())),
            ["/sys/block/sda/queue/iosched/fifo_batch", "/sys/block/sda/queue/nr_requests"]
        );
        assert!(disturbed(&host, &Knob::Attribute("/sys/block/sda/nqueue/scheduler".into())).is_empty());
    }

    #[test]
    fn every_interface_follows_and_never_the_knob_itself() {
        let host = FakeHost::new(&[
            ("/proc/sys/net/ipv4/conf/default/rp_filter", "0\n"),
            ("/proc/sys/net/ipv4/conf/eth0/rp_filter", "0\n"),
            ("/proc/sys/net/ipv4/conf/eth0/log_martians", "0\n"),
        ]);
        assert_eq!(
            disturbed(&host, &Knob::Sysctl("net.ipv4.conf.default.rp_filter".into())),
            ["/proc/sys/net/ipv4/conf/eth0/rp_filter"]
        );
    }

    #[test]
    fn asking_needs_no_machine() {
        let queue = |file: &str| Knob::Attribute(format!("/sys/block/sda/queue/{file}"));
        let moves = Moves::by_any([&queue("scheduler"), &Knob::Sysctl("vm.dirty_bytes".into())]);
        for moved in
            [queue("nr_requests"), queue("iosched/fifo_batch"), Knob::Sysctl("vm.dirty_ratio".into())]
        {
            assert!(moves.contains(&moved), "{moved}");
        }
        for still in [
            queue("iosched/a/b"),
            queue("rotational"),
            Knob::Attribute("/sys/block/sdb/queue/nr_requests".into()),
        ] {
            assert!(!moves.contains(&still), "{still}");
        }
        assert!(Moves::by(&queue("rotational")).is_empty());
    }

    #[test]
    fn hostile_names_lead_nowhere() {
        let host = FakeHost::new(&[("/proc/sys/vm/dirty_ratio", "20\n")]);
        let knob = Knob::Attribute("/proc/sys/net/ipv4/conf/default/../../../vm/dirty_bytes".into());
        assert!(disturbed(&host, &knob).is_empty());
        assert!(disturbed(&host, &Knob::Attribute(String::new())).is_empty());
    }

    #[test]
    fn a_card_loses_what_is_set_per_queue() {
        let host = FakeHost::new(&[("/sys/class/net/eth0/queues/tx-0/xps_cpus", "3\n")]);
        let knob = Knob::Ethtool { device: "eth0".into(), request: EthtoolRequest::Channels };
        assert_eq!(
            disturbed(&host, &knob),
            ["/sys/class/net/eth0/queues/tx-0/xps_cpus", "eth0 rings", "eth0 coalesce"]
        );
    }
}
