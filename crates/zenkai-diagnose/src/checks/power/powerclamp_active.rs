//! Idle time is injected to cool the machine.

use zenkai_facts::{Facts, thermal::CoolingDevices};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "powerclamp-active",
    subsystem: Subsystem::Power,
    summary: "idle time is injected, or the clock lowered, by a cooling device",
    impact: Impact::Large,
    effect: "exactly the injected share of the CPU time, for intel_powerclamp",
    risk: "the machine may get too hot without it",
    source: "https://docs.kernel.org/admin-guide/thermal/intel_powerclamp.html",
    explanation: include_str!("powerclamp_active.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let devices = &facts.thermal.cooling;
    need_or_not_applicable(devices, "no cooling devices here")
        .map(|list| {
            let slowing = list
                .iter()
                .filter(|device| matches!(device.kind.text(), Some("intel_powerclamp" | "Processor")));
            Judgement::each(slowing, judge)
        })
        .into()
}

fn judge(device: &CoolingDevices) -> Result<Option<Finding>, Outcome> {
    let (kind, state) = (need(&device.kind)?, *need(&device.state)?);
    // Some kernels show -1 while powerclamp rests.
    if state <= 0 {
        return Ok(None);
    }
    let what = if kind == "intel_powerclamp" {
        format!("intel_powerclamp injects {state} % idle time")
    } else {
        format!("thermal management holds {} CPUs at throttling state {state}", device.count)
    };
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&device.state).expected(0))
            .with(Evidence::of(&device.kind))
            .remedy(Remedy::Do("find out who asked for it (thermald, a thermal zone beyond its trip) and cool the machine or stop it".into()))
            .because("cooling takes CPU time away"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn found(kind: &str, state: &str) -> usize {
        let dir = "/sys/class/thermal/cooling_device0";
        let world = [
            (format!("{dir}/type"), kind),
            (format!("{dir}/cur_state"), state),
            (format!("{dir}/max_state"), "50\n"),
        ];
        findings(&super::CHECK, &world).len()
    }

    #[test]
    fn only_while_it_acts_on_cpus() {
        assert_eq!(found("intel_powerclamp\n", "25\n"), 1);
        assert_eq!(found("Processor\n", "3\n"), 1);
        assert_eq!(found("intel_powerclamp\n", "-1\n"), 0);
        assert_eq!(found("intel_powerclamp\n", "0\n"), 0);
        assert_eq!(found("Fan\n", "1\n"), 0);
    }
}
