//! VMware hides NUMA from a large guest.

use zenkai_facts::{Facts, virtualisation::Kind};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-no-vnuma",
    subsystem: Subsystem::Virtualisation,
    summary: "a large VMware guest sees one NUMA node",
    impact: Impact::Depends,
    effect: "memory of the other socket is used unknowingly; VMware tells of reduced performance for wide guests, without a general number",
    risk: "without CPU hot-add, adding CPUs needs the guest to be powered off",
    source: "https://knowledge.broadcom.com/external/article?legacyId=2040375",
    explanation: include_str!("virtualisation_no_vnuma.md"),
    run,
};

/// VMware shows NUMA from 9 virtual CPUs on, but only to guests that do not fit into one socket of the host. Most
/// hosts have sockets of up to this many cores, so that below it one node is likely to be the truth.
const CPUS_OF_ONE_SOCKET: usize = 32;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    if *need(&facts.virtualisation.kind)? != Kind::Vmware {
        return Err(Outcome::not_applicable("not a VMware guest"));
    }
    let nodes = need(&facts.numa.nodes)?;
    let online = &facts.cpu.online;
    let cpus = need(online)?.len();
    if nodes.len() != 1 || cpus <= CPUS_OF_ONE_SOCKET {
        return Ok(None);
    }
    let advice = "switch CPU hot-add off for this guest (it hides NUMA), power it off and on again";
    Ok(Some(
        Finding::new(Subject::Machine, format!("{cpus} virtual CPUs share one NUMA node"))
            .with(Evidence::of(online))
            .with(
                Evidence::derived(facts.numa.nodes.source(), "1 node")
                    .expected("one for each socket the guest spans"),
            )
            .remedy(Remedy::Hypervisor(advice.to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(cpus: &str, nodes: u32, vendor: &str) -> bool {
        let mut files = vec![
            ("/proc/cpuinfo".to_owned(), "flags : fpu hypervisor\n".to_owned()),
            ("/sys/class/dmi/id/sys_vendor".to_owned(), vendor.to_owned()),
            ("/sys/devices/system/cpu/online".to_owned(), cpus.to_owned()),
        ];
        files.extend(
            (0..nodes).map(|node| (format!("/sys/devices/system/node/node{node}/cpulist"), cpus.to_owned())),
        );
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_wide_guests_of_vmware() {
        assert!(fires("0-63", 1, "VMware, Inc."));
        assert!(!fires("0-63", 2, "VMware, Inc."));
        assert!(!fires("0-15", 1, "VMware, Inc."), "fits into one socket");
        assert!(!fires("0-63", 1, "QEMU"));
    }
}
