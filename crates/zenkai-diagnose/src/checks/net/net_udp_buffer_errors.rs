//! Socket buffers of UDP overflow.

use zenkai_facts::Facts;

use super::shared::{at_least, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-udp-buffer-errors",
    subsystem: Subsystem::Net,
    summary: "programs lose UDP datagrams because their buffer is full",
    impact: Impact::Moderate,
    effect: "the datagrams are gone",
    risk: "more memory per socket that asks for it",
    source: "https://github.com/torvalds/linux/blob/master/net/ipv4/proc.c",
    explanation: include_str!("net_udp_buffer_errors.md"),
    run,
};

/// Fewer than this since boot are noise.
const LEAST: u64 = 1_000;
/// One datagram in a thousand.
const SHARE: u64 = 1_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let protocols = &facts.net.protocols;
    let lost = *need(&protocols.udp_receive_buffer_errors)?;
    let received = *need(&protocols.udp_received)?;
    if lost < LEAST || !at_least(lost, received, SHARE) {
        return Ok(None);
    }
    let limit = &facts.net.settings.rmem_max_bytes;
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{lost} UDP datagrams ({} of those received) met a full socket buffer", percent(lost, received)),
        )
        .with(Evidence::of(&protocols.udp_receive_buffer_errors).expected(0))
        .with(Evidence::of(&protocols.udp_received))
        .with(Evidence::of(limit))
        .remedy(Remedy::Do(
            "find the socket (`ss -uanm`, the number after `d`), let its program ask for a larger buffer, and raise \
             net.core.rmem_max to allow it"
                .into(),
        )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn in_numbers_only() {
        let with = |lost: u64| {
            healthy().file("/proc/net/snmp", &format!("Udp: InDatagrams RcvbufErrors\nUdp: 1000000 {lost}\n"))
        };
        assert_eq!(found(&super::CHECK, with(50_000)).len(), 1);
        assert_eq!(found(&super::CHECK, with(500)), []);
    }
}
