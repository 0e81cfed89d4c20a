//! Hardware vulnerabilities and their mitigations (`Documentation/admin-guide/hw-vuln/`).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Observed, Reader,
    kernel::{Kernel, same_key},
    reader::join,
};

/// One file per vulnerability that this kernel knows of.
const DIR: &str = "/sys/devices/system/cpu/vulnerabilities";

/// The most files that are read; 6.18 has some twenty.
const ENTRY_LIMIT: usize = 128;

/// Arguments that turn mitigations up or down (`Documentation/admin-guide/kernel-parameters.txt`).
const ARGUMENTS: [&str; 33] = [
    "gather_data_sampling",
    "ibpb",
    "ibrs",
    "indirect_target_selection",
    "kpti",
    "kvm-intel.vmentry_l1d_flush",
    "kvm.nx_huge_pages",
    "l1d_flush",
    "l1tf",
    "mds",
    "mitigations",
    "mmio_stale_data",
    "nobarrier_nospec",
    "noibpb",
    "noibrs",
    "nopti",
    "nospec_store_bypass_disable",
    "nospectre_bhb",
    "nospectre_v1",
    "nospectre_v2",
    "pti",
    "reg_file_data_sampling",
    "retbleed",
    "spec_rstack_overflow",
    "spec_store_bypass_disable",
    "spectre_bhi",
    "spectre_v2",
    "spectre_v2_user",
    "srbds",
    "tsa",
    "tsx",
    "tsx_async_abort",
    "vmscape",
];

/// The switches that Red Hat's 7 and 8 kernels have in `/sys/kernel/debug/x86`.
const RED_HAT: [&str; 6] =
    ["ibpb_enabled", "ibrs_enabled", "mds_enabled", "pti_enabled", "retp_enabled", "ssbd_enabled"];

/// Features of the CPU are numbered 32 to a word (`arch/x86/include/asm/cpufeatures.h`); word 4 is CPUID leaf 1,
/// register ECX, and so will not change.
const FEATURE_PCID: u32 = 4 * 32 + 17;
/// Word 11 is Linux's own; this number has not changed since the feature came in 5.7.
const FEATURE_SPLIT_LOCK: u32 = 11 * 32 + 6;
/// Word 16 is CPUID leaf 7, register ECX.
const FEATURE_BUS_LOCK: u32 = 16 * 32 + 24;

/// Hardware vulnerabilities and their mitigations.
#[derive(Debug, Clone, Serialize)]
pub struct Vulnerabilities {
    /// Every vulnerability the kernel knows of, by file name.
    pub entries: Observed<BTreeMap<String, Observed<Vulnerability>>>,
    /// The arguments on the command line that turn mitigations up or down, as they were written.
    pub arguments: Observed<Vec<String>>,
    /// Red Hat's switches of kernels 3.10 and 4.18, by file name; only those that exist.
    pub red_hat: BTreeMap<String, Observed<String>>,
    /// Whether the CPU tags its address translations with a process (x86 PCID), which makes page-table isolation
    /// cheap.
    pub pcid: Observed<bool>,
    /// Whether the CPU can tell the kernel of atomic operations across cache lines (x86).
    pub split_lock_detection: Observed<bool>,
    /// How our own process stands to speculative store bypass, as `/proc/self/status` says: `thread vulnerable`,
    /// `thread force mitigated` …
    pub own_store_bypass: Observed<String>,
    /// Whether our own process runs under a seccomp filter.
    pub own_seccomp_filter: Observed<bool>,
}

/// What the kernel says of one vulnerability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vulnerability {
    /// The verdict.
    pub state: State,
    /// The whole text.
    pub text: String,
}

impl std::fmt::Display for Vulnerability {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

/// The kernel's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The CPU does not have it.
    NotAffected,
    /// It is open, or only half closed.
    Vulnerable,
    /// It is closed.
    Mitigated,
    /// The kernel cannot tell, for example because only the hypervisor knows.
    Unknown,
}

impl Vulnerabilities {
    /// What the kernel says of one, when it could be read.
    pub fn of(&self, name: &str) -> Option<&Vulnerability> {
        self.reading(name)?.get()
    }

