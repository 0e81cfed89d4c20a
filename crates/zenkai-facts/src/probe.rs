//! What the machine really did under load, when a probe was run.

use zenkai_host::{
    Query, Reply,
    probe::{Probe, Reading},
};

use crate::{Observed, Reader, Reason};

/// The result of the active probe; [`Reason::NotAsked`] when none was run.
pub fn observe(reader: &Reader<'_>) -> Observed<Probe> {
    let text = reader.query(&Query::Probe, |reply| match reply {
        Reply::Text(text) => Some(text.clone()),
        _ => None,
    });
    match text.reason() {
        Some(Reason::NotRecorded) => {
            let how = "made without a probe; `zenkai capture --probe` adds one";
            Observed::unavailable("probe", Reason::NotAsked(how.to_owned()))
        }
        Some(_) => {
            let how = "`zenkai doctor --probe` loads the machine for three seconds and measures it";
            Observed::unavailable("probe", Reason::NotAsked(how.to_owned()))
        }
        None => text.parse(|text| {
            let probe: Probe = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            if is_possible(&probe) { Ok(probe) } else { Err("a figure that no probe can measure".to_owned()) }
        }),
    }
}

/// Nothing that is measured in three seconds takes longer, and no memory is a thousand times faster than today's.
fn is_possible(probe: &Probe) -> bool {
    const LONGEST_US: f64 = 60e6;
    let waits = probe.wake.iter().filter_map(Reading::value);
    let waits = waits.flat_map(|wake| [wake.wake_p50_us, wake.wake_p95_us, wake.wake_p99_us]);
    let costs = [&probe.syscall_ns, &probe.clock_gettime_ns].into_iter().filter_map(Reading::value).copied();
    let bandwidths = probe.memory.iter().filter_map(|memory| memory.read_gb_per_s.value()).copied();
    let shares = probe.cpus.iter().flat_map(|cpu| [&cpu.all_busy, &cpu.one_busy]).filter_map(Reading::value);
    let shares = shares.flat_map(|busy| [busy.cpu_share, busy.lost_share]);
    waits.chain(costs.map(|ns| ns / 1000.0)).all(|us| (0.0..LONGEST_US).contains(&us))
        && bandwidths.into_iter().all(|gb| (0.0..1e6).contains(&gb))
        // A thread on a clock of its own may seem to run a little longer than the wall's.
        && shares.into_iter().all(|share| (-1.0..=2.0).contains(&share))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Query, Reply};

    use super::*;

    #[test]
    fn figures_that_no_probe_measures_are_refused() {
        let with = |syscall: &str| {
            let text = format!(
                "{{\"cpus\":[],\"tsc_khz\":{{\"absent\":\"x\"}},\"syscall_ns\":{{\"value\":{syscall}}},\
                 \"clock_gettime_ns\":{{\"value\":25.0}},\"wake\":[],\"memory\":[],\"elapsed_ms\":1}}"
            );
            let host = FakeHost::new(&[]).reply(&Query::Probe, Reply::Text(text));
            observe(&Reader::new(&host))
        };
        assert!(with("100.0").get().is_some());
        assert!(matches!(with("1e300").reason(), Some(Reason::Malformed(_))));
        assert!(matches!(with("-5.0").reason(), Some(Reason::Malformed(_))));
    }
}
