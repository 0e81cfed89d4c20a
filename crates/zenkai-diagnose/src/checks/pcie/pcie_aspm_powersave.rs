//! A link power policy that trades latency for watts.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "pcie-aspm-powersave",
    subsystem: Subsystem::Pcie,
    summary: "PCIe links are put to sleep whenever they can be",
    impact: Impact::Small,
    effect: "each wake-up of a link takes microseconds, tens of them with L1 substates (estimate)",
    risk: "some watts more while devices are idle",
    source: "https://github.com/torvalds/linux/blob/master/drivers/pci/pcie/Kconfig",
    explanation: include_str!("pcie_aspm_powersave.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let policy = &facts.pcie.aspm_policy;
    let choice = need(policy)?;
    if !choice.current.starts_with("powers") {
        return Ok(None);
    }
    // The policy rules links; a guest without any has nothing to lose.
    let endpoints = need(&facts.pcie.endpoints)?;
    let mut hops = endpoints.iter().filter_map(|endpoint| endpoint.path.get()).flatten();
    if !hops.any(|hop| hop.current_width.value().is_some()) {
        return Err(Outcome::not_applicable("no device has a PCIe link here"));
    }
    let latency = context.works_as(&[Workload::Latency, Workload::Network, Workload::Redis]);
    Ok(Some(
        Finding::new(Subject::Machine, format!("the link power policy is {}", choice.current))
            .with(
                Evidence::of(&policy.clone().map(|choice| choice.current)).expected("default or performance"),
            )
            .impact(if latency { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Set(vec![Setting::attribute(
                policy.source(),
                if latency { "performance" } else { "default" },
            )])),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::add;
    use crate::{Context, checks::testing::judge_host};

    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";

    #[test]
    fn only_when_links_may_sleep() {
        let fires = |policy: &str| {
            let path = [("60400", ("8.0", 4), ("8.0", 4)), ("010802", ("8.0", 4), ("8.0", 4))];
            let (host, _) = add(FakeHost::new(&[(POLICY, policy)]), 1, &path);
            !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
        };
        assert!(fires("default performance [powersave] powersupersave \n"));
        assert!(fires("default performance powersave [powersupersave] \n"));
        assert!(!fires("[default] performance powersave powersupersave \n"));
    }
}
