//! CPUs under different governors.

use std::collections::BTreeMap;

use zenkai_facts::{CpuSet, Facts, Observed};

use super::shared::{SELF_STEERING, policies};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-governor-mixed",
    subsystem: Subsystem::Cpu,
    summary: "CPUs run under different governors",
    impact: Impact::Small,
    effect: "CPUs of one machine answer the same load with different clocks (no published number)",
    risk: "none known",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_governor_mixed.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

/// Governor to the CPUs under it, with one reading as evidence.
type Groups<'f> = BTreeMap<&'f str, (Vec<CpuSet>, &'f Observed<String>)>;

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let mut groups = Groups::new();
    for policy in policies(facts)? {
        let governor = need(&policy.governor)?;
        let slow = governor == "powersave" && !SELF_STEERING.contains(&need(&policy.driver)?.as_str());
        if slow {
            // A check of its own says so, and what to do.
            return Ok(None);
        }
        let group = groups.entry(governor).or_insert_with(|| (Vec::new(), &policy.governor));
        group.0.push(need(&policy.cpus)?.clone());
    }
    let size = |sets: &[CpuSet]| sets.iter().map(CpuSet::len).sum::<usize>();
    let Some((common, _)) = groups.iter().max_by_key(|(_, (sets, _))| size(sets)) else { return Ok(None) };
    let common = *common;
    let odd: Vec<_> = groups.iter().filter(|(governor, _)| **governor != common).collect();
    if odd.is_empty() {
        return Ok(None);
    }
    let cpus: CpuSet = odd.iter().flat_map(|(_, (sets, _))| sets.iter().flat_map(CpuSet::iter)).collect();
    let names: Vec<&str> = odd.iter().map(|(governor, _)| **governor).collect();
    let what = format!("governor {} while the other CPUs run under {common}", names.join(" or "));
    let mut finding = Finding::new(Subject::Cpus(cpus), what);
    for (_, (_, reading)) in odd {
        finding = finding.with(Evidence::of(reading).expected(common));
    }
    Ok(Some(finding.remedy(Remedy::Do(format!(
        "give all CPUs one governor (cpupower frequency-set -g {common}), unless they are kept apart on purpose"
    )))))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn world(driver: &str, governors: [&str; 3]) -> Vec<(String, String)> {
        (0..3)
            .zip(governors)
            .flat_map(|(number, governor)| {
                let dir = format!("/sys/devices/system/cpu/cpufreq/policy{number}");
                [
                    (format!("{dir}/affected_cpus"), format!("{number}\n")),
                    (format!("{dir}/scaling_driver"), format!("{driver}\n")),
                    (format!("{dir}/scaling_governor"), format!("{governor}\n")),
                ]
            })
            .collect()
    }

    #[test]
    fn the_odd_ones_out() {
        let found =
            findings(&super::CHECK, &world("acpi-cpufreq", ["performance", "schedutil", "performance"]));
        assert_eq!(found[0].subject.to_string(), "CPU 1");
        assert!(findings(&super::CHECK, &world("acpi-cpufreq", ["schedutil"; 3])).is_empty());
        // The slow governor has its own check.
        assert!(
            findings(&super::CHECK, &world("acpi-cpufreq", ["powersave", "schedutil", "schedutil"]))
                .is_empty()
        );
        let active = world("intel_pstate", ["powersave", "performance", "powersave"]);
        assert_eq!(findings(&super::CHECK, &active).len(), 1);
    }
}
