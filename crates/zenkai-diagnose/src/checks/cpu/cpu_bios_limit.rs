//! A clock limit that the firmware sets while the system runs.

use zenkai_facts::{Facts, cpu::Policy};

use super::shared::{NEARLY_ALL, ghz, policies, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-bios-limit",
    subsystem: Subsystem::Cpu,
    summary: "the firmware limits the clock",
    impact: Impact::Large,
    effect: "the ratio of the limit to the highest clock (estimate from the definition)",
    risk: "none; the limit has a cause that is worth finding",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_bios_limit.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    policies(facts).map(|list| Judgement::each(list, |policy| judge(facts, policy))).into()
}

fn judge(facts: &Facts, policy: &Policy) -> Result<Option<Finding>, Outcome> {
    let limit =
        *need_or_not_applicable(&policy.bios_limit_khz, "this driver takes no limit from the firmware")?;
    // The table is what the firmware itself offers. Without it AMD's maximum would count boost, which no limit does.
    let highest = match policy.table_max_khz.value() {
        Some(highest) => highest,
        None if facts.cpu.is_intel() => *need(&policy.hardware_max_khz)?,
        None => return Ok(None),
    };
    if ratio(limit, highest) >= NEARLY_ALL {
        return Ok(None);
    }
    let what = format!("the firmware allows {} of {} now", ghz(limit), ghz(highest));
    Ok(Some(
        Finding::new(Subject::Cpus(need(&policy.cpus)?.clone()), what)
            .with(Evidence::of(&policy.bios_limit_khz).expected(highest))
            .remedy(Remedy::Firmware(
                "look in the management controller for a power cap, a failed power supply or a thermal event, and clear its cause".into(),
            ))
            .because("the firmware limits the clock"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    fn fires(limit: &str, table: &str) -> bool {
        let world = policy(&[
            ("bios_limit", limit),
            ("scaling_available_frequencies", table),
            ("cpuinfo_max_freq", "3410000"),
        ]);
        !findings(&super::CHECK, &world).is_empty()
    }

    #[test]
    fn below_the_firmwares_own_table() {
        assert!(fires("1800000", "2700000 1800000 800000"));
        assert!(!fires("2700000", "2700000 1800000 800000"));
        // EPYC: the limit is the nominal clock, boost is above it.
        assert!(!fires("2250000", "2250000 1700000"));
    }
}
