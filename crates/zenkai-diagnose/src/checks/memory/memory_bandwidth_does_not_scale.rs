//! all CPUs together get hardly more memory bandwidth than one.

use zenkai_facts::Facts;
use zenkai_host::probe::MemoryBandwidth;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-bandwidth-does-not-scale",
    subsystem: Subsystem::Memory,
    summary: "all CPUs together get hardly more memory bandwidth than one",
    impact: Impact::Depends,
    effect: "bandwidth-bound work gains nothing from more CPUs (measured here)",
    risk: "none for the measurement",
    source: "https://lenovopress.lenovo.com/lp1517-balanced-memory-configurations-3rd-gen-2s-intel-processors",
    explanation: include_str!("memory_bandwidth_does_not_scale.md"),
    run,
};

/// With fewer CPUs, one core may well use most of what a single channel gives.
const CPUS_LEAST: u32 = 8;
/// Server sockets of the last decade have at least four channels, of which one core uses one or two.
const SCALING_LEAST: f64 = 1.5;
/// Below these the figures say nothing: the caches took part, or other work did.
const BUFFERS_PER_CACHE_LEAST: f64 = 2.0;
const SHARE_LEAST: f64 = 0.95;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let probe = need(&facts.probe)?;
    let [one, all] = probe.memory.as_slice() else {
        return Err(Outcome::not_applicable("memory bandwidth was not measured"));
    };
    if all.threads < CPUS_LEAST {
        return Err(Outcome::not_applicable("too few CPUs to saturate the memory"));
    }
    if facts.cpu.model_name.text().is_some_and(has_two_channels) {
        return Err(Outcome::not_applicable(
            "this CPU has two memory channels, most of which one core can use",
        ));
    }
    let (Some(one_gb), Some(all_gb)) = (sound(one), sound(all)) else {
        return Err(Outcome::not_applicable("other work or large caches took part in the measurement"));
    };
    if all_gb >= one_gb * SCALING_LEAST {
        return Ok(None);
    }
    let remedy = if in_guest(facts) {
        Remedy::Hypervisor(
            "the host's memory channels are shared or half empty; ask for another host".to_owned(),
        )
    } else {
        Remedy::Hardware(
            "populate all memory channels evenly; `zenkai facts memory` lists the modules".to_owned(),
        )
    };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{} CPUs read {all_gb:.0} GB/s together, one alone {one_gb:.0} GB/s", all.threads),
        )
        .with(
            Evidence::derived("probe, memory read by all CPUs", format!("{all_gb:.1} GB/s"))
                .expected(format!("at least {:.0}", one_gb * SCALING_LEAST)),
        )
        .remedy(remedy),
    ))
}

/// Desktop, mobile and entry server CPUs. One core of a recent one reads two thirds of what two channels give.
fn has_two_channels(name: &str) -> bool {
    const FAMILIES: [&str; 9] = [
        "Core(TM)",
        "Core 2",
        "Xeon(R) E-",
        "Xeon(R) CPU E3-",
        "Xeon(R) W-1",
        "Pentium",
        "Celeron",
        "Ryzen",
        "EPYC 4",
    ];
    !name.contains("Threadripper") && FAMILIES.iter().any(|family| name.contains(family))
}

fn sound(bandwidth: &MemoryBandwidth) -> Option<f64> {
    let past_caches = *bandwidth.buffers_per_llc.value()? >= BUFFERS_PER_CACHE_LEAST;
    let undisturbed = *bandwidth.cpu_share.value()? >= SHARE_LEAST;
    bandwidth.read_gb_per_s.value().copied().filter(|_| past_caches && undisturbed)
}

#[cfg(test)]
mod tests {
    use zenkai_host::probe::Reading;

    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn judged_only_when_the_figures_are_sound() {
        let mut measured = probe(&[(3_000_000, 3_000_000); 16], 2_700_000);
        assert!(judge_probed(&super::CHECK, &[], &measured).findings.is_empty());
        measured.memory[1].read_gb_per_s = Reading::Value(14.0);
        assert_eq!(judge_probed(&super::CHECK, &[], &measured).findings.len(), 1);
        let desktop = [("/proc/cpuinfo", "processor: 0\nmodel name: AMD Ryzen 7 5800X 8-Core Processor\n")];
        assert!(judge_probed(&super::CHECK, &desktop, &measured).not_applicable.is_some());
        measured.memory[1].cpu_share = Reading::Value(0.5);
        assert!(judge_probed(&super::CHECK, &[], &measured).not_applicable.is_some());
        let few = probe(&[(3_000_000, 3_000_000); 2], 2_700_000);
        assert!(judge_probed(&super::CHECK, &[], &few).not_applicable.is_some());
    }
}
