//! An NVMe controller that does not serve.

use zenkai_facts::{Facts, block::Nvme};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "nvme-controller-down",
    subsystem: Subsystem::Block,
    summary: "an NVMe controller is not serving",
    impact: Impact::Large,
    effect: "its requests wait, or the other paths carry them (estimate)",
    risk: "a reset fails the requests in work",
    source: "https://github.com/torvalds/linux/blob/master/drivers/nvme/host/sysfs.c",
    explanation: include_str!("nvme_controller_down.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need_or_not_applicable(&facts.block.nvme, "there is no NVMe here")
        .map(|controllers| Judgement::each(controllers, judge))
        .into()
}

fn judge(controller: &Nvme) -> Result<Option<Finding>, Outcome> {
    let state = need(&controller.state)?;
    if state == "live" {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::device(&controller.name), format!("the controller is {state}"))
            .with(Evidence::of(&controller.state).expected("live"))
            .remedy(Remedy::Do("look in the kernel log for timeouts and resets of this controller".into()))
            .because("an NVMe controller is down"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{findings, judge};

    #[test]
    fn anything_but_live() {
        let state = |text: &str| [("/sys/class/nvme/nvme0/state", format!("{text}\n"))];
        assert_eq!(findings(&super::CHECK, &state("resetting")).len(), 1);
        assert!(findings(&super::CHECK, &state("live")).is_empty());
        assert!(judge(&super::CHECK, &[("/x", "")]).not_applicable.is_some());
    }
}
