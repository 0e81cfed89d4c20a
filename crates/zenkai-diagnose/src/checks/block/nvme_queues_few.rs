//! An NVMe drive with far fewer queues than there are CPUs.

use zenkai_facts::{Facts, block::Nvme};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "nvme-queues-few",
    subsystem: Subsystem::Block,
    summary: "an NVMe drive has far fewer queues than there are CPUs",
    impact: Impact::Small,
    effect: "CPUs share queues and interrupts; one queue for many CPUs caps requests per second (estimate)",
    risk: "none known",
    source: "https://github.com/torvalds/linux/blob/master/drivers/nvme/host/pci.c",
    explanation: include_str!("nvme_queues_few.md"),
    run,
};

/// Drives with fewer queues than this share of the CPUs are named; sharing a queue by a few CPUs costs little.
const CPUS_PER_QUEUE: usize = 8;

fn run(facts: &Facts, _context: Context) -> Judgement {
    need_or_not_applicable(&facts.block.nvme, "there is no NVMe here")
        .map(|controllers| Judgement::each(controllers, |controller| judge(facts, controller)))
        .into()
}

fn judge(facts: &Facts, controller: &Nvme) -> Result<Option<Finding>, Outcome> {
    if need(&controller.transport)? != "pcie" {
        return Err(Outcome::not_applicable("queues of network drives are chosen when connecting"));
    }
    // One of the queues is for administration.
    let queues = usize::try_from(need(&controller.queue_count)?.saturating_sub(1)).unwrap_or(usize::MAX);
    let cpus = need(&facts.cpu.online)?.len();
    if queues == 0 || cpus < 4 || cpus <= queues.saturating_mul(CPUS_PER_QUEUE) && (queues > 1 || cpus <= 4) {
        return Ok(None);
    }
    let plural = if queues == 1 { "" } else { "s" };
    Ok(Some(
        Finding::new(Subject::device(&controller.name), format!("{queues} queue{plural} for {cpus} CPUs"))
            .with(Evidence::of(&controller.queue_count).expected(cpus + 1))
            .with(Evidence::of(&facts.cpu.online))
            .impact(if queues == 1 { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Do(
                "if the drive can do more, look for a lack of interrupt vectors in the kernel log and for nvme.* \
                 arguments on the kernel command line; in a guest, ask for more queues from the hypervisor"
                    .into(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(queue_count: &str, online: &str) -> bool {
        let files = [
            ("/sys/class/nvme/nvme0/transport", "pcie"),
            ("/sys/class/nvme/nvme0/queue_count", queue_count),
            ("/sys/devices/system/cpu/online", online),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn a_few_cpus_may_share() {
        assert!(fires("2", "0-63"));
        assert!(fires("2", "0-7"));
        assert!(!fires("2", "0-1"), "a small guest");
        assert!(!fires("33", "0-127"), "four CPUs share a queue");
        assert!(!fires("65", "0-63"));
    }
}
