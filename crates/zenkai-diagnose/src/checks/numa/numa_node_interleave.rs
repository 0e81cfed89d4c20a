//! Several sockets in one node.

use zenkai_facts::Facts;

use crate::checks::shared::{needs_hardware, needs_own_cpus};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-node-interleave",
    subsystem: Subsystem::Numa,
    summary: "several sockets appear as one NUMA node",
    impact: Impact::Moderate,
    effect: "5 to 20 % for memory-bound work (estimate)",
    risk: "programs that expect one node may need other settings",
    source: "https://lenovopress.lenovo.com/lp1836-tuning-uefi-settings-4th-gen-intel-xeon-scalable-processor",
    explanation: include_str!("numa_node_interleave.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    needs_own_cpus(facts, "the hypervisor shows its own picture of the nodes")?;
    let numa = &facts.numa;
    let sockets = need(&facts.cpu.topology.packages)?.len();
    if sockets < 2 {
        return Err(Outcome::not_applicable("one socket"));
    }
    let nodes = need_or_not_applicable(&numa.nodes, "this kernel was built without NUMA")?.len();
    // Another check tells of NUMA that was switched off in the kernel.
    if nodes != 1 || facts.kernel.argument("numa") == Some("off") {
        return Ok(None);
    }
    // Sockets behind one front-side bus really have memory at one distance.
    if !*need(&facts.cpu.owns_memory_controller())? {
        return Err(Outcome::not_applicable("these CPUs share one memory controller"));
    }
    let advice = "switch node interleaving off (or NUMA on; NPS1 or more on EPYC)";
    Ok(Some(
        Finding::new(Subject::Machine, format!("{sockets} sockets appear as one node"))
            .with(Evidence::derived(numa.nodes.source(), "1 node").expected(format!("{sockets} or more")))
            .with(Evidence::derived(facts.cpu.topology.packages.source(), format!("{sockets} sockets")))
            .remedy(Remedy::Firmware(advice.to_owned()))
            .because("the firmware interleaves memory over the sockets"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{cpu_info, findings};

    fn fires(flags: &str, nodes: u32, more: &[(&str, &str)]) -> bool {
        let mut files = vec![
            ("/proc/cpuinfo".to_owned(), cpu_info(&["0-1", "2-3"], flags)),
            ("/sys/devices/system/cpu/online".to_owned(), "0-3\n".to_owned()),
        ];
        files.extend(
            (0..nodes).map(|node| (format!("/sys/devices/system/node/node{node}/cpulist"), "0\n".to_owned())),
        );
        files.extend(more.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())));
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn modern_sockets_have_their_own_memory() {
        assert!(fires("nonstop_tsc", 1, &[]));
        assert!(!fires("nonstop_tsc", 2, &[]));
        assert!(!fires("constant_tsc", 1, &[]), "Xeons of the front-side bus are one node by nature");
        assert!(!fires("nonstop_tsc hypervisor", 1, &[("/sys/class/dmi/id/sys_vendor", "VMware, Inc.")]));
        let dom0 = [("/sys/hypervisor/type", "xen\n"), ("/proc/xen/capabilities", "control_d\n")];
        assert!(!fires("nonstop_tsc", 1, &dom0), "Xen hides the nodes from dom0");
        assert!(!fires("nonstop_tsc", 1, &[("/proc/cmdline", "numa=off\n")]));
    }
}
