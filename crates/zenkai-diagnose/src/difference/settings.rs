//! What makes the second machine like the first one, as a tuned profile: the differences that can be changed now.
//!
//! Values are copied as the first machine's files show them, into the files of the device that answers to it here. What is
//! written comes from a file that somebody sent, so only plain values are taken: no variables, no functions, no globs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use zenkai_host::{EthtoolRequest, Host, Knob, Query, is_hidden, value};

use super::{Comparison, Difference, Suspicion, rules};

/// A profile, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The file.
    pub text: String,
    /// How many values it sets.
    pub carried: usize,
    /// What can be changed now but is not carried, with the reason.
    pub left: Vec<(String, String)>,
}

/// How a fact is set.
#[derive(Debug, Clone, Copy)]
enum Carry {
    /// By the attribute it was read from.
    Attribute,
    /// The same, if both machines have the same limit in this file beside it.
    SameLimit(&'static str),
    /// By an option of the cpu unit, if all CPUs of the first machine show the same.
    Cpu(&'static str),
    /// By an option of the disk unit.
    Disk(&'static str),
    /// By an option of the net unit; the name is that of the parameter.
    Net(&'static str, EthtoolRequest),
    /// By the queue length of an interface.
    QueueLength,
}

/// What can be carried over. Not here although it can be changed: what takes CPUs away, what the network or a file
/// system must agree with, limits of power, control groups, interrupts (irqbalance moves them), services.
const CARRIED: &[(&str, Carry)] = &[
    ("block.disks.*.md.group_thread_cnt", Carry::Attribute),
    ("block.disks.*.md.stripe_cache_size", Carry::Attribute),
    ("block.disks.*.queue.add_random", Carry::Attribute),
    ("block.disks.*.queue.iostats", Carry::Attribute),
    ("block.disks.*.queue.max_sectors_kb", Carry::SameLimit("max_hw_sectors_kb")),
    ("block.disks.*.queue.nomerges", Carry::Attribute),
    ("block.disks.*.queue.nr_requests", Carry::Attribute),
    ("block.disks.*.queue.read_ahead_kb", Carry::Disk("readahead")),
    ("block.disks.*.queue.rq_affinity", Carry::Attribute),
    ("block.disks.*.queue.scheduler.current", Carry::Disk("elevator")),
    ("block.disks.*.queue.wbt_lat_usec", Carry::Attribute),
    ("cpu.frequency.boost", Carry::Cpu("boost")),
    ("cpu.frequency.energy_perf_bias", Carry::Cpu("energy_perf_bias")),
    ("cpu.frequency.intel_pstate.hwp_dynamic_boost", Carry::Attribute),
    ("cpu.frequency.intel_pstate.max_perf_percent", Carry::Cpu("max_perf_pct")),
    ("cpu.frequency.intel_pstate.min_perf_percent", Carry::Cpu("min_perf_pct")),
    ("cpu.frequency.intel_pstate.no_turbo", Carry::Cpu("no_turbo")),
    ("cpu.frequency.policies.*.energy_performance_preference", Carry::Cpu("energy_performance_preference")),
    ("cpu.frequency.policies.*.governor", Carry::Cpu("governor")),
    ("cpu.frequency.policies.*.max_khz", Carry::SameLimit("cpuinfo_max_freq")),
    ("cpu.frequency.policies.*.min_khz", Carry::SameLimit("cpuinfo_min_freq")),
    ("cpu.frequency.uncore.*.max_khz", Carry::SameLimit("initial_max_freq_khz")),
    ("cpu.frequency.uncore.*.min_khz", Carry::SameLimit("initial_min_freq_khz")),
    ("kernel.clock_source.current", Carry::Attribute),
    ("memory.ksm.merge_across_nodes", Carry::Attribute),
    ("memory.ksm.pages_to_scan", Carry::Attribute),
    ("memory.ksm.run", Carry::Attribute),
    ("memory.ksm.sleep_ms", Carry::Attribute),
    ("memory.swap.zswap.compressor", Carry::Attribute),
    ("memory.swap.zswap.enabled", Carry::Attribute),
    ("memory.swap.zswap.max_pool_percent", Carry::Attribute),
    ("memory.transparent_huge_pages.defrag.current", Carry::Attribute),
    ("memory.transparent_huge_pages.enabled.current", Carry::Attribute),
    ("memory.transparent_huge_pages.khugepaged.defrag", Carry::Attribute),
    ("memory.transparent_huge_pages.khugepaged.max_ptes_none", Carry::Attribute),
    ("memory.transparent_huge_pages.khugepaged.pages_to_scan", Carry::Attribute),
    ("memory.transparent_huge_pages.khugepaged.scan_sleep_ms", Carry::Attribute),
    ("memory.transparent_huge_pages.shmem_enabled.current", Carry::Attribute),
    ("memory.transparent_huge_pages.use_zero_page", Carry::Attribute),
    ("net.interfaces.*.hardware.ethtool.channels.combined", Carry::Net("combined", EthtoolRequest::Channels)),
    ("net.interfaces.*.hardware.ethtool.channels.rx", Carry::Net("rx", EthtoolRequest::Channels)),
    ("net.interfaces.*.hardware.ethtool.channels.tx", Carry::Net("tx", EthtoolRequest::Channels)),
    (
        "net.interfaces.*.hardware.ethtool.coalesce.adaptive_rx",
        Carry::Net("adaptive-rx", EthtoolRequest::Coalesce),
    ),
    (
        "net.interfaces.*.hardware.ethtool.coalesce.adaptive_tx",
        Carry::Net("adaptive-tx", EthtoolRequest::Coalesce),
    ),
    (
        "net.interfaces.*.hardware.ethtool.coalesce.rx_frames",
        Carry::Net("rx-frames", EthtoolRequest::Coalesce),
    ),
    ("net.interfaces.*.hardware.ethtool.coalesce.rx_us", Carry::Net("rx-usecs", EthtoolRequest::Coalesce)),
    (
        "net.interfaces.*.hardware.ethtool.coalesce.tx_frames",
        Carry::Net("tx-frames", EthtoolRequest::Coalesce),
    ),
    ("net.interfaces.*.hardware.ethtool.coalesce.tx_us", Carry::Net("tx-usecs", EthtoolRequest::Coalesce)),
    ("net.interfaces.*.hardware.ethtool.rings.rx", Carry::Net("rx", EthtoolRequest::Rings)),
    ("net.interfaces.*.hardware.ethtool.rings.tx", Carry::Net("tx", EthtoolRequest::Rings)),
    ("net.interfaces.*.tx_queue_len", Carry::QueueLength),
    ("numa.demotion_enabled", Carry::Attribute),
    ("pcie.aspm_policy.current", Carry::Attribute),
    ("power.platform_profile", Carry::Attribute),
];

/// Limits with two forms (mm/page-writeback.c, `dirty_ratio_handler()` and its sisters; mm/util.c).
const FORMS: [(&str, &str); 3] = [
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
];

/// Features of network cards are told apart by name, so their path is no fixed one.
const FEATURES: &str = "net.interfaces.*.hardware.ethtool.features.";

/// Kernel arguments that give up protection when they are taken over.
const PROTECTION: [&str; 9] = [
    "gather_data_sampling",
    "init_on_alloc",
    "init_on_free",
    "l1tf",
    "mds",
    "mitigations",
    "nopti",
    "spec_store_bypass_disable",
    "spectre_v2",
];

/// Sections with their options, in the order that they are applied in.
#[derive(Default)]
struct Draft {
    cpu: BTreeMap<&'static str, String>,
    disks: BTreeMap<String, BTreeMap<&'static str, String>>,
    cards: BTreeMap<String, BTreeMap<&'static str, Vec<String>>>,
    sysctl: BTreeMap<String, String>,
    sysfs: BTreeMap<String, String>,
    arguments: Vec<String>,
    left: Vec<(String, String)>,
    carried: usize,
    allow_insecure: bool,
}

/// Whether a sysctl bears on what others may do or see.
pub fn bears_on_security(sysctl: &str) -> bool {
    rules::SECURITY.iter().any(|start| sysctl.starts_with(start))
}

/// The profile that makes the machine behind `b` like the one behind `a`, as far as that can be done now. What bears
/// on security is in it only if it is `allow_insecure`.
pub fn profile(a: &dyn Host, b: &dyn Host, comparison: &Comparison, allow_insecure: bool) -> Profile {
    let mut draft = Draft { allow_insecure, ..Draft::default() };
    let all = comparison.differences.iter().flat_map(|difference| {
        std::iter::once(difference).chain(&difference.facts).filter(|difference| !difference.path.is_empty())
    });
    for difference in all {
        draft.difference(a, b, difference);
    }
    draft.one_form(a);
    Profile { text: draft.text(comparison), carried: draft.carried, left: draft.left }
}

impl Draft {
    /// Of two forms of one limit the one that is not in force shows 0; setting it would zero the other.
    fn one_form(&mut self, a: &dyn Host) {
        for (one, other) in FORMS.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]) {
            if self.sysctl.get(one).is_none_or(|shown| shown != "0") {
                continue;
            }
            let shown = plain(a, &format!("/proc/sys/{}", other.replace('.', "/")));
            if shown.is_err() {
                let why = format!("it shows 0, and whether {other} is in force is not known");
                self.left.push((one.to_owned(), why));
            }
            // Both can be 0: then nothing at all is allowed, by either.
            let in_force = shown.map_or(true, |shown| shown != "0" || self.sysctl.contains_key(other));
            if in_force {
                self.sysctl.remove(one);
                self.carried -= 1;
            }
        }
    }

    fn difference(&mut self, a: &dyn Host, b: &dyn Host, difference: &Difference) {
        if let Some(key) = difference.path.strip_prefix("kernel.command_line.") {
            self.argument(key, difference);
            return;
        }
        for (from, to) in &difference.places {
            let result = match (from.strip_prefix("/proc/sys/"), carry(&difference.path)) {
                (Some(_), _) if difference.suspicion == Suspicion::Derived => {
                    Err("it follows from the size of the memory")
                }
                (Some(_), _) if rules::READ_ONLY.contains(&from.as_str()) => continue,
                (Some(tail), _) if difference.path.starts_with("sysctl.") && !is_carried(tail) => {
                    Err("no check knows what it does; set it by hand if you mean it")
                }
                (Some(tail), _) if from == to => self.sysctl(a, b, from, tail),
                (None, Some(carry)) => self.carried(a, b, carry, difference, from, to),
                _ => continue,
            };
            match result {
                Ok(()) => self.carried += 1,
                Err(why) => {
                    self.left.push((difference.what.clone(), why.to_owned()));
                    break;
                }
            }
        }
    }

    fn sysctl(&mut self, a: &dyn Host, b: &dyn Host, path: &str, tail: &str) -> Result<(), &'static str> {
        if value(b, &Knob::Attribute(path.to_owned())).is_err() {
            return Err("this machine does not have it");
        }
        let shown = plain(a, path)?;
        if tail == "net/ipv4/tcp_congestion_control" {
            let known = plain(b, "/proc/sys/net/ipv4/tcp_available_congestion_control");
            if known.is_ok_and(|known| !known.split(' ').any(|word| word == shown)) {
                return Err("this kernel has not loaded it");
            }
        }
        let name = tail.replace('.', "\0").replace('/', ".").replace('\0', "/");
        if !is_plain(&name) {
            return Err("its name is not plain");
        }
        if !self.allow_insecure && bears_on_security(&name) {
            return Err("it bears on security; set it by hand if you mean it");
        }
        self.sysctl.insert(name, shown);
        Ok(())
    }

    fn carried(
        &mut self,
        a: &dyn Host,
        b: &dyn Host,
        carry: Carry,
        difference: &Difference,
        from: &str,
        to: &str,
    ) -> Result<(), &'static str> {
        if !is_plain(to) {
            return Err("its path is not plain");
        }
        if difference.path.starts_with("block.disks.") && kind(from) != kind(to) {
            return Err("the disks are of different kinds");
        }
        match carry {
            Carry::Attribute => self.attribute(a, from, to),
            Carry::SameLimit(file) => match (beside(a, from, file), beside(b, to, file)) {
                (Some(left), Some(right)) if left == right => self.attribute(a, from, to),
                _ => Err("the hardware's own limits differ"),
            },
            Carry::Cpu(option) => {
                // What a governor means is the driver's business: `powersave` is the right one for intel_pstate and
                // the lowest clock for all others.
                if from.contains("/cpufreq/policy")
                    && beside(a, from, "scaling_driver") != beside(b, to, "scaling_driver")
                {
                    return Err("the clock drivers differ");
                }
                let shown = plain(a, from)?;
                // The option would also set the CPUs that do not differ here, to what they have on neither machine.
                if !of_all_cpus(a, from, &shown) {
                    return self.attribute(a, from, to);
                }
                self.cpu.insert(option, shown);
                Ok(())
            }
            Carry::Disk(option) => {
                let disk = to.strip_prefix("/sys/block/").and_then(|rest| rest.split('/').next());
                let disk = disk.ok_or("its disk has no name")?;
                let shown = plain(a, from)?;
                self.disks.entry(disk.to_owned()).or_default().insert(option, shown);
                Ok(())
            }
            Carry::Net(parameter, request) => self.parameter(b, parameter, request, difference, to),
            Carry::QueueLength => {
                let card = to.strip_prefix("/sys/class/net/").and_then(|rest| rest.split('/').next());
                let card = card.ok_or("its interface has no name")?.to_owned();
                let shown = plain(a, from)?;
                self.cards.entry(card).or_default().insert("txqueuelen", vec![shown]);
                Ok(())
            }
        }
    }

