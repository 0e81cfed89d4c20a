//! An argument is configured for the kernel, but it was started without it.

use zenkai_facts::{
    Facts,
    kernel::{BootArgument, CommandLine},
};

use crate::checks::shared::outside_container;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-argument-not-in-force",
    subsystem: Subsystem::Kernel,
    summary: "a configured kernel argument is not in force",
    impact: Impact::Depends,
    effect: "whatever the argument was meant to bring",
    risk: "an argument that was never in force may do harm when it comes into force",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("kernel_argument_not_in_force.md"),
    run,
};

/// Arguments that bear on speed. A key ending in a dot stands for all options of a module.
const BEARING: [&str; 37] = [
    "amd_iommu",
    "amd_pstate",
    "audit",
    "clocksource",
    "cpuidle.governor",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "numa_balancing",
    "nvme.",
    "nvme_core.",
    "pcie_aspm",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "skew_tick",
    "split_lock_detect",
    "transparent_hugepage",
    "tsc",
    "tsx",
    "swiotlb",
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    outside_container(facts, "the kernel and its arguments are the container's host's")
        .and_then(|()| need(&facts.kernel.command_line))
        .map(|line| judge_all(facts, line))
        .into()
}

fn judge_all(facts: &Facts, line: &CommandLine) -> Judgement {
    let boot = &facts.kernel.boot;
    let sources = [&boot.entry, &boot.grub_default];
    let configured = sources
        .into_iter()
        .flat_map(|reading| reading.get().into_iter().flatten().map(|argument| (reading.source(), argument)));
    let mut seen: Vec<&BootArgument> = Vec::new();
    Judgement::each(configured, |(source, argument)| {
        // Both places normally say the same; it is told once.
        if seen.contains(&argument) {
            return Ok(None);
        }
        seen.push(argument);
        Ok(judge(source, argument, line))
    })
}

fn judge(source: &str, argument: &BootArgument, line: &CommandLine) -> Option<Finding> {
    let key = argument.key.as_str();
    let bears = BEARING.iter().any(|known| key == *known || (known.ends_with('.') && key.starts_with(known)));
    if !bears || line.all(key).any(|value| value == argument.value.as_deref()) {
        return None;
    }
    let running = match line.argument(key) {
        None => "nothing of it".to_owned(),
        Some(None) => key.to_owned(),
        Some(Some(value)) => format!("{key}={value}"),
    };
    Some(
        Finding::new(
            Subject::device(argument.to_string()),
            "is configured, but the kernel was started without it",
        )
        .with(Evidence::derived("/proc/cmdline", running).expected(argument))
        .with(Evidence::derived(source, argument))
        .remedy(Remedy::Do(
            "make the boot loader's configuration anew (update-grub, grub2-mkconfig or grubby) and reboot"
                .to_owned(),
        )),
    )
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn found(grub: &str, line: &str) -> Vec<String> {
        let grub = format!("GRUB_CMDLINE_LINUX=\"{grub}\"\n");
        let files = [("/etc/default/grub", grub.as_str()), ("/proc/cmdline", line)];
        findings(&super::CHECK, &files).iter().map(|finding| finding.subject.to_string()).collect()
    }

    #[test]
    fn only_what_bears_on_speed() {
        assert_eq!(found("quiet isolcpus=2-3 idle=poll", "ro isolcpus=2-3"), ["idle=poll"]);
        assert_eq!(
            found("transparent_hugepage=never", "transparent_hugepage=madvise"),
            ["transparent_hugepage=never"]
        );
        assert!(
            found(
                "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=9",
                "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=9"
            )
            .is_empty()
        );
        assert!(found("quiet splash", "ro").is_empty());
    }

    #[test]
    fn an_image_with_a_boot_loader_says_nothing_of_its_host() {
        let files = [
            ("/etc/default/grub", "GRUB_CMDLINE_LINUX=idle=poll\n"),
            ("/proc/cmdline", "ro"),
            ("/run/.containerenv", "engine=\"podman\"\n"),
        ];
        assert_eq!(findings(&super::CHECK, &files), []);
    }
}
