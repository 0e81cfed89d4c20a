//! Long-lived connections with pauses.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-slow-start-after-idle",
    subsystem: Subsystem::Net,
    summary: "connections start slowly again after each pause",
    impact: Impact::Small,
    effect: "some round trips for the first large reply after a pause (estimate)",
    risk: "a burst after a pause may be lost on a crowded path",
    source: "https://docs.kernel.org/networking/ip-sysctl.html",
    explanation: include_str!("net_slow_start_after_idle.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Hana, Workload::Web]) {
        return Err(Outcome::not_applicable("it depends on the work; only judged for hana and web"));
    }
    let reading = &facts.net.settings.tcp_slow_start_after_idle;
    if !*need(reading)? {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, "connections forget after a pause how fast they may send")
            .with(Evidence::of(reading).expected(false))
            .remedy(Remedy::Set(vec![Setting::sysctl("net.ipv4.tcp_slow_start_after_idle", "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Workload,
        checks::net::shared_testing::{found, found_as, healthy},
    };

    #[test]
    fn only_for_those_who_ask_for_it() {
        let on = || healthy().file("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n");
        assert_eq!(found_as(&super::CHECK, on(), Workload::Hana).len(), 1);
        assert_eq!(found(&super::CHECK, on()), []);
    }
}
