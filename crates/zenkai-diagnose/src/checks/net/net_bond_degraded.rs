//! A bond that lost a member.

use zenkai_facts::{
    Facts,
    net::{Bond, BondMember, Interface},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-bond-degraded",
    subsystem: Subsystem::Net,
    summary: "a bond works with fewer links than it has",
    impact: Impact::Moderate,
    effect: "the share of the missing links, in modes that use all of them; otherwise the redundancy",
    risk: "the link goes down while the cable is changed",
    source: "https://docs.kernel.org/networking/bonding.html",
    explanation: include_str!("net_bond_degraded.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.net.interfaces)
        .map(|interfaces| {
            let bonds = interfaces.iter().filter_map(|interface| Some((interface, interface.bond.as_ref()?)));
            Judgement::each(bonds, |(interface, bond)| judge(interface, bond))
        })
        .into()
}

fn judge(interface: &Interface, bond: &Bond) -> Result<Option<Finding>, Outcome> {
    let members = need(&bond.members)?;
    if !interface.is_up() || members.len() < 2 {
        return Err(Outcome::not_applicable("the bond is down, or has one member only"));
    }
    let mode = need(&bond.mode)?;
    let out: Vec<&BondMember> = members.iter().filter(|member| is_out(bond, mode, member)).collect();
    if out.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = out.iter().map(|member| member.name.as_str()).collect();
    let mut finding = Finding::new(
        Subject::device(&interface.name),
        format!(
            "{} of {} links ({}) take no part, in mode {mode}",
            out.len(),
            members.len(),
            names.join(", ")
        ),
    )
    .with(Evidence::of(&bond.mode));
    for member in out {
        finding = finding.with(Evidence::of(&member.link).expected("up"));
        if mode == "802.3ad" {
            let expected = bond.active_aggregator.value().map_or_else(String::new, |id| id.to_string());
            finding = finding.with(Evidence::of(&member.aggregator).expected(expected));
        }
    }
    // Where one link works and the others wait, nothing but the safety net is lost.
    let impact = if mode == "active-backup" { Impact::Small } else { Impact::Moderate };
    Ok(Some(
        finding
            .impact(impact)
            .remedy(Remedy::Do(
                "check cable and switch port of the link; with 802.3ad also that the switch has all ports in one group".into(),
            ))
            .because("the bond has lost a link"),
    ))
}

fn is_out(bond: &Bond, mode: &str, member: &BondMember) -> bool {
    let down = member.link.text().is_some_and(|link| link != "up");
    let elsewhere = match (member.aggregator.value(), bond.active_aggregator.value()) {
        (Some(own), Some(active)) => mode == "802.3ad" && own != active,
        _ => false,
    };
    down || elsewhere
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{
        Impact,
        checks::net::shared_testing::{found, healthy},
    };

    fn bond(mode: &str, second: &str, aggregator: u32) -> FakeHost {
        let net = "/sys/class/net";
        healthy()
            .file(&format!("{net}/bond0/bonding/mode"), &format!("{mode} 4\n"))
            .file(&format!("{net}/bond0/bonding/slaves"), "eth1 eth2\n")
            .file(&format!("{net}/bond0/bonding/ad_aggregator"), "1\n")
            .file(&format!("{net}/bond0/carrier"), "1\n")
            .file(&format!("{net}/eth1/bonding_slave/mii_status"), "up\n")
            .file(&format!("{net}/eth1/bonding_slave/ad_aggregator_id"), "1\n")
            .file(&format!("{net}/eth2/bonding_slave/mii_status"), &format!("{second}\n"))
            .file(&format!("{net}/eth2/bonding_slave/ad_aggregator_id"), &format!("{aggregator}\n"))
    }

    #[test]
    fn down_or_in_another_group() {
        assert_eq!(found(&super::CHECK, bond("802.3ad", "up", 1)), []);
        let down = &found(&super::CHECK, bond("802.3ad", "down", 1))[0];
        assert_eq!(down.what, "1 of 2 links (eth2) take no part, in mode 802.3ad");
        assert_eq!(found(&super::CHECK, bond("802.3ad", "up", 2)).len(), 1);
        let backup = &found(&super::CHECK, bond("active-backup", "down", 1))[0];
        assert_eq!(backup.impact, Some(Impact::Small));
    }
}
