//! A power cap in the management controller.

use zenkai_facts::{Facts, power::PowerLimit};

use crate::checks::cpu::shared::ratio;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "bmc-power-cap",
    subsystem: Subsystem::Power,
    summary: "the management controller caps the power of the machine",
    impact: Impact::Moderate,
    effect: "the clock is lowered until the draw is below the cap; the operating system is not told",
    risk: "a tripped breaker, if the rack counts on the cap",
    source: "https://manpages.ubuntu.com/manpages/bionic/man8/ipmi-dcmi.8.html",
    explanation: include_str!("bmc_power_cap.md"),
    run,
};

/// Draw so near the cap that the cap acts.
const NEAR: f64 = 0.95;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let bmc = &facts.power.bmc;
    if bmc.present.is_absent() || bmc.present.value() == Some(false) {
        return Err(Outcome::not_applicable("the kernel talks to no management controller (ipmi_devintf)"));
    }
    // A limit of 0 W is a controller's way of having none.
    let PowerLimit::Watts(limit @ 1..) = *need(&bmc.power_limit)? else { return Ok(None) };
    let reading = bmc.power_reading.value();
    let highest = reading.map(|reading| reading.max_watts.max(reading.current_watts));
    let acts = highest.map(|watts| ratio(watts.into(), limit.into()) >= NEAR);
    // A cap far above everything the machine ever drew costs nothing.
    let impact = match acts {
        Some(false) => return Ok(None),
        Some(true) => Impact::Large,
        None => Impact::Depends,
    };
    let seen = highest.map_or_else(String::new, |watts| format!(", and the machine drew up to {watts} W"));
    let shown = bmc.power_limit.clone().map(|_| format!("{limit} W, in force"));
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("the management controller caps the power at {limit} W{seen}"),
        )
        .with(Evidence::of(&shown).expected("no cap"))
        .impact(impact)
        .remedy(Remedy::Firmware(
            "raise or remove the power cap in the management controller, if the power supply allows".into(),
        ))
        .because(format!("its power is capped at {limit} W")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Context, Impact, checks::testing::judge_host};
    use zenkai_host::{FakeHost, Query, Reply};

    fn impact(completion: u8, cap: u8, highest: Option<u8>) -> Option<Impact> {
        let query = |command, data: &[u8]| Query::Ipmi { netfn: 0x2c, command, data: data.to_vec() };
        let host = FakeHost::new(&[("/sys/class/ipmi/ipmi0/dev", "240:0\n")]).reply(
            &query(3, &[0xdc, 0, 0]),
            Reply::Bytes(vec![completion, 0xdc, 0, 0, 0, cap, 0, 0, 0, 0, 0]),
        );
        let host = match highest {
            Some(watts) => host.reply(
                &query(2, &[0xdc, 1, 0, 0]),
                Reply::Bytes(vec![0, 0xdc, 90, 0, 80, 0, watts, 0, 90, 0]),
            ),
            None => host,
        };
        judge_host(&super::CHECK, host, Context::default())
            .findings
            .first()
            .and_then(|finding| finding.impact)
    }

    #[test]
    fn only_a_cap_that_acts() {
        assert_eq!(impact(0, 200, Some(199)), Some(Impact::Large));
        assert_eq!(impact(0, 200, Some(120)), None);
        assert_eq!(impact(0x80, 200, Some(199)), None, "not active");
        assert_eq!(impact(0, 200, None), Some(Impact::Depends));
        assert!(judge_host(&super::CHECK, FakeHost::new(&[]), Context::default()).not_applicable.is_some());
    }
}
