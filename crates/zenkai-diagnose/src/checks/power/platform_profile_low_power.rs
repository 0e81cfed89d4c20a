//! The platform profile saves power.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "platform-profile-low-power",
    subsystem: Subsystem::Power,
    summary: "the platform profile saves power",
    impact: Impact::Moderate,
    effect: "depends on the vendor; the firmware lowers power limits or clocks (no published number)",
    risk: "more heat, louder fans",
    source: "https://docs.kernel.org/userspace-api/sysfs-platform_profile.html",
    explanation: include_str!("platform_profile_low_power.md"),
    run,
};

const SAVING: [&str; 3] = ["low-power", "quiet", "cool"];
/// What to choose instead, best first.
const BETTER: [&str; 3] = ["performance", "balanced-performance", "balanced"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let profile = &facts.power.platform_profile;
    let current = need_or_not_applicable(profile, "this platform has no profile")?;
    if !SAVING.contains(&current.as_str()) {
        return Ok(None);
    }
    let choices = facts.power.platform_profile_choices.get().map(Vec::as_slice).unwrap_or_default();
    let better = BETTER.iter().find(|name| choices.iter().any(|choice| choice == *name));
    let finding = Finding::new(Subject::Machine, format!("the platform profile is {current}"))
        .with(Evidence::of(profile).expected("performance or balanced"))
        .because(format!("the platform profile is {current}"));
    Ok(Some(match better {
        Some(name) => finding.remedy(Remedy::Set(vec![Setting::attribute(profile.source(), *name)])),
        None => finding.remedy(Remedy::Firmware("choose a performance profile".into())),
    }))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn found(profile: &str) -> usize {
        let dir = "/sys/firmware/acpi";
        let world = [
            (format!("{dir}/platform_profile"), profile),
            (format!("{dir}/platform_profile_choices"), "low-power balanced performance\n"),
        ];
        findings(&super::CHECK, &world).len()
    }

    #[test]
    fn only_the_saving_profiles() {
        assert_eq!(found("low-power\n"), 1);
        assert_eq!(found("balanced\n"), 0);
        assert_eq!(found("performance\n"), 0);
    }
}