    fn attribute(&mut self, a: &dyn Host, from: &str, to: &str) -> Result<(), &'static str> {
        if !to.starts_with("/sys/") {
            return Err("it is no attribute");
        }
        self.sysfs.insert(to.to_owned(), plain(a, from)?);
        Ok(())
    }

    /// One parameter of a card; what the driver here does not have or not allow is left out.
    fn parameter(
        &mut self,
        b: &dyn Host,
        parameter: &'static str,
        request: EthtoolRequest,
        difference: &Difference,
        to: &str,
    ) -> Result<(), &'static str> {
        let card = to.split(' ').nth(1).ok_or("its interface has no name")?.to_owned();
        let asked = difference.a.value.as_deref().ok_or("the other machine does not say")?;
        let number = asked.split(' ').next().unwrap_or_default();
        let (parameter, asked) = match number {
            "yes" => (parameter, "on".to_owned()),
            "no" => (parameter, "off".to_owned()),
            number if number.parse::<u64>().is_ok() => (parameter, number.to_owned()),
            _ => return Err("its value is no number"),
        };
        let shown = value(b, &Knob::Ethtool { device: card.clone(), request })
            .map_err(|_| "the driver here does not offer it")?;
        let name = match request {
            EthtoolRequest::Features => {
                difference.path.strip_prefix(FEATURES).and_then(|rest| rest.strip_suffix(".active"))
            }
            _ => Some(parameter),
        };
        let name = name.filter(|name| is_plain(name)).ok_or("its name is not plain")?;
        let field =
            if request == EthtoolRequest::Features { name.to_owned() } else { name.replace('-', "_") };
        let known = shown
            .text()
            .unwrap_or_default()
            .split(' ')
            .any(|pair| pair.split_once('=').is_some_and(|(known, _)| known == field));
        if !known {
            return Err("the driver here does not let it be changed");
        }
        let limits = b.query(&Query::Ethtool { device: card.clone(), request }).ok();
        let most = limits.as_ref().and_then(|limits| limits.named(&format!("{field}_max")));
        if let (Some(most), Ok(number)) = (most, asked.parse::<u64>())
            && number > most
        {
            return Err("the card here allows less");
        }
        let option = match request {
            EthtoolRequest::Features => "features",
            EthtoolRequest::Rings => "ring",
            EthtoolRequest::Channels => "channels",
            _ => "coalesce",
        };
        self.cards.entry(card).or_default().entry(option).or_default().push(format!("{name} {asked}"));
        Ok(())
    }

    fn argument(&mut self, key: &str, difference: &Difference) {
        let given = |reading: &super::Reading| {
            let text = reading.value.clone().unwrap_or_default();
            (text != "not given").then_some(text)
        };
        let with = |value: &str| if value == "given" { key.to_owned() } else { format!("{key}={value}") };
        let line = match (given(&difference.a), given(&difference.b)) {
            (Some(value), _) if is_plain(&with(&value)) => {
                let risk = if PROTECTION.contains(&key) { "   (gives up protection)" } else { "" };
                format!("cmdline_{}=+{}{risk}", option_name(key), with(&value))
            }
            (None, Some(value)) if is_plain(&with(&value)) => {
                format!("(take `{}` away by hand: the other machine is started without it)", with(&value))
            }
            _ => return,
        };
        self.arguments.push(line);
    }

    fn text(&self, comparison: &Comparison) -> String {
        let mut text = format!(
            "# Makes this machine like {}, as far as that can be done while it runs.\n\
             # Look at it with `zenkai profile plan NAME`, and take away what you do not want.\n\n\
             [main]\nsummary=Settings of {}\n",
            harmless(&comparison.a),
            harmless(&comparison.a),
        );
        let mut section = |name: &str, lines: &mut dyn Iterator<Item = String>| {
            let mut lines = lines.peekable();
            if lines.peek().is_some() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "\n[{name}]");
                lines.for_each(|line| {
                    let _ = writeln!(text, "{line}");
                });
            }
        };
        section("cpu", &mut self.cpu.iter().map(|(option, value)| format!("{option}={value}")));
        let mut alike: BTreeMap<&BTreeMap<&str, String>, Vec<&str>> = BTreeMap::new();
        for (disk, options) in &self.disks {
            alike.entry(options).or_default().push(disk);
        }
        for (options, disks) in alike {
            let head = ["type=disk".to_owned(), format!("devices={}", disks.join(","))];
            let disk = disks.first().copied().unwrap_or_default();
            let options = options.iter().map(|(option, value)| format!("{option}={value}"));
            section(&format!("disk_{disk}"), &mut head.into_iter().chain(options));
        }
        for (card, options) in &self.cards {
            let head = ["type=net".to_owned(), format!("devices={card}")];
            let options = options.iter().map(|(option, values)| format!("{option}={}", values.join(" ")));
            section(&format!("net_{card}"), &mut head.into_iter().chain(options));
        }
        section("sysctl", &mut self.sysctl.iter().map(|(name, value)| format!("{name}={value}")));
        section("sysfs", &mut self.sysfs.iter().map(|(path, value)| format!("{path}={value}")));
        if !self.arguments.is_empty() {
            text.push_str(
                "\n# Kernel arguments act after a reboot, and a wrong one can keep the machine from booting; the boot menu\n\
                 # lets you edit them. Take the # away from what you want.\n# [bootloader]\n",
            );
            let unique: BTreeSet<&String> = self.arguments.iter().collect();
            for line in unique {
                let _ = writeln!(text, "# {line}");
            }
        }
        text
    }
}

