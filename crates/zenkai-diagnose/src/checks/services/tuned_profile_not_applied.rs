//! A tuned profile that is said to be active, and values that are not its.

use zenkai_facts::{
    Facts,
    services::{Differing, InForce, Service},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "tuned-profile-not-applied",
    subsystem: Subsystem::Services,
    summary: "the machine is not set as the active tuned profile asks",
    impact: Impact::Depends,
    effect: "whatever these settings of the profile were meant to bring",
    risk: "the running value may be the one that is wanted",
    source: "https://github.com/redhat-performance/tuned/blob/master/README.md",
    explanation: include_str!("tuned_profile_not_applied.md"),
    run,
};

/// Settings that are told one by one.
const TOLD: usize = 8;

fn run(facts: &Facts, _context: Context) -> Judgement {
    let tuned = &facts.services.tuned;
    let active = need_or_not_applicable(&tuned.active_profile, "tuned is not set up");
    let runs = facts.services.service("tuned").is_some_and(Service::is_active);
    let judged = active.and_then(|names| Ok(judge(names, runs, need(&tuned.in_force)?)));
    judged.into()
}

fn judge(names: &str, runs: bool, in_force: &InForce) -> Judgement {
    let compared = (in_force.compared > 0).then(|| Ok(finding(names, runs, in_force)));
    let unread = in_force.unread.iter().map(|unread| need(&unread.reading()).map(|()| None));
    Judgement::each(compared.into_iter().chain(unread), |outcome| outcome)
}

/// `runs` is whether tuned does: then it is what sets them.
fn finding(names: &str, runs: bool, InForce { compared, differing, .. }: &InForce) -> Option<Finding> {
    if differing.is_empty() {
        return None;
    }
    let what = match differing.len() {
        all if all == *compared => {
            format!("is said to be active, and none of its {compared} settings is in force")
        }
        1 => format!("is active, and 1 of its {compared} settings is not in force"),
        some => format!("is active, and {some} of its {compared} settings are not in force"),
    };
    let again =
        if runs { "systemctl restart tuned".to_owned() } else { format!("zenkai profile apply {names}") };
    let remedy = format!(
        "find out who changed them; `{again}` sets them again, and what is to stay otherwise belongs in a profile of \
         your own"
    );
    let mut finding =
        Finding::new(Subject::device(format!("profile {names}")), what).remedy(Remedy::Do(remedy));
    for Differing { setting, shows, asked, at } in differing.iter().take(TOLD) {
        finding = finding.with(Evidence::derived(setting, shows).expected(format!("{asked} ({at})")));
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Query, Reply};

    use crate::{Context, Judgement, checks::testing::judge_host};

    const TUNED: &str = "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs";

    /// tuned runs with every profile but `mine`.
    fn judged(active: &str, reply: Option<&str>) -> Judgement {
        let host = FakeHost::new(&[("/etc/tuned/active_profile", active)]);
        let host = if active.starts_with("mine") { host } else { host.file(TUNED, "812\n") };
        let host = match reply {
            Some(json) => host.reply(&Query::Profile, Reply::Text(json.to_owned())),
            None => host,
        };
        judge_host(&super::CHECK, host, Context::default())
    }

    fn differing(shows: &str) -> String {
        format!("{{\"setting\":\"vm.swappiness\",\"shows\":\"{shows}\",\"asked\":\"10\",\"at\":\"p:2\"}}")
    }

    #[test]
    fn what_differs_is_told_with_the_line_that_asks() {
        let some =
            format!("{{\"value\":{{\"compared\":4,\"differing\":[{}],\"unread\":[]}}}}", differing("60"));
        let judgement = judged("mine\n", Some(&some));
        let [finding] = &judgement.findings[..] else { panic!("{judgement:?}") };
        assert_eq!(finding.what, "is active, and 1 of its 4 settings is not in force");
        assert_eq!(finding.evidence[0].expected.as_deref(), Some("10 (p:2)"));
        assert!(format!("{:?}", finding.remedy).contains("`zenkai profile apply mine`"));
        let finding = &judged("other\n", Some(&some)).findings[0];
        assert!(format!("{:?}", finding.remedy).contains("`systemctl restart tuned`"));
        let all = some.replace("\"compared\":4", "\"compared\":1");
        assert!(
            judged("mine\n", Some(&all)).findings[0].what.ends_with("none of its 1 settings is in force")
        );
    }

    #[test]
    fn as_asked_or_not_looked_at() {
        let good = "{\"value\":{\"compared\":4,\"differing\":[],\"unread\":[]}}";
        let judgement = judged("mine\n", Some(good));
        assert!(judgement.findings.is_empty() && judgement.judged == 1 && judgement.unjudged.is_empty());
        let denied = "{\"value\":{\"compared\":0,\"differing\":[],\"unread\":[{\"setting\":\"eth0 rings\",\"why\":[\"denied\",\"\"]}]}}";
        let judgement = judged("mine\n", Some(denied));
        assert!(judgement.judged == 0 && judgement.unjudged[0].needs_root(), "{judgement:?}");
        for (active, reply) in [("\n", Some(good)), ("\n", None)] {
            assert!(judged(active, reply).not_applicable.is_some(), "no profile is active");
        }
        for reply in [None, Some("{}"), Some("{\"absent\":\"mine:3: no option\"}")] {
            let judgement = judged("mine\n", reply);
            assert!(judgement.judged == 0 && judgement.unjudged.len() == 1, "{judgement:?}");
        }
    }
}
