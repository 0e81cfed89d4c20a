//! A balloon driver holds memory of this guest.

use zenkai_facts::Facts;

use crate::checks::shared::per_cent;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-balloon",
    subsystem: Subsystem::Virtualisation,
    summary: "the hypervisor took memory back",
    impact: Impact::Moderate,
    effect: "the memory in the balloon is missing for caches and work; what it costs depends on the work",
    risk: "the host needs that memory elsewhere",
    source: "https://docs.oasis-open.org/virtio/virtio/v1.2/virtio-v1.2.html",
    explanation: include_str!("virtualisation_balloon.md"),
    run,
};

/// Thousandths of the guest's memory below which a balloon is of no account.
const LEAST_PER_MILLE: u64 = 50;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let virtualisation = &facts.virtualisation;
    let balloon = match virtualisation.balloon.get() {
        None if virtualisation.balloon.is_absent() => {
            return Err(Outcome::not_applicable("no balloon driver"));
        }
        _ => need(&virtualisation.balloon)?,
    };
    if balloon.size_bytes.is_absent() {
        return Err(Outcome::not_applicable(format!(
            "{} does not tell the size of its balloon",
            balloon.driver
        )));
    }
    let taken_kb = need(&balloon.size_bytes)? / 1024;
    let left_kb = need(&facts.memory.info)?.total_kb;
    let share = taken_kb.saturating_mul(1000).checked_div(left_kb.saturating_add(taken_kb)).unwrap_or(0);
    if share < LEAST_PER_MILLE {
        return Ok(None);
    }
    let what =
        format!("{} MiB ({}) of this guest's memory are in the balloon", taken_kb / 1024, per_cent(share));
    let advice =
        "reserve the guest's memory on the host, or give the guest as much as the host can spare for good";
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&balloon.size_bytes).expected("next to nothing"))
            .with(Evidence::derived(facts.memory.info.source(), format!("{left_kb} kB left")))
            .impact(if share >= 250 { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Hypervisor(advice.to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, checks::testing::judge_host};

    fn fires(inflated: u64) -> bool {
        let host = FakeHost::new(&[
            ("/proc/cpuinfo", "flags : fpu hypervisor\n"),
            ("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1 kB\n"),
            ("/proc/vmstat", &format!("balloon_inflate {inflated}\nballoon_deflate 0\n")),
            ("/sys/devices/virtio0/device", "0x0005\n"),
        ])
        .link("/sys/bus/virtio/drivers/virtio_balloon/virtio0", "/sys/devices/virtio0");
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn only_a_balloon_with_something_in_it() {
        assert!(fires(1_000_000));
        assert!(!fires(0), "the driver alone is normal");
        assert!(!fires(1000));
    }
}
