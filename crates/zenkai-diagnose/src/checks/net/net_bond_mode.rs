//! A bond that sends everything over one link.

use zenkai_facts::{
    Facts,
    net::{Bond, Interface},
};

use super::shared::{at_least, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-bond-mode",
    subsystem: Subsystem::Net,
    summary: "a bond cannot use all of its links",
    impact: Impact::Depends,
    effect: "all traffic on one of the links; up to the number of links lost",
    risk: "the switch must be set up for 802.3ad before the bond is; packets of running connections may arrive out of order while the policy changes",
    source: "https://docs.kernel.org/networking/bonding.html",
    explanation: include_str!("net_bond_mode.md"),
    run,
};

/// Less traffic than this says nothing of how it is spread.
const LEAST_BYTES: u64 = 10_000_000_000;
/// More than this share on one link is no spreading.
const ONE_LINK: u64 = 900_000;

fn run(facts: &Facts, context: Context) -> Judgement {
    need(&facts.net.interfaces)
        .map(|interfaces| {
            let bonds = interfaces.iter().filter_map(|interface| Some((interface, interface.bond.as_ref()?)));
            Judgement::each(bonds, |(interface, bond)| judge(facts, context, interface, bond))
        })
        .into()
}

fn judge(
    facts: &Facts,
    context: Context,
    interface: &Interface,
    bond: &Bond,
) -> Result<Option<Finding>, Outcome> {
    let members = need(&bond.members)?;
    if !interface.is_up() || members.len() < 2 {
        return Err(Outcome::not_applicable("the bond is down, or has one member only"));
    }
    let subject = Subject::device(&interface.name);
    match need(&bond.mode)?.as_str() {
        "active-backup" if context.works_as(&[Workload::Network, Workload::Storage]) => Ok(Some(
            Finding::new(subject, format!("mode active-backup uses one of {} links", members.len()))
                .with(Evidence::of(&bond.mode).expected("802.3ad"))
                .remedy(Remedy::Do(
                    "where the switch allows it, mode 802.3ad with the hash policy layer3+4".into(),
                )),
        )),
        "802.3ad" | "balance-xor" => spread(facts, subject, bond),
        _ => Ok(None),
    }
}

/// The policies `layer2` and `layer2+3` look at addresses only: behind a router, or between two machines, all
/// packets look alike.
fn spread(facts: &Facts, subject: Subject, bond: &Bond) -> Result<Option<Finding>, Outcome> {
    let policy = need(&bond.transmit_hash_policy)?;
    if policy != "layer2" && policy != "layer2+3" {
        return Ok(None);
    }
    let sent = |name: &str| facts.net.interface(name)?.statistics.as_ref()?.tx_bytes.value();
    let members = need(&bond.members)?;
    let Some(bytes) = members.iter().map(|member| sent(&member.name)).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    let all = bytes.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let most = bytes.iter().copied().max().unwrap_or(0);
    if all < LEAST_BYTES || !at_least(most, all, ONE_LINK) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            subject,
            format!(
                "{} of what was sent left by one of {} links, with the hash policy {policy}",
                percent(most, all),
                bytes.len()
            ),
        )
        .with(Evidence::of(&bond.transmit_hash_policy).expected("layer3+4"))
        .with(Evidence::derived("statistics/tx_bytes of the members", format!("{bytes:?}")))
        .impact(Impact::Moderate)
        .remedy(Remedy::Do(format!("echo layer3+4 > {}", bond.transmit_hash_policy.source())))
        .because("the bond sends over one link"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{
        Workload,
        checks::net::shared_testing::{found, found_as, healthy},
    };

    fn bond(mode: &str, policy: &str, sent: [u64; 2]) -> FakeHost {
        let net = "/sys/class/net";
        let mut host = healthy()
            .file(&format!("{net}/bond0/bonding/mode"), &format!("{mode} 4\n"))
            .file(&format!("{net}/bond0/bonding/xmit_hash_policy"), &format!("{policy} 0\n"))
            .file(&format!("{net}/bond0/bonding/slaves"), "eth1 eth2\n")
            .file(&format!("{net}/bond0/carrier"), "1\n");
        for (name, sent) in ["eth1", "eth2"].iter().zip(sent) {
            let device = format!("/sys/devices/pci0000:00/{name}");
            host = host
                .file(&format!("{device}/vendor"), "0x8086\n")
                .link(&format!("{net}/{name}/device"), &device)
                .file(&format!("{net}/{name}/statistics/tx_bytes"), &format!("{sent}\n"));
        }
        host
    }

    #[test]
    fn only_when_the_traffic_really_takes_one_link() {
        let one = found(&super::CHECK, bond("802.3ad", "layer2", [990_000_000_000, 1_000_000_000]));
        assert_eq!(one[0].what, "99 % of what was sent left by one of 2 links, with the hash policy layer2");
        assert_eq!(found(&super::CHECK, bond("802.3ad", "layer2", [600_000_000_000, 400_000_000_000])), []);
        assert_eq!(found(&super::CHECK, bond("802.3ad", "layer3+4", [990_000_000_000, 1_000_000_000])), []);
        assert_eq!(found(&super::CHECK, bond("802.3ad", "layer2", [1_000_000, 0])), [], "no traffic yet");
    }

    #[test]
    fn active_backup_is_a_choice() {
        let backup = || bond("active-backup", "layer2", [990_000_000_000, 0]);
        assert_eq!(found(&super::CHECK, backup()), []);
        assert_eq!(found_as(&super::CHECK, backup(), Workload::Storage).len(), 1);
    }
}
