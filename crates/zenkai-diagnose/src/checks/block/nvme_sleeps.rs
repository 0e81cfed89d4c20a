//! NVMe drives that may doze off between requests.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "nvme-sleeps",
    subsystem: Subsystem::Block,
    summary: "NVMe drives may fall asleep between requests",
    impact: Impact::Depends,
    effect: "the first request after a pause waits for the drive to wake up, up to the allowed time (estimate)",
    risk: "drives stay warmer when idle",
    source: "https://github.com/torvalds/linux/blob/master/drivers/nvme/host/core.c",
    explanation: include_str!("nvme_sleeps.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Latency, Workload::Redis, Workload::Database]) {
        return Err(Outcome::not_applicable("it only matters where latency does (see --workload latency)"));
    }
    let disks = need(&facts.block.disks)?;
    if !disks.iter().any(|disk| !disk.nvme_controllers.is_empty() && disk.is_real_hardware()) {
        return Err(Outcome::not_applicable("there is no NVMe drive here"));
    }
    let allowed = *need(&facts.block.nvme_max_wakeup_us)?;
    if allowed == 0 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("drives may take states that need up to {allowed} µs to wake from"),
        )
        .with(Evidence::of(&facts.block.nvme_max_wakeup_us).expected(0))
        .remedy(Remedy::Set(vec![Setting::kernel_argument("nvme_core.default_ps_max_latency_us", "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{NVME, SATA, disk, judged};
    use crate::Workload;

    #[test]
    fn only_where_latency_matters() {
        let fires = |place, limit: &str, workload| {
            let path = "/sys/module/nvme_core/parameters/default_ps_max_latency_us";
            !judged(&super::CHECK, disk(place, &[]).file(path, limit), workload).findings.is_empty()
        };
        assert!(fires(NVME, "100000\n", Some(Workload::Latency)));
        assert!(!fires(NVME, "100000\n", None));
        assert!(!fires(NVME, "0\n", Some(Workload::Latency)));
        assert!(!fires(SATA, "100000\n", Some(Workload::Latency)));
    }
}
