//! under load the CPU runs below its nominal clock.

use zenkai_facts::{CpuSet, Facts, virtualisation::Kind};

use super::shared_clock::{probe, suspects};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    checks::clock::{all_busy_khz, ghz, median_khz},
    need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-clock-below-nominal",
    subsystem: Subsystem::Cpu,
    summary: "under load the CPU runs below its nominal clock",
    impact: Impact::Large,
    effect: "the missing share of the clock, for everything the CPU does (measured here)",
    risk: "none for the measurement; the remedy's own for what it changes",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_clock_below_nominal.md"),
    run,
};

/// Below this share of the nominal clock, in per cent, a CPU is slow. The measurement itself repeats within 0.1 %;
/// the rest is room for spread-spectrum clocking and for names that round the clock.
const ENOUGH_PERCENT: u64 = 95;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let clocks = all_busy_khz(probe(facts)?);
    let nominal = facts.nominal_khz();
    let nominal_khz = *need(&nominal)?;
    let slow: Vec<(u32, u64)> = clocks
        .iter()
        .copied()
        .filter(|(_, khz)| khz.saturating_mul(100) < nominal_khz.saturating_mul(ENOUGH_PERCENT))
        .collect();
    let Some(clock_khz) = median_khz(&slow) else {
        return if clocks.is_empty() { Err(unmeasured()) } else { Ok(None) };
    };
    let suspects = suspects(facts, nominal_khz);
    let because = match suspects.as_slice() {
        [] => "nothing that this kernel shows explains it: think of the firmware's power profile, a power cap or heat"
            .to_owned(),
        found => found.iter().map(|suspect| suspect.clause.clone()).collect::<Vec<_>>().join("; "),
    };
    let mut finding = Finding::new(
        Subject::Cpus(slow.iter().map(|(cpu, _)| *cpu).collect::<CpuSet>()),
        format!("under load the clock is {} of {} nominal", ghz(clock_khz), ghz(nominal_khz)),
    )
    .with(
        Evidence::derived("probe, all CPUs busy", format!("{clock_khz} kHz"))
            .expected(format!("at least {nominal_khz}")),
    )
    .with(Evidence::of(&nominal));
    finding.evidence.extend(suspects.into_iter().map(|suspect| suspect.evidence));
    Ok(Some(finding.because(because).remedy(remedy(facts))))
}

fn unmeasured() -> Outcome {
    Outcome::not_applicable("no CPU gave a steady measurement")
}

fn remedy(facts: &Facts) -> Remedy {
    match facts.virtualisation.kind.get() {
        Some(Kind::XenDom0) => Remedy::Do("xenpm set-scaling-governor performance".to_owned()),
        Some(kind) if kind.is_guest() => Remedy::Hypervisor(
            "let the host's governor and power profile run the CPUs at full clock".to_owned(),
        ),
        _ => Remedy::Do("remove what holds it down, as named above; then probe again".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{judge_probed, probe};

    const POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy0";

    fn files(governor: &str) -> Vec<(String, String)> {
        let values = [
            ("affected_cpus", "0 1"),
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", governor),
            ("scaling_max_freq", "2700000"),
        ];
        values.map(|(name, value)| (format!("{POLICY}/{name}"), format!("{value}\n"))).to_vec()
    }

    #[test]
    fn names_who_holds_the_clock_down() {
        let files = files("powersave");
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let slow = probe(&[(800_000, 800_000); 2], 2_700_000);
        let found = &judge_probed(&super::CHECK, &files, &slow).findings[0];
        assert_eq!(found.what, "under load the clock is 0.80 GHz of 2.70 GHz nominal");
        assert_eq!(found.because.as_deref(), Some("the governor is powersave"));
        assert_eq!(found.subject.to_string(), "CPUs 0-1");
        assert!(
            judge_probed(&super::CHECK, &files, &probe(&[(2_690_000, 3_100_000); 2], 2_700_000))
                .findings
                .is_empty()
        );
    }

    #[test]
    fn says_so_when_nothing_explains_it() {
        let slow = probe(&[(1_200_000, 1_200_000)], 2_400_000);
        let found = &judge_probed(&super::CHECK, &[], &slow).findings[0];
        assert!(found.because.as_deref().unwrap().starts_with("nothing that this kernel shows"));
    }

    #[test]
    fn without_a_probe_it_is_not_judged() {
        assert_eq!(crate::checks::testing::judge(&super::CHECK, &[("/x", "")]).unjudged.len(), 1);
    }
}
