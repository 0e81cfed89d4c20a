//! Work waits for memory now.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-pressure-now",
    subsystem: Subsystem::Kernel,
    summary: "work waits for memory",
    impact: Impact::Large,
    effect: "the share of the time shown is lost to reclaim, swapping and reading pages again (measured by the kernel)",
    risk: "none in looking; see the fix",
    source: "https://docs.kernel.org/accounting/psi.html",
    explanation: include_str!("memory_pressure_now.md"),
    run,
};

const SOME_PERCENT: f64 = 10.0;
const FULL_PERCENT: f64 = 5.0;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.pressure.memory;
    let pressure = need_or_not_applicable(reading, "this kernel does not account pressure")?;
    let some = pressure.some.map_or(0.0, |stall| stall.avg300_percent);
    let full = pressure.full.map_or(0.0, |stall| stall.avg300_percent);
    if some < SOME_PERCENT && full < FULL_PERCENT {
        return Ok(None);
    }
    let shown = reading.clone().map(|_| format!("some avg300={some:.2} full avg300={full:.2}"));
    let impact = if some.max(2.0 * full) >= 25.0 { Impact::Large } else { Impact::Moderate };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!(
                "tasks waited for memory in {some:.0} % of the last five minutes, all of them in {full:.0} %"
            ),
        )
        .with(
            Evidence::of(&shown)
                .expected(format!("some below {SOME_PERCENT:.0}, full below {FULL_PERCENT:.0}")),
        )
        .remedy(Remedy::Do(
            "find the largest users of memory and give them less, or the machine more".to_owned(),
        ))
        .impact(impact)
        .because(format!("work waits for memory {some:.0} % of the time")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn only_when_it_lasts() {
        let fires = |some: &str, full: &str| {
            let text = format!(
                "some avg10=90.00 avg60=0.00 avg300={some} total=1\nfull avg10=0.00 avg60=0.00 avg300={full} total=1\n"
            );
            !findings(&super::CHECK, &[("/proc/pressure/memory", text)]).is_empty()
        };
        assert!(fires("30.00", "12.00"));
        assert!(fires("6.00", "5.50"));
        assert!(!fires("2.00", "0.10"));
    }
}
