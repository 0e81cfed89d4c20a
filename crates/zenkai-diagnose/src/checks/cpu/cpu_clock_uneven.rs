//! some CPUs run slower than the others under the same load.

use zenkai_facts::{CpuSet, Facts};

use super::shared_clock::probe;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    checks::clock::{all_busy_khz, ghz, median_khz},
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-clock-uneven",
    subsystem: Subsystem::Cpu,
    summary: "some CPUs run slower than the others under the same load",
    impact: Impact::Moderate,
    effect: "a parallel job waits for its slowest CPU (measured here)",
    risk: "none for the measurement",
    source: "https://docs.kernel.org/admin-guide/pm/intel_pstate.html",
    explanation: include_str!("cpu_clock_uneven.md"),
    run,
};

/// A CPU below this share of the median, in per cent, stands out. Favoured cores differ by less (Intel Turbo Boost Max
/// 3.0 and AMD preferred cores move the single-core turbo by a few hundred MHz, and less when all are busy).
const OUTLIER_PERCENT: u64 = 85;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let clocks = all_busy_khz(probe(facts)?);
    let median = median_khz(&clocks).filter(|_| clocks.len() > 1);
    let Some(median) = median else { return Err(Outcome::not_applicable("there are no CPUs to compare")) };
    if is_hybrid(facts) {
        return Err(Outcome::not_applicable("this CPU has cores of different kinds"));
    }
    let slow: Vec<(u32, u64)> =
        clocks.into_iter().filter(|(_, khz)| khz * 100 < median * OUTLIER_PERCENT).collect();
    let Some(khz) = median_khz(&slow) else { return Ok(None) };
    Ok(Some(
        Finding::new(
            Subject::Cpus(slow.iter().map(|(cpu, _)| *cpu).collect::<CpuSet>()),
            format!("with all CPUs busy the clock is {}, the others' {}", ghz(khz), ghz(median)),
        )
        .with(
            Evidence::derived("probe, all CPUs busy", format!("{khz} kHz"))
                .expected(format!("about {median}")),
        )
        .because(format!("some CPUs run at {}", ghz(khz)))
        .remedy(Remedy::Do(
            "compare the governor, limits and throttle counts of these CPUs with the others".to_owned(),
        )),
    ))
}

/// Performance and efficiency cores in one package have different hardware maxima.
fn is_hybrid(facts: &Facts) -> bool {
    let policies = facts.cpu.frequency.policies.get().map(Vec::as_slice).unwrap_or_default();
    let maxima = || policies.iter().filter_map(|policy| policy.hardware_max_khz.value());
    match (maxima().min(), maxima().max()) {
        (Some(least), Some(most)) => least.saturating_mul(100) < most.saturating_mul(OUTLIER_PERCENT),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn one_slow_cpu_stands_out() {
        let mut clocks = [(3_000_000, 3_400_000); 8];
        assert!(judge_probed(&super::CHECK, &[], &probe(&clocks, 2_700_000)).findings.is_empty());
        clocks[5] = (1_200_000, 1_200_000);
        let found = &judge_probed(&super::CHECK, &[], &probe(&clocks, 2_700_000)).findings[0];
        assert_eq!(found.subject.to_string(), "CPU 5");
    }

    #[test]
    fn hybrid_cpus_are_meant_to_differ() {
        let files = [
            ("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "5000000\n"),
            ("/sys/devices/system/cpu/cpufreq/policy1/cpuinfo_max_freq", "3800000\n"),
        ];
        let judgement = judge_probed(
            &super::CHECK,
            &files,
            &probe(&[(5_000_000, 5_000_000), (3_800_000, 3_800_000), (5_000_000, 5_000_000)], 3_000_000),
        );
        assert!(judgement.findings.is_empty() && judgement.not_applicable.is_some());
    }
}
