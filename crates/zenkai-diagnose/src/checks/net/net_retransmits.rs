//! Losses on the way.

use zenkai_facts::Facts;

use super::shared::{at_least, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-retransmits",
    subsystem: Subsystem::Net,
    summary: "TCP sends a lot again",
    impact: Impact::Moderate,
    effect: "each loss makes a connection slower, up to a second of silence when a timer has to find it",
    risk: "none",
    source: "https://www.rfc-editor.org/rfc/rfc4022",
    explanation: include_str!("net_retransmits.md"),
    run,
};

/// With fewer segments than this a share means nothing.
const LEAST: u64 = 1_000_000;
/// One in a hundred, and one in fifty.
const SOME: u64 = 10_000;
const MANY: u64 = 20_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let protocols = &facts.net.protocols;
    let sent = *need(&protocols.tcp_segments_sent)?;
    let again = *need(&protocols.tcp_segments_retransmitted)?;
    if sent < LEAST || !at_least(again, sent, SOME) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, format!("{} of all TCP segments were sent again", percent(again, sent)))
            .with(Evidence::of(&protocols.tcp_segments_retransmitted).expected("below 1 % of those sent"))
            .with(Evidence::of(&protocols.tcp_segments_sent))
            .with(Evidence::of(&protocols.tcp_timeouts))
            .impact(if at_least(again, sent, MANY) { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Do(
                "find the path that loses packets: `ss -ti` shows retransmissions per connection; then cables, duplex, \
                 full queues and flow control on that path"
                    .into(),
            ))
            .because("the network loses packets"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Impact,
        checks::net::shared_testing::{found, healthy, snmp},
    };

    #[test]
    fn needs_traffic_first() {
        let with = |sent: u64, again: u64| healthy().file("/proc/net/snmp", &snmp(sent, again));
        assert_eq!(
            found(&super::CHECK, with(10_000_000, 500_000))[0].what,
            "5.0 % of all TCP segments were sent again"
        );
        assert_eq!(found(&super::CHECK, with(10_000_000, 150_000))[0].impact, Some(Impact::Small));
        assert_eq!(found(&super::CHECK, with(10_000, 5_000)), [], "just booted");
        assert_eq!(found(&super::CHECK, with(10_000_000, 50_000)), []);
    }
}
