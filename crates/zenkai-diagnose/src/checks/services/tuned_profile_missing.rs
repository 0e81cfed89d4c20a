//! A tuned profile that is gone.

use zenkai_facts::{Facts, services::Service};
use zenkai_tune::profile::BUILTIN;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "tuned-profile-missing",
    subsystem: Subsystem::Services,
    summary: "the active tuned profile is not on this machine",
    impact: Impact::Small,
    effect: "none of the profile's settings are in force (by tuned's own behaviour)",
    risk: "a profile changes many settings at once",
    source: "https://github.com/redhat-performance/tuned/blob/master/README.md",
    explanation: include_str!("tuned_profile_missing.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let tuned = &facts.services.tuned;
    if let Err(outcome) = need_or_not_applicable(&tuned.active_profile, "tuned is not set up") {
        return outcome.into();
    }
    Judgement::each(&tuned.profiles, |profile| {
        // zenkai has profiles of its own; tuned knows nothing of them.
        let ours = BUILTIN.iter().any(|(name, _)| *name == profile.name)
            && !facts.services.service("tuned").is_some_and(Service::is_active);
        if ours && profile.includes.is_absent() {
            return Ok(None);
        }
        if !profile.includes.is_absent() {
            return need(&profile.includes).map(|_| None);
        }
        let finding = Finding::new(
            Subject::device(format!("profile {}", profile.name)),
            "is active but nowhere defined",
        )
        .with(Evidence::of(&tuned.active_profile))
        .with(Evidence::derived(profile.includes.source(), "absent").expected("the profile's definition"))
        .remedy(Remedy::Do("restore the profile, or choose another with `tuned-adm profile`".to_owned()));
        Ok(Some(finding))
    })
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(path: &str) -> bool {
        !findings(&super::CHECK, &[("/etc/tuned/active_profile", "mine\n"), (path, "[main]\n")]).is_empty()
    }

    #[test]
    fn wherever_it_may_be_defined() {
        assert!(fires("/etc/tuned/other/tuned.conf"));
        for dir in ["/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned", "/usr/lib/tuned/profiles"] {
            assert!(!fires(&format!("{dir}/mine/tuned.conf")), "{dir}");
        }
        assert!(findings(&super::CHECK, &[("/proc/x", "")]).is_empty());
        let ours = ("/etc/tuned/active_profile", "database\n");
        assert!(findings(&super::CHECK, &[ours]).is_empty(), "it came with zenkai");
        let tuned = ("/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "812\n");
        assert_eq!(findings(&super::CHECK, &[ours, tuned]).len(), 1, "tuned does not have it");
    }
}
