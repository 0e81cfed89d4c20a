//! The clock is switched on and off by clock modulation.

use zenkai_facts::{Facts, cpu::Group, msr::Register};

use super::shared::intel_registers;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-clock-modulated",
    subsystem: Subsystem::Cpu,
    summary: "the clock is switched on and off by clock modulation",
    impact: Impact::Large,
    effect: "exactly the duty cycle, in steps of 12.5 % (or 6.25 %) of the clock",
    risk: "the one who set it may have had a thermal reason",
    source: "https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html",
    explanation: include_str!("cpu_clock_modulated.md"),
    run,
};

/// `IA32_CLOCK_MODULATION`: modulation is on.
const ON: u32 = 4;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge_all(facts).into()
}

fn judge_all(facts: &Facts) -> Result<Judgement, Outcome> {
    // Emulated registers are no evidence.
    intel_registers(facts)?;
    Ok(Judgement::each(need(&facts.msr.clock_modulation)?, judge))
}

fn judge(group: &Group<Register>) -> Result<Option<Finding>, Outcome> {
    let register = need(&group.value)?;
    // In sixteenths; without the extension the lowest bit is 0 and the steps are eighths.
    let duty = register.bits(3, 0);
    if !register.bit(ON) || duty == 0 {
        return Ok(None);
    }
    #[expect(clippy::cast_precision_loss, reason = "a number below 16")]
    let percent = duty as f64 * 6.25;
    Ok(Some(
        Finding::new(
            Subject::Cpus(group.cpus.clone()),
            format!("clock modulation lets the clock run {percent} % of the time"),
        )
        .with(Evidence::of(&group.value).expected("bit 4 clear"))
        .remedy(Remedy::Do(
            "find who set it (thermald, a firmware T-state) and stop it; `wrmsr -a 0x19a 0` clears it".into(),
        ))
        .because(format!("clock modulation stops it {} % of the time", 100.0 - percent)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{
            cpu::shared::worlds::{emulated, with_registers, xeon},
            testing::judge_host,
        },
    };
    use zenkai_host::{FakeHost, Query, Reply};

    fn found(host: FakeHost) -> Vec<crate::Finding> {
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn a_duty_cycle() {
        let second = |value| (Query::Msr { cpu: 1, register: 0x19a }, Reply::Numbers(vec![value]));
        let host = |value| {
            let (query, reply) = second(value);
            with_registers(xeon(""), &[(0x19a, 0)]).reply(&query, reply)
        };
        let slow = found(host(0x12));
        assert_eq!(slow[0].subject.to_string(), "CPU 1");
        assert!(slow[0].what.contains("12.5 %"), "{}", slow[0].what);
        assert!(found(host(0x02)).is_empty(), "off");
        assert!(found(emulated(xeon(""))).is_empty());
    }
}
