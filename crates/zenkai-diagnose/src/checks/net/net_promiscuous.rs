//! A forgotten capture.

use zenkai_facts::Facts;

use super::shared::{Card, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-promiscuous",
    subsystem: Subsystem::Net,
    summary: "a card passes all packets of the network to the kernel",
    impact: Impact::Small,
    effect: "CPU time for every packet that is not for this machine",
    risk: "programs that watch the network stop seeing it",
    source: "https://man7.org/linux/man-pages/man7/packet.7.html",
    explanation: include_str!("net_promiscuous.md"),
    run,
};

/// `IFF_PROMISC` (`linux/if.h`).
const PROMISCUOUS: u32 = 0x100;

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let flags = &card.interface.flags;
    // Ports of bridges and switches must take all packets, and so must what macvlan and the like are built on.
    let by_design = card.interface.master.is_some() || !card.interface.upper.is_empty();
    if need(flags)? & PROMISCUOUS == 0 || by_design {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            "in promiscuous mode, though no bridge or other device needs it",
        )
        .with(
            Evidence::derived(
                flags.source(),
                flags.value().map_or_else(String::new, |bits| format!("{bits:#x}")),
            )
            .expected("without 0x100"),
        )
        .remedy(Remedy::Do(format!(
            "stop the capture that is running, or `ip link set {} promisc off`",
            card.name()
        ))),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, found, healthy};

    #[test]
    fn not_where_it_is_needed() {
        let promiscuous = || healthy().file(&format!("{ETH0}/flags"), "0x1103\n");
        assert_eq!(found(&super::CHECK, promiscuous()).len(), 1);
        let bridged = promiscuous()
            .link(&format!("{ETH0}/master"), "/sys/class/net/br0")
            .file("/sys/class/net/br0/bridge/x", "");
        assert_eq!(found(&super::CHECK, bridged), []);
        let macvlan = promiscuous().link(&format!("{ETH0}/upper_mac0"), "/sys/class/net/eth0");
        assert_eq!(found(&super::CHECK, macvlan), []);
    }
}
