//! What the checks' own tests share: a small world written out by hand, and what one check says of it.

use zenkai_host::{
    FakeHost, Query, Reply,
    probe::{BusyClock, CpuClock, MemoryBandwidth, Probe, Reading, WakeLatency},
};

use crate::{Check, Context, Finding, Judgement};

/// What the check concludes on a complete small world of `(path, content)` pairs.
pub(crate) fn judge<P: AsRef<str>, C: AsRef<str>>(check: &Check, files: &[(P, C)]) -> Judgement {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, content)| (path.as_ref(), content.as_ref())).collect();
    judge_host(check, FakeHost::new(&files), Context::default())
}

/// What the check concludes on a host that needs more than files.
pub(crate) fn judge_host(check: &Check, host: FakeHost, context: Context) -> Judgement {
    (check.run)(&zenkai_facts::observe(&host), context)
}

/// What the check finds.
pub(crate) fn findings<P: AsRef<str>, C: AsRef<str>>(check: &Check, files: &[(P, C)]) -> Vec<Finding> {
    judge(check, files).findings
}

/// `/proc/cpuinfo` of an Intel machine with these CPUs in each socket.
pub(crate) fn cpu_info(sockets: &[&str], flags: &str) -> String {
    let cpus = sockets.iter().enumerate().flat_map(|(socket, cpus)| {
        let cpus: zenkai_facts::CpuSet = cpus.parse().unwrap();
        cpus.iter().map(|cpu| (socket, cpu)).collect::<Vec<_>>()
    });
    let block = |(socket, cpu)| {
        format!(
            "processor: {cpu}\nvendor_id: GenuineIntel\nphysical id: {socket}\ncore id: {cpu}\nflags: fpu {flags}\n\n"
        )
    };
    cpus.map(block).collect()
}

/// A probe of CPUs with these clocks (all busy, one busy; kHz) and this time-stamp counter, everything else healthy.
pub(crate) fn probe(clocks_khz: &[(u32, u32)], tsc_khz: u32) -> Probe {
    let busy = |khz: u32| {
        Reading::Value(BusyClock {
            clock_khz: Reading::Value(khz),
            peak_khz: Reading::Value(khz),
            cpu_share: 1.0,
            lost_share: 0.01,
            mul_add_ratio: Reading::Value(3.0),
            slices: 100,
            aperf_mperf_ratio: Reading::Absent("not in this test".into()),
        })
    };
    let clock =
        |(cpu, (all, one)): (u32, &(u32, u32))| CpuClock { cpu, all_busy: busy(*all), one_busy: busy(*one) };
    let bandwidth = |threads: u32, gb: f64| MemoryBandwidth {
        threads,
        buffer_bytes_per_thread: Reading::Value(1 << 28),
        buffers_per_llc: Reading::Value(4.0),
        read_gb_per_s: Reading::Value(gb),
        add_gb_per_s: Reading::Value(gb),
        cpu_share: Reading::Value(1.0),
    };
    let threads = u32::try_from(clocks_khz.len()).unwrap();
    Probe {
        cpus: (0..).zip(clocks_khz).map(clock).collect(),
        tsc_khz: Reading::Value(tsc_khz),
        syscall_ns: Reading::Value(100.0),
        clock_gettime_ns: Reading::Value(25.0),
        wake: vec![50, 1000].into_iter().map(|period_us| Reading::Value(wake(period_us, 20.0))).collect(),
        memory: vec![bandwidth(1, 12.0), bandwidth(threads, 12.0 * f64::from(threads))],
        elapsed_ms: 2500,
    }
}

/// A wake-up latency with this median, µs, on CPU 1.
pub(crate) fn wake(period_us: u32, p50_us: f64) -> WakeLatency {
    WakeLatency {
        cpu: 1,
        period_us,
        samples: 300,
        wake_min_us: p50_us / 2.0,
        wake_p50_us: p50_us,
        wake_p95_us: p50_us * 1.5,
        wake_p99_us: p50_us * 2.0,
        wake_max_us: p50_us * 9.0,
    }
}

/// What the check concludes on a small world in which this was measured.
pub(crate) fn judge_probed(check: &Check, files: &[(&str, &str)], probe: &Probe) -> Judgement {
    judge_probed_for(check, files, probe, Context::default())
}

/// As [`judge_probed`], for a workload.
pub(crate) fn judge_probed_for(
    check: &Check,
    files: &[(&str, &str)],
    probe: &Probe,
    context: Context,
) -> Judgement {
    let reply = Reply::Text(serde_json::to_string(probe).unwrap());
    judge_host(check, FakeHost::new(files).reply(&Query::Probe, reply), context)
}
