//! A short accept queue on a server with many connections.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-somaxconn-small",
    subsystem: Subsystem::Net,
    summary: "few connections may wait to be accepted",
    impact: Impact::Small,
    effect: "in a burst, connections beyond the limit wait a second or more",
    risk: "a little memory for waiting connections",
    source: "https://docs.kernel.org/admin-guide/sysctl/net.html",
    explanation: include_str!("net_somaxconn_small.md"),
    run,
};

/// What current kernels ship with; 128 was the value before Linux 5.4.
const ENOUGH: u64 = 4_096;
const SMALL: u64 = 1_024;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Web, Workload::Redis, Workload::Database, Workload::Mongodb]) {
        return Err(Outcome::not_applicable("how many connections may wait only matters for busy servers"));
    }
    let limit = &facts.net.settings.somaxconn;
    let now = *need(limit)?;
    if now >= SMALL {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, format!("{now} connections may wait to be accepted"))
            .with(Evidence::of(limit).expected(ENOUGH))
            .remedy(Remedy::Set(vec![Setting::sysctl("net.core.somaxconn", ENOUGH.to_string())])),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Workload,
        checks::net::shared_testing::{found, found_as, healthy},
    };

    #[test]
    fn only_for_servers() {
        let old = || healthy().file("/proc/sys/net/core/somaxconn", "128\n");
        assert_eq!(found_as(&super::CHECK, old(), Workload::Web).len(), 1);
        assert_eq!(found(&super::CHECK, old()), []);
    }
}
