//! What the kernel command line says about CPUs (`Documentation/admin-guide/kernel-parameters.txt`).

use std::collections::BTreeMap;

use crate::{Observed, Reader};

const KEYS: [&str; 15] = [
    "amd_pstate",
    "cpufreq.off",
    "cpuidle.governor",
    "cpuidle.off",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "processor.ignore_ppc",
    "processor.max_cstate",
];

pub(super) fn observe(reader: &Reader<'_>) -> Observed<BTreeMap<String, String>> {
    reader.text("/proc/cmdline").map(|text| parse(&text))
}

/// The known arguments; the last of several wins, as in the kernel. Words after `--` belong to init.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for word in text.split_whitespace().take_while(|word| *word != "--") {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        // The kernel treats `-` and `_` alike in names (`kernel/params.c`, parameq).
        let key = key.replace('-', "_");
        if KEYS.contains(&key.as_str()) {
            found.insert(key, value.trim_matches('"').to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn known_arguments_only() {
        let found = parse("root=/dev/sda intel-idle.max_cstate=1 intel_idle.max_cstate=0 nosmt -- idle=poll");
        assert_eq!(format!("{found:?}"), r#"{"intel_idle.max_cstate": "0", "nosmt": ""}"#);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }
    }
}
