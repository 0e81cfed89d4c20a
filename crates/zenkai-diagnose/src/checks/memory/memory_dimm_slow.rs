//! Memory clocked below what modules and CPU allow.

use zenkai_facts::{Facts, memory::speed_limit};

use crate::checks::shared::needs_hardware;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-dimm-slow",
    subsystem: Subsystem::Memory,
    summary: "memory runs below what modules and CPU can do",
    impact: Impact::Moderate,
    effect: "the ratio of the clocks, for work that is bound by memory bandwidth",
    risk: "a restart; modules at their full speed draw more power",
    source: "https://lenovopress.lenovo.com/lp1517-balanced-memory-configurations-3rd-gen-2s-intel-processors",
    explanation: include_str!("memory_dimm_slow.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    let reading = &facts.memory.modules;
    let modules = need(reading)?;
    let speeds: Option<Vec<(u32, u32)>> =
        modules.installed().map(|(_, module)| Some((module.rated_mtps?, module.configured_mtps?))).collect();
    let speeds = speeds.unwrap_or_default();
    let (Some(rated), Some(configured)) = (
        speeds.iter().map(|(rated, _)| *rated).min(),
        speeds.iter().map(|(_, configured)| *configured).max(),
    ) else {
        return Err(Outcome::not_applicable("the firmware does not tell the modules' speeds"));
    };
    if configured >= rated {
        return Ok(None);
    }
    // Most machines that run below their modules' speed do so because the CPU allows no more.
    let names: Vec<&str> =
        modules.processors.iter().filter_map(|processor| processor.name.as_deref()).collect();
    let Some((name, limit)) = names.iter().find_map(|name| Some((*name, speed_limit(name)?))) else {
        return Err(Outcome::not_applicable(
            "the memory speed limit of this CPU model is not known to zenkai",
        ));
    };
    let sockets = modules.populated_sockets().max(1);
    if modules.installed().count()
        > sockets.saturating_mul(usize::try_from(limit.channels).unwrap_or(usize::MAX))
    {
        return Err(Outcome::not_applicable(
            "with two modules in a channel the platform may lower the clock",
        ));
    }
    let possible = rated.min(limit.mtps);
    // Firmware rounds: 2667 and 2666, 2934 and 2933.
    if configured.saturating_add(1) >= possible {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("memory runs at {configured} MT/s where {possible} is possible"),
        )
        .with(
            Evidence::derived(
                reading.source(),
                format!("configured {configured}, modules rated {rated} MT/s"),
            )
            .expected(format!("{possible} MT/s")),
        )
        .with(Evidence::derived(format!("limit of {name}"), format!("{} MT/s", limit.mtps)))
        .remedy(Remedy::Firmware("set the memory frequency to maximum or auto".to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{memory::shared_table, testing::judge_host},
    };

    fn fires(cpu: &str, rated: u16, configured: u16, modules: usize) -> bool {
        let slots = vec![shared_table::slot("BANK 0", 16_384, rated, configured); modules];
        !judge_host(&super::CHECK, shared_table::host(cpu, &slots), Context::default()).findings.is_empty()
    }

    #[test]
    fn only_below_what_the_cpu_allows() {
        assert!(fires("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 2933, 2666, 6));
        assert!(
            !fires("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz", 2133, 1866, 4),
            "the limit of this model"
        );
        assert!(!fires("Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", 2667, 2400, 6));
        assert!(!fires("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 2933, 2666, 12), "two in a channel");
        assert!(!fires("Unheard of", 2933, 2666, 6));
        assert!(!fires("AMD EPYC 7763 64-Core Processor", 3200, 3200, 8));
    }
}
