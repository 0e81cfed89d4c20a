//! Packet sizes that do not fit together.

use zenkai_facts::{
    Facts,
    net::{Interface, Kind},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-mtu-mismatch",
    subsystem: Subsystem::Net,
    summary: "ports of a bridge or bond differ in packet size",
    impact: Impact::Small,
    effect: "large packets are lost on the way through, or the larger size is of no use",
    risk: "a wrong size cuts the machine off from parts of its network",
    source: "https://github.com/torvalds/linux/blob/master/net/bridge/br_forward.c",
    explanation: include_str!("net_mtu_mismatch.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.net.interfaces)
        .map(|interfaces| {
            let masters =
                interfaces.iter().filter(|one| matches!(one.kind, Kind::Bridge | Kind::Bond | Kind::Team));
            Judgement::each(masters, |master| judge(facts, master))
        })
        .into()
}

fn judge(facts: &Facts, master: &Interface) -> Result<Option<Finding>, Outcome> {
    let own = *need(&master.mtu_bytes)?;
    // Ports that lead out of the machine: what guests and containers choose inside is their affair.
    let ports = facts.net.interfaces().iter().filter(|port| {
        port.master.as_deref() == Some(&*master.name)
            && matches!(port.kind, Kind::Device | Kind::Bond | Kind::Vlan)
    });
    let other: Vec<&Interface> =
        ports.filter(|port| port.mtu_bytes.value().is_some_and(|mtu| mtu != own)).collect();
    let Some(first) = other.first() else { return Ok(None) };
    let theirs = first.mtu_bytes.value().unwrap_or(0);
    Ok(Some(
        Finding::new(
            Subject::device(&master.name),
            format!("packets up to {own} bytes, but {theirs} on its port {}", first.name),
        )
        .with(Evidence::of(&master.mtu_bytes))
        .with(Evidence::of(&first.mtu_bytes).expected(own))
        .with(Evidence::of(&facts.net.protocols.ip_fragmentation_failures))
        .remedy(Remedy::Do("give all of them the size that the network behind them has".into())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, found, healthy};

    #[test]
    fn a_bridge_and_its_uplink() {
        let bridge = "/sys/class/net/br0";
        let with = |mtu: &str| {
            healthy()
                .file(&format!("{bridge}/bridge/stp_state"), "0\n")
                .file(&format!("{bridge}/mtu"), mtu)
                .link(&format!("{ETH0}/master"), bridge)
        };
        let found_ = found(&super::CHECK, with("9000\n"));
        assert_eq!(found_[0].what, "packets up to 9000 bytes, but 1500 on its port eth0");
        assert_eq!(found(&super::CHECK, with("1500\n")), []);
    }
}
