//! CPU time vanishes that no counter accounts for.

use zenkai_facts::{CpuSet, Facts};
use zenkai_host::probe::CpuClock;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-time-vanishes",
    subsystem: Subsystem::Virtualisation,
    summary: "CPU time vanishes that no counter accounts for",
    impact: Impact::Moderate,
    effect: "the missing share of CPU time (measured here)",
    risk: "none for the measurement",
    source: "https://docs.kernel.org/virt/kvm/x86/msr.html",
    explanation: include_str!("virtualisation_time_vanishes.md"),
    run,
};

/// Interrupts and timer ticks take a per cent or two; more than this share went elsewhere.
const NOTABLE_SHARE: f64 = 0.1;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let probe = need(&facts.probe)?;
    let lost: Vec<(u32, f64)> = probe.cpus.iter().filter_map(vanished).collect();
    if lost.is_empty() {
        return Err(Outcome::not_applicable("no CPU gave a steady measurement"));
    }
    let notable: Vec<&(u32, f64)> = lost.iter().filter(|(_, share)| *share > NOTABLE_SHARE).collect();
    // One CPU may have been unlucky for a fraction of a second.
    if notable.len() * 2 <= lost.len() {
        return Ok(None);
    }
    let worst = notable.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let remedy = if in_guest(facts) {
        Remedy::Hypervisor(
            "the host runs other guests on these CPUs: move, pin or pay for dedicated ones".to_owned(),
        )
    } else {
        Remedy::Firmware(
            "look for system management interrupts: switch off power monitoring and memory pre-failure scans"
                .to_owned(),
        )
    };
    Ok(Some(
        Finding::new(
            Subject::Cpus(notable.iter().map(|(cpu, _)| *cpu).collect::<CpuSet>()),
            format!(
                "up to {:.0} % of the time that the scheduler gave to a busy thread did no work",
                worst * 100.0
            ),
        )
        .with(
            Evidence::derived(
                "probe, work done against time given",
                format!("{:.1} % missing", worst * 100.0),
            )
            .expected(format!("below {:.0} %", NOTABLE_SHARE * 100.0)),
        )
        .with(Evidence::of(&facts.virtualisation.kind))
        .remedy(remedy),
    ))
}

/// The share of time lost beyond what the scheduler knows of.
fn vanished(cpu: &CpuClock) -> Option<(u32, f64)> {
    let busy = cpu.all_busy.value()?;
    busy.clock_khz.value()?;
    Some((cpu.cpu, busy.lost_share - (1.0 - busy.cpu_share)))
}

#[cfg(test)]
mod tests {
    use zenkai_host::probe::Reading;

    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn other_work_is_not_vanished_time() {
        let mut measured = probe(&[(3_000_000, 3_000_000); 2], 2_700_000);
        let mut set = |share: f64, lost: f64| {
            for cpu in &mut measured.cpus {
                if let Reading::Value(busy) = &mut cpu.all_busy {
                    (busy.cpu_share, busy.lost_share) = (share, lost);
                }
            }
            judge_probed(&super::CHECK, &[], &measured).findings.len()
        };
        assert_eq!(set(1.0, 0.02), 0);
        assert_eq!(set(0.5, 0.52), 0, "half the time went to another process of ours");
        assert_eq!(set(1.0, 0.3), 1);
    }
}