    /// The reading behind one.
    pub fn reading(&self, name: &str) -> Option<&Observed<Vulnerability>> {
        self.entries.get()?.get(name)
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, kernel: &Kernel) -> Vulnerabilities {
    let modalias = reader.text("/sys/devices/system/cpu/modalias");
    let status = reader.text("/proc/self/status");
    Vulnerabilities {
        entries: reader.names(DIR).map(|names| {
            let entry = |name: String| {
                let reading = reader.text(&join(DIR, &name)).map(|text| parse(&text));
                (name, reading)
            };
            names.into_iter().take(ENTRY_LIMIT).map(entry).collect()
        }),
        arguments: kernel.command_line.clone().map(|line| {
            let touches = |key: &str| ARGUMENTS.iter().any(|known| same_key(known, key));
            line.arguments().iter().filter(|one| touches(&one.key)).map(ToString::to_string).collect()
        }),
        red_hat: RED_HAT
            .iter()
            .map(|name| ((*name).to_owned(), reader.text(&join("/sys/kernel/debug/x86", name))))
            .filter(|(_, reading)| reading.get().is_some())
            .collect(),
        pcid: modalias.clone().parse(|text| feature(&text, FEATURE_PCID)),
        split_lock_detection: modalias
            .parse(|text| Ok(feature(&text, FEATURE_SPLIT_LOCK)? || feature(&text, FEATURE_BUS_LOCK)?)),
        own_store_bypass: status
            .clone()
            .parse(|text| field(&text, "Speculation_Store_Bypass").ok_or_else(|| "no such line".to_owned())),
        own_seccomp_filter: status.parse(|text| match field(&text, "Seccomp").as_deref() {
            Some("2") => Ok(true),
            Some("0" | "1") => Ok(false),
            _ => Err("no such line".to_owned()),
        }),
    }
}

/// The value of one line `name:  value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

fn parse(text: &str) -> Vulnerability {
    // `itlb_multihit` speaks for KVM only and says so in front.
    let verdict = text.strip_prefix("KVM: ").unwrap_or(text);
    let starts = |prefix: &str| verdict.starts_with(prefix);
    let state = if starts("Not affected") {
        State::NotAffected
    } else if starts("Mitigation") {
        State::Mitigated
    } else if starts("Vulnerable") || starts("Processor vulnerable") {
        State::Vulnerable
    } else {
        State::Unknown
    };
    Vulnerability { state, text: text.to_owned() }
}

/// Whether a feature is in `cpu:type:x86,…:feature:,0000,0001,…` (`drivers/base/cpu.c`).
fn feature(modalias: &str, number: u32) -> Result<bool, String> {
    let (head, features) = modalias.split_once(":feature:").ok_or_else(|| "no feature list".to_owned())?;
    if !head.contains(":x86") {
        return Err("not an x86 CPU".to_owned());
    }
    Ok(features.split(',').any(|word| u32::from_str_radix(word, 16) == Ok(number)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn states() {
        let state = |text: &str| parse(text).state;
        assert_eq!(state("Not affected"), State::NotAffected);
        assert_eq!(state("Mitigation: PTI"), State::Mitigated);
        assert_eq!(
            state("Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable"),
            State::Vulnerable
        );
        assert_eq!(state("KVM: Mitigation: VMX disabled"), State::Mitigated);
        assert_eq!(state("KVM: Vulnerable"), State::Vulnerable);
        assert_eq!(state("Unknown: Dependent on hypervisor status"), State::Unknown);
    }

    #[test]
    fn features_and_arguments() {
        let host = FakeHost::new(&[
            (
                "/sys/devices/system/cpu/modalias",
                "cpu:type:x86,ven0000fam0006mod00CF:feature:,0000,0091,009F\n",
            ),
            ("/proc/cmdline", "ro mitigations=auto,nosmt spec-store-bypass-disable=on quiet\n"),
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
            ("/sys/kernel/debug/x86/pti_enabled", "1\n"),
            (
                "/proc/self/status",
                "Name:\tx\nSeccomp:\t2\nSpeculation_Store_Bypass:\tthread force mitigated\n",
            ),
        ]);
        let reader = Reader::new(&host);
        let found = observe(&reader, &crate::kernel::observe(&reader));
        assert_eq!(found.pcid.value(), Some(true));
        assert_eq!(
            found.arguments.get().unwrap(),
            &["mitigations=auto,nosmt", "spec-store-bypass-disable=on"]
        );
        assert_eq!(found.of("meltdown").unwrap().state, State::Mitigated);
        assert_eq!(found.red_hat.len(), 1);
        assert_eq!(found.own_seccomp_filter.value(), Some(true));
        assert_eq!(found.own_store_bypass.text(), Some("thread force mitigated"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-zA-Z:, 0-9\n]{0,60}") {
            let _ = (parse(&text), feature(&text, 1), field(&text, "a"));
        }
    }
}
