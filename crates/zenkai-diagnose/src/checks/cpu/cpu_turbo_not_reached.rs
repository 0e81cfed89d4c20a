//! a single busy CPU does not reach turbo.

use zenkai_facts::Facts;

use super::shared_clock::{probe, suspects};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    checks::clock::{ghz, one_busy_khz},
    need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-turbo-not-reached",
    subsystem: Subsystem::Cpu,
    summary: "a single busy CPU does not reach turbo",
    impact: Impact::Moderate,
    effect: "the ratio of turbo to nominal clock for lightly loaded work, often 1.2 to 1.7 (estimate)",
    risk: "more heat and power",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_turbo_not_reached.md"),
    run,
};

/// Turbo is worth waiting for when the hardware's maximum is this many per cent of nominal.
const WORTHWHILE_PERCENT: u64 = 110;
/// A clock within this many per cent of nominal is not turbo.
const NOT_TURBO_PERCENT: u64 = 102;
/// Below this it is another problem, told by another check.
const BELOW_NOMINAL_PERCENT: u64 = 95;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let fastest = one_busy_khz(probe(facts)?).into_iter().map(|(_, khz)| khz).max();
    let Some(fastest) = fastest else {
        return Err(Outcome::not_applicable("no CPU gave a steady measurement"));
    };
    let nominal = facts.nominal_khz();
    let nominal_khz = *need(&nominal)?;
    let policies = need(&facts.cpu.frequency.policies)?;
    let most = policies.iter().map(|policy| &policy.hardware_max_khz).max_by_key(|reading| reading.value());
    let Some(most) = most else {
        return Err(Outcome::not_applicable("the kernel does not steer the clock here"));
    };
    let most_khz = *need(most)?;
    let plain = (nominal_khz.saturating_mul(BELOW_NOMINAL_PERCENT)
        ..nominal_khz.saturating_mul(NOT_TURBO_PERCENT))
        .contains(&fastest.saturating_mul(100));
    if most_khz.saturating_mul(100) < nominal_khz.saturating_mul(WORTHWHILE_PERCENT) || !plain {
        return Ok(None);
    }
    let suspects = suspects(facts, most_khz);
    let mut finding = Finding::new(
        Subject::Machine,
        format!(
            "alone, the fastest CPU runs at {}; the hardware's maximum is {}",
            ghz(fastest),
            ghz(most_khz)
        ),
    )
    .with(
        Evidence::derived("probe, one CPU busy", format!("{fastest} kHz"))
            .expected(format!("up to {most_khz}")),
    )
    .with(Evidence::of(most))
    .with(Evidence::of(&nominal));
    finding.evidence.extend(suspects.into_iter().map(|suspect| suspect.evidence));
    Ok(Some(finding.because("turbo is not reached").remedy(Remedy::Do(
        "look for turbo switched off (no_turbo, boost, firmware), an energy bias that forbids it, or idle CPUs that poll"
            .to_owned(),
    ))))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn turbo_is_missed_only_where_there_is_some() {
        let max = "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq";
        let fires = |max_khz: &str, clock: u32| {
            let probe = probe(&[(clock, clock); 2], 2_700_000);
            !judge_probed(&super::CHECK, &[(max, max_khz)], &probe).findings.is_empty()
        };
        assert!(fires("3700000\n", 2_700_000));
        assert!(!fires("3700000\n", 3_600_000));
        assert!(!fires("2701000\n", 2_700_000), "Nehalem's way of naming turbo: one MHz more");
        assert!(!fires("3700000\n", 800_000), "below nominal is another check's business");
    }
}
