//! A sustained power limit below what the CPU is made for.

use zenkai_facts::{Facts, msr::IntelRegisters, power::PowercapZone};
use zenkai_tune::Setting;

use crate::checks::cpu::shared::{cpus_of_package, intel_registers, ratio};
use crate::checks::shared::needs_own_cpus;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "power-limit-below-tdp",
    subsystem: Subsystem::Power,
    summary: "the sustained power limit of the CPU is below its design power",
    impact: Impact::Large,
    effect: "up to 3 times between otherwise identical nodes in a published case",
    risk: "more heat and power; the supply and cooling must allow it",
    source: "https://docs.kernel.org/power/powercap/powercap.html",
    explanation: include_str!("power_limit_below_tdp.md"),
    run,
};

/// Limits are rounded to the register's units, so a little less is the same.
const NEARLY_ALL: f64 = 0.95;

fn run(facts: &Facts, _context: Context) -> Judgement {
    needs_own_cpus(facts, "power limits are the hypervisor's business").map(|()| judge(facts)).into()
}

fn judge(facts: &Facts) -> Judgement {
    let zones = facts.power.zones.get().map(Vec::as_slice).unwrap_or_default();
    let packages: Vec<_> = zones.iter().filter(|zone| is_package(zone)).collect();
    if !packages.is_empty() {
        return Judgement::each(packages, by_zone);
    }
    intel_registers(facts).map(|list| Judgement::each(list, |package| by_register(facts, package))).into()
}

fn is_package(zone: &PowercapZone) -> bool {
    let named = zone.name.text().is_some_and(|name| name.starts_with("package"));
    named && zone.constraint("long_term").is_some_and(|constraint| constraint.max_uw.get().is_some())
}

#[expect(clippy::cast_precision_loss, reason = "powers are far below 2^52 µW")]
fn watts(microwatts: u64) -> String {
    format!("{:.0} W", microwatts as f64 / 1e6)
}

fn finding(subject: Subject, limit: u64, made_for: u64) -> Finding {
    let impact = if ratio(limit, made_for) < 0.75 { Impact::Large } else { Impact::Moderate };
    Finding::new(subject, format!("the sustained power limit is {} of {}", watts(limit), watts(made_for)))
        .impact(impact)
        .because(format!("its power is limited to {}", watts(limit)))
}

fn by_zone(zone: &PowercapZone) -> Result<Option<Finding>, Outcome> {
    let Some(constraint) = zone.constraint("long_term") else { return Ok(None) };
    // A zone that is not enabled limits nothing.
    if zone.enabled.value() == Some(false) {
        return Ok(None);
    }
    let (limit, made_for) = (*need(&constraint.limit_uw)?, *need(&constraint.max_uw)?);
    if limit == 0 || ratio(limit, made_for) >= NEARLY_ALL {
        return Ok(None);
    }
    let name = zone.name.text().unwrap_or(&zone.id);
    Ok(Some(
        finding(Subject::device(name), limit, made_for)
            .with(Evidence::of(&constraint.limit_uw).expected(made_for))
            .with(Evidence::of(&constraint.max_uw))
            .remedy(Remedy::Set(vec![Setting::attribute(
                constraint.limit_uw.source(),
                made_for.to_string(),
            )])),
    ))
}

fn by_register(facts: &Facts, package: &IntelRegisters) -> Result<Option<Finding>, Outcome> {
    need(&package.power_limit)?;
    need(&package.power_info)?;
    need(&package.rapl_unit)?;
    let (Some(limit), Some(made_for)) = (package.long_term_limit_uw(), package.thermal_design_power_uw())
    else {
        return Ok(None);
    };
    if limit == 0 || ratio(limit, made_for) >= NEARLY_ALL {
        return Ok(None);
    }
    Ok(Some(
        finding(Subject::Cpus(cpus_of_package(facts, package.package)), limit, made_for)
            .with(Evidence::of(&package.power_limit))
            .with(Evidence::of(&package.power_info))
            .remedy(Remedy::Firmware(
                "raise the package power limit (PL1, configurable TDP) to the CPU's design power".into(),
            )),
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
    use zenkai_host::FakeHost;

    fn found(host: FakeHost) -> usize {
        judge_host(&super::CHECK, host, Context::default()).findings.len()
    }

    fn zone(limit: &str, max: &str, enabled: &str) -> FakeHost {
        let dir = "/sys/class/powercap/intel-rapl:0";
        xeon("")
            .file(&format!("{dir}/name"), "package-0\n")
            .file(&format!("{dir}/enabled"), enabled)
            .file(&format!("{dir}/constraint_0_name"), "long_term\n")
            .file(&format!("{dir}/constraint_0_power_limit_uw"), limit)
            .file(&format!("{dir}/constraint_0_max_power_uw"), max)
    }

    #[test]
    fn through_powercap() {
        assert_eq!(found(zone("85000000\n", "130000000\n", "1\n")), 1);
        assert_eq!(found(zone("130000000\n", "130000000\n", "1\n")), 0);
        assert_eq!(found(zone("85000000\n", "130000000\n", "0\n")), 0, "not in force");
        assert_eq!(found(zone("85000000\n", "0\n", "1\n")), 0, "unknown design power");
    }

    #[test]
    fn through_registers() {
        let limited = |limit| with_registers(xeon(""), &[(0x606, 0xa_0e03), (0x614, 0x410), (0x610, limit)]);
        assert_eq!(found(limited(0x8000 | 0x200)), 1);
        assert_eq!(found(limited(0x8000 | 0x410)), 0);
        assert_eq!(found(limited(0x200)), 0, "not enabled");
        assert_eq!(found(emulated(xeon(""))), 0);
        assert_eq!(found(xeon("hypervisor")), 0);
    }
}
