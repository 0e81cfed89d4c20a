//! Work waits for disks now.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "io-pressure-now",
    subsystem: Subsystem::Kernel,
    summary: "work waits for disks",
    impact: Impact::Depends,
    effect: "the share of the time shown was spent waiting for disks (measured by the kernel)",
    risk: "none in looking; see the fix",
    source: "https://docs.kernel.org/accounting/psi.html",
    explanation: include_str!("io_pressure_now.md"),
    run,
};

const FULL_PERCENT: f64 = 25.0;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.pressure.io;
    let pressure = need_or_not_applicable(reading, "this kernel does not account pressure")?;
    let full = pressure.full.map_or(0.0, |stall| stall.avg300_percent);
    if full < FULL_PERCENT {
        return Ok(None);
    }
    let shown = reading.clone().map(|_| format!("full avg300={full:.2}"));
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("all work stood still for disks in {full:.0} % of the last five minutes"),
        )
        .with(Evidence::of(&shown).expected(format!("below {FULL_PERCENT:.0}")))
        .remedy(Remedy::Do("see the findings on storage, then find who causes the traffic".to_owned()))
        .because(format!("work stands still for disks {full:.0} % of the time")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn only_when_all_wait() {
        let fires = |full: &str| {
            let text = format!(
                "some avg10=90.00 avg60=80.00 avg300=70.00 total=1\nfull avg10=0.00 avg60=0.00 avg300={full} total=1\n"
            );
            !findings(&super::CHECK, &[("/proc/pressure/io", text)]).is_empty()
        };
        assert!(fires("40.00"));
        assert!(!fires("10.00"));
    }
}