/// Whether a sysctl that no fact tells of may be carried over.
fn is_carried(tail: &str) -> bool {
    let name = tail.replace('/', ".");
    rules::CARRIED_UNKNOWN.iter().any(|start| name.starts_with(start))
}

/// Whether every CPU, or clock policy, of a machine shows this where one of them does. What is no file of a CPU's is one
/// for all.
fn of_all_cpus(host: &dyn Host, path: &str, shown: &str) -> bool {
    let numbered = |name: &str, word: &str| {
        name.strip_prefix(word)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let found = [("/sys/devices/system/cpu/cpufreq", "policy"), ("/sys/devices/system/cpu", "cpu")]
        .into_iter()
        .find_map(|(dir, word)| {
            let (name, file) = path.strip_prefix(dir)?.strip_prefix('/')?.split_once('/')?;
            numbered(name, word).then_some((dir, word, file))
        });
    let Some((dir, word, file)) = found else { return true };
    let Ok(entries) = host.list(dir) else { return false };
    let mut others = entries.iter().filter(|entry| numbered(&entry.name, word));
    others.all(|entry| plain(host, &format!("{dir}/{}/{file}", entry.name)).is_ok_and(|other| other == shown))
}

/// What another file in the same folder shows.
fn beside(host: &dyn Host, path: &str, file: &str) -> Option<String> {
    let (dir, _) = path.rsplit_once('/')?;
    plain(host, &format!("{dir}/{file}")).ok()
}

/// What kind of disk an attribute belongs to: the driver's part of the name, as `sd` in `sda`.
fn kind(path: &str) -> &str {
    let disk = path.strip_prefix("/sys/block/").unwrap_or(path);
    let driver = if disk.starts_with("nvme") { 4 } else { 2 };
    disk.get(..driver).unwrap_or(disk)
}

fn carry(path: &str) -> Option<Carry> {
    if path.starts_with(FEATURES) && path.ends_with(".active") {
        return Some(Carry::Net("", EthtoolRequest::Features));
    }
    CARRIED.iter().find(|(known, _)| *known == path).map(|(_, carry)| *carry)
}

/// What a file shows, if a profile can say it.
fn plain(host: &dyn Host, path: &str) -> Result<String, &'static str> {
    let shown =
        value(host, &Knob::Attribute(path.to_owned())).map_err(|_| "the other machine does not show it")?;
    let text = shown.text().unwrap_or_default().replace('\t', " ");
    let text = text.trim();
    if text.is_empty() || !is_plain(text) { Err("its value is not plain") } else { Ok(text.to_owned()) }
}

