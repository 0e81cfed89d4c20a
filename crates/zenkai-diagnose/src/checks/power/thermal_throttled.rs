//! CPUs that heat slowed down for a noticeable time.

use zenkai_facts::{CpuSet, Facts, Observed};

use crate::checks::cpu::shared::{cpus_of_package, intel_registers, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "thermal-throttled",
    subsystem: Subsystem::Power,
    summary: "heat slows the CPUs down",
    impact: Impact::Moderate,
    effect: "the share of time in which the clock is held down; how far it falls is not counted",
    risk: "none",
    source: "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/thermal/intel/therm_throt.c",
    explanation: include_str!("thermal_throttled.md"),
    run,
};

/// A thousandth of the time since boot; our own threshold. A few events while fans spin up are normal.
const NOTICEABLE: f64 = 0.001;
const SEVERE: f64 = 0.05;

/// Where no time is counted (kernels before 5.6): events per hour; our own threshold.
const EVENTS_PER_HOUR: f64 = 10.0;

fn run(facts: &Facts, _context: Context) -> Judgement {
    if let Some(now) = now(facts) {
        return Ok(Some(now)).into();
    }
    judge(facts).into()
}

/// The thermal status bit of a package: throttled at this moment.
fn now(facts: &Facts) -> Option<Finding> {
    let registers = intel_registers(facts).ok()?;
    let hot = registers.iter().find_map(|package| {
        let both = [&package.therm_status, &package.package_therm_status];
        let reading = both.into_iter().find(|reading| reading.value().is_some_and(|status| status.bit(0)))?;
        Some((package.package, reading))
    });
    let (package, reading) = hot?;
    Some(told(
        Finding::new(Subject::Cpus(cpus_of_package(facts, package)), "throttled by heat at this moment")
            .with(Evidence::of(reading).expected("bit 0 clear"))
            .impact(Impact::Large),
    ))
}

fn told(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::Hardware(
            "check fans, air flow, dust, heat sinks and the room; choose a stronger thermal profile in the firmware".into(),
        ))
        .because("heat throttles it")
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let uncounted = "this CPU or kernel does not count thermal events";
    let throttle = need_or_not_applicable(&facts.thermal.throttle, uncounted)?;
    let uptime = *need(&facts.kernel.uptime_s)?;
    let all = facts.cpu.online.get().cloned().unwrap_or_default();
    let core = (throttle.throttled_cpus.clone(), &throttle.core_time_ms, &throttle.core_events);
    let packages = throttle
        .packages
        .iter()
        .map(|package| (cpus_of_package(facts, package.package), &package.time_ms, &package.events));
    let worst = packages.chain([core]).max_by_key(|(_, time, events)| (time.value(), events.value()));
    let Some((cpus, time, events)) = worst else { return Ok(None) };
    let cpus = if cpus.is_empty() { all } else { cpus };
    Ok(if time.get().is_some() { by_time(&cpus, time, uptime) } else { by_events(&cpus, events, uptime) })
}

fn by_time(cpus: &CpuSet, time: &Observed<u64>, uptime: u64) -> Option<Finding> {
    let share = ratio(time.value()?, uptime.saturating_mul(1000));
    if uptime == 0 || share < NOTICEABLE {
        return None;
    }
    let what = format!("throttled by heat for {:.1} % of the time since boot", share * 100.0);
    let impact = if share >= SEVERE { Impact::Large } else { Impact::Moderate };
    let expected = "below a thousandth of the time since boot";
    Some(told(
        Finding::new(Subject::Cpus(cpus.clone()), what)
            .with(Evidence::of(time).expected(expected))
            .impact(impact),
    ))
}

fn by_events(cpus: &CpuSet, events: &Observed<u64>, uptime: u64) -> Option<Finding> {
    let per_hour = ratio(events.value()?.saturating_mul(3600), uptime.max(3600));
    (per_hour >= EVENTS_PER_HOUR).then(|| {
        let what = format!("throttled by heat {per_hour:.0} times an hour since boot");
        told(
            Finding::new(Subject::Cpus(cpus.clone()), what)
                .with(Evidence::of(events).expected("next to none")),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Impact,
        checks::{
            cpu::shared::worlds::{epyc, with_registers, xeon},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn world(events: &str, time: Option<&str>) -> FakeHost {
        let host = xeon("").file("/proc/uptime", "100000.00 1.00\n");
        (0..2).fold(host, |host, cpu| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            let host = host.file(&format!("{dir}/core_throttle_count"), events);
            match time {
                Some(time) => host.file(&format!("{dir}/core_throttle_total_time_ms"), time),
                None => host,
            }
        })
    }

    fn impact(host: FakeHost) -> Option<Impact> {
        judge_host(&super::CHECK, host, Context::default())
            .findings
            .first()
            .map(|finding| finding.impact.unwrap_or(Impact::Moderate))
    }

    #[test]
    fn time_counts_more_than_events() {
        assert_eq!(impact(world("900\n", Some("9000000\n"))), Some(Impact::Large));
        assert_eq!(impact(world("900\n", Some("500000\n"))), Some(Impact::Moderate));
        assert_eq!(impact(world("900\n", Some("5000\n"))), None, "short events");
        assert_eq!(impact(world("900\n", None)), Some(Impact::Moderate));
        assert_eq!(impact(world("12\n", None)), None);
        assert_eq!(impact(world("0\n", Some("0\n"))), None);
    }

    #[test]
    fn at_this_moment() {
        assert_eq!(impact(with_registers(world("0\n", None), &[(0x19c, 0x8800_0001)])), Some(Impact::Large));
        let amd = judge_host(&super::CHECK, epyc(""), Context::default());
        assert!(amd.findings.is_empty() && amd.not_applicable.is_some());
    }
}
