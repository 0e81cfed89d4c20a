//! Idle CPUs that run a loop instead of resting.

use std::collections::BTreeMap;

use zenkai_facts::{CpuSet, Facts, idle::State};
use zenkai_tune::Setting;

use super::shared::{held_limits, names, states};

use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-polling",
    subsystem: Subsystem::Idle,
    summary: "idle CPUs run a loop instead of resting",
    impact: Impact::Large,
    effect: "up to 2 times between modes in a published case: no turbo for the busy cores, and the other thread of the core is slowed",
    risk: "wake-ups take a few µs longer",
    source: "https://docs.kernel.org/admin-guide/pm/cpuidle.html",
    explanation: include_str!("idle_polling.md"),
    run,
};

/// Less idle time than this says nothing yet.
const LEAST_US: u64 = 60_000_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    if facts.kernel.argument("idle") == Some("poll") {
        return Ok(Some(
            Finding::new(Subject::Machine, "idle=poll keeps every idle CPU in a loop at full power")
                .with(Evidence::part(&facts.kernel.command_line, "idle=poll").expected("not given"))
                .remedy(Remedy::Set(vec![Setting::kernel_argument("idle", "")]))
                .because("idle CPUs poll (idle=poll) and take the turbo away"),
        ));
    }
    let states = states(facts)?;
    // A guest polls briefly on purpose before it halts, to spare both sides an exit.
    if facts.idle.governor.text() == Some("haltpoll") || facts.idle.driver.text() == Some("haltpoll") {
        return Err(Outcome::not_applicable("the haltpoll governor polls by design, for a bounded time"));
    }
    let Some(poll) = states.iter().find(|state| state.is_polling()) else { return Ok(None) };
    Ok(nothing_but_polling(facts, states, poll).or_else(|| mostly_polling(states, poll)))
}

/// CPUs on which every real state is switched off, or excluded by a latency limit.
fn nothing_but_polling(facts: &Facts, states: &[State], poll: &State) -> Option<Finding> {
    let real = || states.iter().filter(|state| !state.is_polling());
    real().next()?;
    let allowed: CpuSet = real().flat_map(|state| state.enabled_on().iter().collect::<Vec<_>>()).collect();
    let switched_off = poll.cpus.difference(&allowed);
    if !switched_off.is_empty() {
        let off = || real().filter(|state| !state.disabled_on.is_empty());
        let path = |cpu: u32, state: &State| {
            format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/disable", state.index)
        };
        let shallowest = real().min_by_key(|state| state.index)?;
        let settings =
            switched_off.iter().map(|cpu| Setting::attribute(path(cpu, shallowest), "0")).collect();
        return Some(
            Finding::new(Subject::Cpus(switched_off), "every idle state is switched off, so idle CPUs poll")
                .with(Evidence::derived(
                    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
                    format!("{} off", names(off())),
                ))
                .remedy(Remedy::Set(settings))
                .because("idle CPUs poll and take the turbo away"),
        );
    }
    let least = real().filter_map(|state| state.latency_us.value()).min()?;
    let held = held_limits(facts).into_iter().find(|held| held.limit_us < least)?;
    let limit = held.limit_us;
    Some(
        Finding::new(Subject::Cpus(held.cpus), format!("a latency limit of {limit} µs leaves idle CPUs nothing but polling"))
            .with(held.evidence)
            .remedy(Remedy::Do(
                "find who holds the limit (a tuned profile with force_latency, an open /dev/cpu_dma_latency: fuser -v /dev/cpu_dma_latency) and let it allow C1".into(),
            ))
            .because("idle CPUs poll and take the turbo away"),
    )
}

/// CPUs that spent most of their idle time polling since boot, for whatever reason.
fn mostly_polling(states: &[State], poll: &State) -> Option<Finding> {
    let mut idle_us: BTreeMap<u32, u64> = BTreeMap::new();
    for time in states.iter().flat_map(|state| &state.by_cpu) {
        let sum = idle_us.entry(time.cpu).or_default();
        *sum = sum.saturating_add(time.time_us);
    }
    let idle_of = |cpu: u32| idle_us.get(&cpu).copied().unwrap_or(0);
    let polling: CpuSet = poll
        .by_cpu
        .iter()
        .filter(|time| time.time_us >= LEAST_US && time.time_us > idle_of(time.cpu) / 2)
        .map(|time| time.cpu)
        .collect();
    if polling.is_empty() {
        return None;
    }
    let sum = |times: &mut dyn Iterator<Item = u64>| times.fold(0, u64::saturating_add) / 1_000_000;
    let polled = sum(&mut poll.by_cpu.iter().map(|time| time.time_us));
    let shown = format!("{polled} of {} s of all idle time", sum(&mut idle_us.values().copied()));
    Some(
        Finding::new(Subject::Cpus(polling), "more than half of the idle time since boot was spent polling")
            .with(Evidence::derived("/sys/devices/system/cpu/cpu*/cpuidle/state0/time", shown).expected("next to nothing"))
            .remedy(Remedy::Do(
                "find who forbids real idle states: a tuned profile with force_latency, the idle governor, disabled states".into(),
            ))
            .because("idle CPUs poll and take the turbo away"),
    )
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{
            idle::shared::worlds::{disable, healthy, idle},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn found(host: FakeHost) -> Vec<crate::Finding> {
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn the_ways_to_poll() {
        assert_eq!(found(healthy().file("/proc/cmdline", "ro idle=poll\n")).len(), 1);
        assert_eq!(found(idle(FakeHost::new(&[]), [90, 0, 0, 10]))[0].subject.to_string(), "CPUs 0-1");
        let off = (1..4).fold(healthy(), |host, state| disable(host, 1, state));
        assert_eq!(found(off)[0].subject.to_string(), "CPU 1");
        assert_eq!(found(healthy().file("/dev/cpu_dma_latency", "\0\0\0\0")).len(), 1);
        let one_cpu = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
        assert_eq!(found(healthy().file(one_cpu, "n/a\n"))[0].subject.to_string(), "CPU 0");
    }

    #[test]
    fn healthy_machines() {
        assert!(found(healthy()).is_empty());
        assert!(found(healthy().file("/dev/cpu_dma_latency", "\u{2}\0\0\0")).is_empty(), "C1 is allowed");
        assert!(found(disable(healthy(), 0, 3)).is_empty());
        let guest = idle(FakeHost::new(&[]), [90, 0, 0, 10]);
        assert!(
            found(guest.file("/sys/devices/system/cpu/cpuidle/current_governor", "haltpoll\n")).is_empty()
        );
        assert!(found(FakeHost::new(&[])).is_empty());
    }
}