/// Whether a text means itself in a profile: no variables, functions, globs, comments, quotes or line breaks.
fn is_plain(text: &str) -> bool {
    text.len() <= 200
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || " _.,:+-/=%".contains(letter))
}

/// A part of an option's name.
fn option_name(key: &str) -> String {
    key.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A name of the user's, in a comment.
fn harmless(name: &str) -> String {
    name.chars().filter(|letter| !is_hidden(*letter) && !"$#[]".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::is_carried;

    #[test]
    fn what_cannot_be_turned_back_is_not_carried() {
        for tail in
            ["net/ipv4/tcp_reordering", "vm/dirtytime_expire_seconds", "kernel/shmmax", "kernel/msgmnb"]
        {
            assert!(is_carried(tail), "{tail}");
        }
        for tail in [
            "kernel/hung_task_panic",
            "kernel/kexec_load_disabled",
            "kernel/modules_disabled",
            "kernel/panic",
            "kernel/shm_rmid_forced",
            "kernel/sysrq",
            "kernel/yama/ptrace_scope",
            "net/ipv4/conf/all/forwarding",
            "net/ipv6/conf/all/disable_ipv6",
            "net/netfilter/nf_conntrack_helper",
            "vm/nr_hugepages",
            "vm/panic_on_oom",
        ] {
            assert!(!is_carried(tail), "{tail}");
        }
    }
}
