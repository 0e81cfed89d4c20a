//! Work waits for a CPU now.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-pressure-now",
    subsystem: Subsystem::Kernel,
    summary: "work waits for a CPU",
    impact: Impact::Depends,
    effect: "tasks waited for a CPU in the share of the time shown (measured by the kernel)",
    risk: "none in looking; see the fix",
    source: "https://docs.kernel.org/accounting/psi.html",
    explanation: include_str!("cpu_pressure_now.md"),
    run,
};

const SOME_PERCENT: f64 = 50.0;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.pressure.cpu;
    let pressure = need_or_not_applicable(reading, "this kernel does not account pressure")?;
    let some = pressure.some.map_or(0.0, |stall| stall.avg300_percent);
    // Filling all CPUs is what computing is for.
    if some < SOME_PERCENT || context.works_as(&[Workload::Hpc]) {
        return Ok(None);
    }
    let shown = reading.clone().map(|_| format!("some avg300={some:.2}"));
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("tasks waited for a CPU in {some:.0} % of the last five minutes"),
        )
        .with(Evidence::of(&shown).expected(format!("below {SOME_PERCENT:.0}")))
        .remedy(Remedy::Do(
            "see the findings on the CPU first; then it takes less work or more CPUs".to_owned(),
        ))
        .because(format!("work waits for a CPU {some:.0} % of the time")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn a_busy_machine_is_not_a_full_one() {
        let fires = |some: &str| {
            let text = format!("some avg10=90.00 avg60=80.00 avg300={some} total=1\n");
            !findings(&super::CHECK, &[("/proc/pressure/cpu", text)]).is_empty()
        };
        assert!(fires("72.00"));
        assert!(!fires("20.00"));
    }
}
