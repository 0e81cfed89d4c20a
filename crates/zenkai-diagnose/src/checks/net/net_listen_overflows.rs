//! Accept queues overflow.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::{at_least, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-listen-overflows",
    subsystem: Subsystem::Net,
    summary: "connections are lost because a program accepts them too slowly",
    impact: Impact::Moderate,
    effect: "each lost request is repeated by the client after one second or more",
    risk: "more memory for waiting connections; a program that is too slow stays too slow",
    source: "https://docs.kernel.org/networking/snmp_counter.html",
    explanation: include_str!("net_listen_overflows.md"),
    run,
};

/// Fewer than this since boot are noise.
const LEAST: u64 = 1_000;
/// One connection in a thousand.
const SHARE: u64 = 1_000;
/// What current kernels ship with.
const ENOUGH: u64 = 4_096;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let protocols = &facts.net.protocols;
    let overflows = *need(&protocols.listen_overflows)?;
    let accepted = *need(&protocols.tcp_connections_accepted)?;
    if overflows < LEAST || !at_least(overflows, accepted, SHARE) {
        return Ok(None);
    }
    let limit = &facts.net.settings.somaxconn;
    let remedy = match limit.value() {
        Some(now) if now < ENOUGH => Remedy::Set(vec![Setting::sysctl("net.core.somaxconn", ENOUGH.to_string())]),
        _ => Remedy::Do(
            "find the listening socket with a full queue (`ss -ltn`: Recv-Q near Send-Q), then raise the backlog the \
             program asks for, or make it accept faster"
                .into(),
        ),
    };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!(
                "{overflows} connection requests ({} of those accepted) met a full queue",
                percent(overflows, accepted)
            ),
        )
        .with(Evidence::of(&protocols.listen_overflows).expected(0))
        .with(Evidence::of(&protocols.tcp_connections_accepted))
        .with(Evidence::of(limit))
        .remedy(remedy)
        .because("a program accepts connections too slowly"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Remedy,
        checks::net::shared_testing::{found, healthy},
    };

    #[test]
    fn a_few_are_forgiven() {
        let with = |count: u64| {
            healthy().file("/proc/net/netstat", &format!("TcpExt: ListenOverflows\nTcpExt: {count}\n"))
        };
        let finding = &found(&super::CHECK, with(20_000))[0];
        assert!(finding.what.starts_with("20000 connection requests (2.0 %"), "{}", finding.what);
        assert!(matches!(finding.remedy, Remedy::Do(_)));
        let small = found(&super::CHECK, with(20_000).file("/proc/sys/net/core/somaxconn", "128\n"));
        assert!(matches!(&small[0].remedy, Remedy::Set(_)));
        assert_eq!(found(&super::CHECK, with(900)), []);
    }
}
