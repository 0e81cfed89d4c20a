//! Idle states switched off by hand.

use zenkai_facts::{Facts, idle::State};
use zenkai_tune::Setting;

use super::shared::states;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-states-disabled",
    subsystem: Subsystem::Idle,
    summary: "idle states are switched off",
    impact: Impact::Depends,
    effect: "wake-ups are faster, and the busy cores may get less turbo because the idle ones draw more power (no published number)",
    risk: "wake-ups take longer",
    source: "https://docs.kernel.org/admin-guide/pm/cpuidle.html",
    explanation: include_str!("idle_states_disabled.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    if context.works_as(&[Workload::Latency, Workload::Hana]) {
        return Outcome::not_applicable("such work rightly gives idle states up").into();
    }
    states(facts).map(|list| Judgement::each(list.iter().filter(|state| !state.is_polling()), judge)).into()
}

fn judge(state: &State) -> Result<Option<Finding>, Outcome> {
    // Some drivers leave a state off themselves.
    if state.disabled_on.is_empty() || state.off_by_default.value() == Some(true) {
        return Ok(None);
    }
    let path = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/disable", state.index);
    let settings = state.disabled_on.iter().map(|cpu| Setting::attribute(path(cpu), "0")).collect();
    let latency =
        state.latency_us.value().map_or_else(String::new, |latency| format!(" ({latency} µs to wake up)"));
    Ok(Some(
        Finding::new(
            Subject::Cpus(state.disabled_on.clone()),
            format!("idle state {}{latency} is switched off", need(&state.name)?),
        )
        .with(Evidence::derived(path(state.disabled_on.first().unwrap_or(0)), 1).expected(0))
        .remedy(Remedy::Set(settings)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Workload,
        checks::{
            idle::shared::worlds::{disable, healthy},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn found(host: FakeHost, workload: Option<Workload>) -> Vec<crate::Finding> {
        judge_host(&super::CHECK, host, Context { workload }).findings
    }

    #[test]
    fn switched_off_by_somebody() {
        let off = || disable(healthy(), 1, 3);
        assert!(found(off(), None)[0].what.contains("C6 (133 µs"));
        assert!(found(off(), Some(Workload::Hana)).is_empty());
        assert!(found(healthy(), None).is_empty());
        let by_driver = "/sys/devices/system/cpu/cpu1/cpuidle/state3/default_status";
        assert!(found(off().file(by_driver, "disabled\n"), None).is_empty());
    }
}
