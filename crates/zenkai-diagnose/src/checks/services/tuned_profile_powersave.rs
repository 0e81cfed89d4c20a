//! A tuned profile that saves power.

use zenkai_facts::Facts;

use crate::checks::shared::needs_hardware;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "tuned-profile-powersave",
    subsystem: Subsystem::Services,
    summary: "the active tuned profile does not aim for speed",
    impact: Impact::Depends,
    effect: "what the profile sets: from nothing under full load to a low clock (no general number)",
    risk: "more power",
    source: "https://github.com/redhat-performance/tuned/tree/master/profiles",
    explanation: include_str!("tuned_profile_powersave.md"),
    run,
};

/// Profiles of tuned that do not aim for speed on a server, with what they are for and how bad that is.
const SLOW: [(&str, &str, Impact); 8] = [
    ("powersave", "saving power", Impact::Moderate),
    ("spindown-disk", "letting disks sleep", Impact::Moderate),
    ("laptop-battery-powersave", "laptops on battery", Impact::Moderate),
    ("laptop-ac-powersave", "laptops", Impact::Moderate),
    ("balanced-battery", "laptops on battery", Impact::Moderate),
    ("balanced", "a balance of power and speed", Impact::Depends),
    ("desktop", "desktops", Impact::Depends),
    ("virtual-guest", "virtual machines", Impact::Depends),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    // A guest without a clock policy of its own loses nothing by it.
    if facts.cpu.frequency.policies.get().is_none_or(Vec::is_empty) {
        needs_hardware(facts)?;
    }
    let tuned = &facts.services.tuned;
    let active = need_or_not_applicable(&tuned.active_profile, "tuned is not set up")?;
    // Of several profiles the last one wins where they differ.
    let Some(name) = active.split_whitespace().last() else { return Ok(None) };
    let included = tuned
        .profiles
        .iter()
        .filter(|profile| profile.name == name)
        .filter_map(|profile| profile.includes.get());
    let names = std::iter::once(name).chain(included.flatten().map(String::as_str));
    let known: Vec<_> = names.filter_map(|name| SLOW.iter().find(|(slow, ..)| *slow == name)).collect();
    // Profiles of tuned's own that build on these undo what is slow about them.
    if SHIPPED_FAST.contains(&name) {
        return Ok(None);
    }
    let Some((slow, purpose, impact)) = known.first() else { return Ok(None) };
    let built = if *slow == name { String::new() } else { format!("builds on {slow}, which ") };
    let advice =
        "choose by the work: `tuned-adm profile throughput-performance`, or latency-performance, hpc-compute";
    Ok(Some(
        Finding::new(Subject::device(format!("profile {name}")), format!("{built}is meant for {purpose}"))
            .with(
                Evidence::of(&tuned.active_profile)
                    .expected("throughput-performance or a profile for the work"),
            )
            .with(Evidence::of(&tuned.mode))
            .impact(*impact)
            .remedy(Remedy::Do(advice.to_owned())),
    ))
}

/// Profiles that come with tuned, include one of the above and still aim for speed.
const SHIPPED_FAST: [&str; 2] = ["accelerator-performance", "openshift"];

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(active: &str, more: &[(&str, &str)]) -> bool {
        let files =
            [&[("/etc/tuned/active_profile", active), ("/etc/tuned/profile_mode", "auto\n")], more].concat();
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn what_is_not_meant_for_servers() {
        assert!(fires("balanced\n", &[]));
        assert!(fires("virtual-guest\n", &[]));
        assert!(fires("mine\n", &[("/etc/tuned/mine/tuned.conf", "[main]\ninclude=powersave\n")]));
        assert!(!fires("throughput-performance\n", &[]));
        assert!(!fires("powersave throughput-performance\n", &[]), "the last one wins");
        let guest = [
            ("/proc/cpuinfo", "flags : fpu hypervisor\n"),
            ("/sys/class/dmi/id/sys_vendor", "VMware, Inc.\n"),
        ];
        assert!(!fires("virtual-guest\n", &guest));
    }
}
