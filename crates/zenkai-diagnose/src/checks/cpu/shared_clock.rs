//! What the checks on the measured clock share: the probe, and who may hold the clock down.

use zenkai_facts::{Facts, cpu::Policy, power::PowerLimit, virtualisation::Kind};
use zenkai_host::probe::Probe;

use crate::{Evidence, Outcome, need};

/// The result of the probe.
pub(super) fn probe(facts: &Facts) -> Result<&Probe, Outcome> {
    need(&facts.probe)
}

/// Something that keeps a clock low: a clause for "because …", and what proves it.
pub(super) struct Suspect {
    pub(super) clause: String,
    pub(super) evidence: Evidence,
}

/// Everything readable that can hold the clock below `wanted_khz`, the most certain first.
pub(super) fn suspects(facts: &Facts, wanted_khz: u64) -> Vec<Suspect> {
    let policies = facts.cpu.frequency.policies.get().map(Vec::as_slice).unwrap_or_default();
    let mut suspects: Vec<Suspect> = Vec::new();
    suspects.extend(policies.iter().find_map(governor));
    suspects.extend(policies.iter().find_map(|policy| limit(policy, wanted_khz)));
    suspects.extend(policies.iter().find_map(|policy| firmware_limit(policy, wanted_khz)));
    suspects.extend(percent(facts));
    suspects.extend(policies.iter().find_map(preference));
    suspects.extend(heat(facts));
    suspects.extend(power_limit(facts));
    suspects.extend(management_controller(facts));
    suspects.extend(hypervisor(facts));
    suspects
}

fn governor(policy: &Policy) -> Option<Suspect> {
    let (driver, governor) = (policy.driver.text()?, policy.governor.text()?);
    let slow = governor == "powersave" && !["intel_pstate", "amd-pstate-epp"].contains(&driver);
    (slow || governor == "userspace").then(|| Suspect {
        clause: format!("the governor is {governor}"),
        evidence: Evidence::of(&policy.governor).expected("performance or schedutil"),
    })
}

fn limit(policy: &Policy, wanted_khz: u64) -> Option<Suspect> {
    (policy.max_khz.value()? < wanted_khz).then(|| Suspect {
        clause: "scaling_max_freq limits it".to_owned(),
        evidence: Evidence::of(&policy.max_khz).expected(format!("at least {wanted_khz}")),
    })
}

fn firmware_limit(policy: &Policy, wanted_khz: u64) -> Option<Suspect> {
    (policy.bios_limit_khz.value()? < wanted_khz).then(|| Suspect {
        clause: "the firmware limits it".to_owned(),
        evidence: Evidence::of(&policy.bios_limit_khz).expected(format!("at least {wanted_khz}")),
    })
}

fn percent(facts: &Facts) -> Option<Suspect> {
    let reading = &facts.cpu.frequency.intel_pstate.max_perf_percent;
    let percent = reading.value()?;
    (percent < 100).then(|| Suspect {
        clause: format!("intel_pstate allows {percent} % of the highest clock"),
        evidence: Evidence::of(reading).expected(100),
    })
}

fn preference(policy: &Policy) -> Option<Suspect> {
    let preference = policy.energy_performance_preference.text()?;
    ["power", "balance_power"].contains(&preference).then(|| Suspect {
        clause: format!("the energy preference is {preference}"),
        evidence: Evidence::of(&policy.energy_performance_preference)
            .expected("balance_performance or performance"),
    })
}

fn heat(facts: &Facts) -> Option<Suspect> {
    let throttle = facts.thermal.throttle.get()?;
    let events = throttle.core_events.value().filter(|events| *events > 0)?;
    Some(Suspect {
        clause: "it has been throttled for heat".to_owned(),
        evidence: Evidence::derived(throttle.core_events.source(), events).expected(0),
    })
}

fn power_limit(facts: &Facts) -> Option<Suspect> {
    let zone = facts
        .power
        .zones
        .get()?
        .iter()
        .find(|zone| zone.name.text().is_some_and(|n| n.starts_with("package")))?;
    let limit = &zone.constraint("long_term")?.limit_uw;
    let most = zone.constraint("long_term")?.max_uw.value()?;
    (limit.value()? < most).then(|| Suspect {
        clause: "the package power limit is lowered".to_owned(),
        evidence: Evidence::of(limit).expected(most),
    })
}

fn management_controller(facts: &Facts) -> Option<Suspect> {
    let reading = &facts.power.bmc.power_limit;
    let PowerLimit::Watts(watts @ 1..) = *reading.get()? else { return None };
    Some(Suspect {
        clause: format!("the management controller caps power at {watts} W"),
        evidence: Evidence::part(reading, format!("{watts} W, in force")).expected("no cap"),
    })
}

fn hypervisor(facts: &Facts) -> Option<Suspect> {
    let clause = match facts.virtualisation.kind.get()? {
        Kind::Metal => return None,
        Kind::XenDom0 => "Xen steers the clock and dom0 cannot see it (xenpm get-cpufreq-para)",
        _ => "the hypervisor or its host steers the clock",
    };
    Some(Suspect { clause: clause.to_owned(), evidence: Evidence::of(&facts.virtualisation.kind) })
}
