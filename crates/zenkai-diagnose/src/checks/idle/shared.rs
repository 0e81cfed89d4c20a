//! What the checks of idle states have in common.

use std::collections::BTreeSet;

use zenkai_facts::{
    CpuSet, Facts,
    idle::{LatencyLimit, NO_LATENCY_LIMIT_US, State},
};

use crate::{Evidence, Outcome, need, need_or_not_applicable};

/// A limit on the wake-up latency that somebody holds now, for some CPUs or all.
pub(super) struct Held {
    /// For which CPUs.
    pub(super) cpus: CpuSet,
    /// At most this many µs.
    pub(super) limit_us: u64,
    /// Where it is seen.
    pub(super) evidence: Evidence,
}

/// Every limit in force. What cannot be read holds none that we know of.
pub(super) fn held_limits(facts: &Facts) -> Vec<Held> {
    let mut held = Vec::new();
    let global = &facts.idle.latency_limit_us;
    if let Some(limit) = global.value().filter(|limit| *limit < NO_LATENCY_LIMIT_US) {
        held.push(Held {
            cpus: facts.cpu.online.get().cloned().unwrap_or_default(),
            limit_us: u64::try_from(limit).unwrap_or(0),
            evidence: Evidence::of(global).expected("2000000000 (no limit)"),
        });
    }
    for group in facts.idle.cpu_latency_limits.get().map(Vec::as_slice).unwrap_or_default() {
        if let Some(LatencyLimit::Us(limit)) = group.value.value() {
            let shown = group.value.clone().map(|_| limit);
            held.push(Held {
                cpus: group.cpus.clone(),
                limit_us: limit.into(),
                evidence: Evidence::of(&shown).expected("no limit"),
            });
        }
    }
    held
}

/// Whether the limit for all CPUs could be seen: only root may.
pub(super) fn limits_are_readable(facts: &Facts) -> Result<(), Outcome> {
    let limit = &facts.idle.latency_limit_us;
    need_or_not_applicable(limit, "this kernel takes no latency limits").map(|_| ())
}

/// The idle states, when somebody here chooses between them.
pub(super) fn states(facts: &Facts) -> Result<&[State], Outcome> {
    let states = &facts.idle.states;
    if states.is_absent() {
        return Err(Outcome::not_applicable(if facts.virtualisation.cpus_are_lent() {
            "the idle states are the hypervisor's business"
        } else {
            "no cpuidle driver is at work"
        }));
    }
    need(states).map(Vec::as_slice)
}

/// The names of states, each once.
pub(super) fn names<'s>(states: impl IntoIterator<Item = &'s State>) -> String {
    let names: BTreeSet<(u32, &str)> =
        states.into_iter().map(|state| (state.index, state.name.text().unwrap_or("?"))).collect();
    names.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

/// Small worlds for the tests of this folder.
#[cfg(test)]
pub(super) mod worlds {
    use zenkai_host::FakeHost;

    /// The states of a Skylake server: name, latency, share of the idle time in per cent.
    const STATES: [(&str, u32); 4] = [("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133)];

    /// Two CPUs that were idle for 1000 s each, by these shares per state.
    pub(crate) fn idle(base: FakeHost, shares: [u64; 4]) -> FakeHost {
        let host = base.file("/sys/devices/system/cpu/online", "0-1\n");
        let host = host.file("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
        (0..8).fold(host, |host, at| {
            let (cpu, index) = (at / 4, at % 4);
            let (name, latency) = STATES[index];
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}");
            host.file(&format!("{dir}/name"), &format!("{name}\n"))
                .file(&format!("{dir}/latency"), &format!("{latency}\n"))
                .file(&format!("{dir}/disable"), "0\n")
                .file(&format!("{dir}/default_status"), "enabled\n")
                .file(&format!("{dir}/usage"), "1000\n")
                .file(&format!("{dir}/time"), &format!("{}\n", shares[index] * 10_000_000))
        })
    }

    /// A healthy server.
    pub(crate) fn healthy() -> FakeHost {
        idle(FakeHost::new(&[]), [0, 5, 15, 80])
    }

    /// Switches one state off on one CPU.
    pub(crate) fn disable(host: FakeHost, cpu: u32, state: u32) -> FakeHost {
        host.file(&format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable"), "1\n")
    }
}
