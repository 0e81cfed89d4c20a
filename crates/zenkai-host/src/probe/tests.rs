use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use rustix::thread::{CpuSet, current_timer_slack, sched_getaffinity, sched_setaffinity};

use super::report::Reading;
use super::slices::{LEAST_SLICES, Slices, self_check};
use super::{ProbeOptions, aperf, busy, chain, crew, limits, memory, run, stats, wake};

fn quick() -> ProbeOptions {
    ProbeOptions {
        all_busy: Duration::from_millis(20),
        one_busy: Duration::from_millis(20),
        one_busy_cpus: 2,
        wake: Duration::from_millis(5),
        memory: Duration::from_millis(30),
    }
}

#[test]
fn percentiles_are_nearest_rank() {
    let values: Vec<u64> = (1..=100).collect();
    assert_eq!(stats::percentile(&values, 0.0), Some(1));
    assert_eq!(stats::percentile(&values, 0.5), Some(50));
    assert_eq!(stats::percentile(&values, 0.95), Some(95));
    assert_eq!(stats::percentile(&values, 0.99), Some(99));
    assert_eq!(stats::percentile(&values, 1.0), Some(100));
    assert_eq!(stats::percentile(&[7], 0.99), Some(7));
    assert_eq!(stats::percentile(&[1, 2], 0.99), Some(2), "a high percentile of few values is the maximum");
    assert_eq!(stats::percentile(&[], 0.5), None);
    assert_eq!(stats::median(&[9, 1, 5]), Some(5));
}

proptest! {
    #[test]
    fn percentiles_are_values_and_ascend(mut values in prop::collection::vec(any::<u64>(), 1..200), a in 0.0..1.0, b in 0.0..1.0) {
        values.sort_unstable();
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let (low, high) = (stats::percentile(&values, low).unwrap(), stats::percentile(&values, high).unwrap());
        prop_assert!(low <= high);
        prop_assert!(values.contains(&low) && values.contains(&high));
    }

    #[test]
    fn sums_are_right_whatever_the_length(words in prop::collection::vec(any::<u64>(), 0..100)) {
        prop_assert_eq!(memory::sum(&words), words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
    }

    #[test]
    fn samples_of_cpus_are_distinct_and_in_range(count in 0_usize..2000, most in 0_usize..40) {
        let sample = busy::spread(count, most);
        prop_assert_eq!(sample.len(), count.min(most));
        prop_assert!(sample.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(sample.iter().all(|&index| index < count));
    }
}

/// Slice times at a clock, for given cycles per addition and multiplication.
fn slice_ns(ghz: f64, add_cycles: f64, mul_cycles: f64) -> (u64, u64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
    let ns = |count: u64, cycles: f64| (stats::to_f64(count) * cycles / ghz).round() as u64;
    (ns(chain::ADD_CYCLES, add_cycles), ns(chain::MUL_COUNT, mul_cycles))
}

#[test]
fn self_check_accepts_real_cores_and_rejects_folded_additions_and_emulators() {
    let x86 = [3, 4];
    for (add_cycles, mul_cycles, plausible) in [
        (1.0, 3.0, true),
        (1.0, 4.0, true),
        (1.02, 3.1, true),
        // Additions folded two, four or five at a time.
        (0.5, 3.0, false),
        (0.25, 3.0, false),
        (0.2, 3.0, false),
        // Emulated: every instruction costs the same.
        (1.0, 1.0, false),
        (1.0, 6.0, false),
    ] {
        for ghz in [0.8, 2.1, 5.7] {
            let (add_ns, mul_ns) = slice_ns(ghz, add_cycles, mul_cycles);
            let (ratio, verdict) = self_check(add_ns, mul_ns, &x86);
            assert_eq!(verdict.is_ok(), plausible, "{add_cycles} {mul_cycles} {ghz}: {verdict:?}");
            let ratio = ratio.value().copied().unwrap();
            assert!((ratio - mul_cycles / add_cycles).abs() < 0.01, "{ratio}");
        }
    }
    assert!(self_check(0, 10, &x86).1.is_err());
    assert!(self_check(10, 30, &[]).1.is_err());
}

fn slices(ghz: f64, add_cycles: f64, count: usize) -> Slices {
    let (add_ns, mul_ns) = slice_ns(ghz, add_cycles, 3.0);
    let wall_ns = (add_ns + mul_ns) * count as u64;
    Slices { add_ns: vec![add_ns; count], mul_ns: vec![mul_ns; count], wall_ns, cpu_ns: wall_ns }
}

fn no_counters() -> Reading<f64> {
    Reading::absent("no counters")
}

#[test]
fn steal_and_preemption_lower_the_shares_and_not_the_clock() {
    if chain::MUL_LATENCIES.is_empty() {
        return;
    }
    // Every third slice is interrupted, half of the time it takes by something the scheduler accounts.
    let mut slices = slices(2.0, 1.0, 9);
    let lost_ns = 3 * 4_000_000;
    for slice_ns in slices.add_ns.iter_mut().step_by(3) {
        *slice_ns += 4_000_000;
    }
    let undisturbed_ns = slices.wall_ns;
    slices.wall_ns += lost_ns;
    slices.cpu_ns = undisturbed_ns + lost_ns / 2;
    let clock = slices.into_clock(no_counters());
    let clock = clock.value().unwrap();
    assert_eq!(clock.clock_khz, Reading::Value(2_000_000));
    assert_eq!(clock.peak_khz, Reading::Value(2_000_000));
    let lost = stats::share(lost_ns, undisturbed_ns + lost_ns);
    assert!((clock.lost_share - lost).abs() < 1e-6, "{clock:?}");
    assert!((clock.cpu_share - (1.0 - lost / 2.0)).abs() < 1e-6, "{clock:?}");
}

#[test]
fn a_contradiction_is_reported_instead_of_a_clock() {
    if chain::MUL_LATENCIES.is_empty() {
        return;
    }
    let clock = slices(2.0, 0.2, 9).into_clock(no_counters());
    let clock = clock.value().unwrap();
    assert!(clock.clock_khz.reason().unwrap().starts_with("inconsistent"), "{clock:?}");
    assert_eq!(clock.peak_khz.value(), None);
    assert!(clock.mul_add_ratio.value().is_some(), "the evidence stays");
}

#[test]
fn too_few_slices_are_no_clock() {
    let clock = slices(2.0, 1.0, LEAST_SLICES - 1).into_clock(no_counters());
    assert_eq!(clock.value().unwrap().clock_khz.value(), None, "{clock:?}");
}

#[test]
fn no_slice_is_no_clock() {
    assert_eq!(Slices::default().into_clock(no_counters()).value(), None);
}

#[test]
fn wakes_are_summarised_in_microseconds() {
    let wake = wake::summarise(3, 50, vec![2000, 1000, 90_500]).unwrap();
    assert_eq!((wake.cpu, wake.period_us, wake.samples), (3, 50, 3));
    let us = |value: f64| format!("{value:.1}");
    let all = [wake.wake_min_us, wake.wake_p50_us, wake.wake_p99_us, wake.wake_max_us].map(us);
    assert_eq!(all, ["1.0", "2.0", "90.5", "90.5"]);
    assert_eq!(wake::summarise(3, 50, Vec::new()), None);
}

#[test]
fn counters_that_stand_still_are_no_ratio() {
    let before = aperf::Counts { aperf: 5, mperf: 5 };
    assert!(before.ratio_since(before).is_err());
    let wrapped = aperf::Counts { aperf: u64::MAX - 9, mperf: 0 };
    assert_eq!(aperf::Counts { aperf: 20, mperf: 10 }.ratio_since(wrapped), Ok(3.0));
}

#[test]
fn buffers_respect_caches_memory_and_limits() {
    const MIB: u64 = 1 << 20;
    let plenty = 1 << 40;
    assert_eq!(memory::bytes_per_thread(Some(32 * MIB), plenty, 1), Ok(128 * MIB));
    assert_eq!(memory::bytes_per_thread(Some(64 * MIB), plenty, 4), Ok(64 * MIB));
    assert_eq!(memory::bytes_per_thread(None, plenty, 1), Ok(64 * MIB));
    assert_eq!(memory::bytes_per_thread(Some(4096 * MIB), plenty, 1), Ok(1024 * MIB), "bounded");
    assert_eq!(memory::bytes_per_thread(Some(512 * MIB), 1024 * MIB, 4), Ok(32 * MIB), "an eighth in sum");
    assert!(memory::bytes_per_thread(Some(32 * MIB), 1024 * MIB, 256).is_err());
    assert!(memory::bytes_per_thread(Some(32 * MIB), 0, 1).is_err());
}

#[test]
fn threads_that_take_turns_are_no_faster_together() {
    let span = |start_ns| memory::Span { bytes: 1000, start_ns, end_ns: start_ns + 100 };
    let rates = [[0, 0], [0, 100], [0, 300]].map(|starts| memory::together(starts.into_iter().map(span)));
    assert_eq!(rates.map(|rate| format!("{rate:.1}")), ["20.0", "10.0", "5.0"]);
    assert!(memory::together(std::iter::empty()).abs() < f64::EPSILON);
}

#[test]
fn limits_are_parsed() {
    let meminfo = "MemTotal:       24557392 kB\nMemAvailable:   24000000 kB\n";
    assert_eq!(limits::mem_available(meminfo), Some(24_000_000 * 1024));
    assert_eq!(limits::mem_available("MemTotal: 1 kB\n"), None);
    assert_eq!(limits::mem_available("MemAvailable: 99999999999999999999 kB\n"), None);
    assert_eq!(limits::cache_bytes("266240K"), Some(266_240 << 10));
    assert_eq!(limits::cache_bytes("0K"), None, "some hypervisors report none");
    assert_eq!(limits::cache_bytes(""), None);
    assert_eq!(
        limits::cgroup_memory_dirs("4:memory:/a/b\n3:cpuset:/x\n1:name=systemd:/y\nbroken\n0::/\n"),
        ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"],
    );
}

#[test]
fn additions_move_what_they_count() {
    let mut block = vec![1_u64, 1, 10, 20, 300, 400, 7];
    assert_eq!(memory::add(&mut block), 48);
    assert_eq!(block, [310, 420, 10, 20, 300, 400, 7]);
}

#[test]
fn the_crew_works_without_a_cpu_that_does_not_exist() {
    let allowed = crew::allowed_cpus().unwrap();
    let absent = 1023;
    assert!(!allowed.contains(&absent), "this test needs a machine with fewer CPUs");
    let mut cpus = allowed.clone();
    cpus.push(absent);
    let results = crew::on_each(&cpus, &|member| {
        member.meet();
        (member.cpu, sched_getaffinity(None).unwrap().count())
    })
    .unwrap();
    for (cpu, result) in results {
        match result {
            Ok(worked) => assert_eq!(worked, (cpu, 1)),
            Err(_) => assert_eq!(cpu, absent),
        }
    }
}

#[test]
fn hundreds_of_threads_start_and_meet() {
    let allowed = crew::allowed_cpus().unwrap();
    let cpus: Vec<u32> = allowed.into_iter().cycle().take(256).collect();
    let started = crew::on_each(&cpus, &|member| {
        member.meet();
        member.meet();
        member.started_ns()
    })
    .unwrap();
    let times: BTreeSet<u64> = started.into_iter().map(|(_, at_ns)| at_ns.unwrap()).collect();
    assert_eq!(times.len(), 1, "all count from the same moment");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn perf_counters_are_read_where_the_kernel_offers_them() {
    use super::aperf::Counters;

    assert!(Counters::perf("tsc", "no_such_event").is_err());
    // The one event of the PMU that every kernel has; denied where perf_event_paranoid says so.
    let Ok(counters) = Counters::perf("tsc", "tsc") else { return };
    let before = counters.read().unwrap();
    chain::adds();
    let ratio = counters.read().unwrap().ratio_since(before).unwrap();
    assert!((0.5..2.0).contains(&ratio), "the same event twice: {ratio}");
}

#[test]
fn a_run_covers_every_allowed_cpu_and_leaves_no_trace() {
    let affinity = sched_getaffinity(None).unwrap();
    let slack = current_timer_slack().unwrap();
    let mut lines = Vec::new();
    let probe = run(&quick(), &mut |line| lines.push(line.to_owned())).unwrap();

    assert!(sched_getaffinity(None).unwrap() == affinity);
    assert_eq!(current_timer_slack().unwrap(), slack);
    assert!(lines.len() >= 5);
    let cpus: Vec<u32> = probe.cpus.iter().map(|clock| clock.cpu).collect();
    assert_eq!(cpus, crew::allowed_cpus().unwrap());
    for clock in &probe.cpus {
        let busy = clock.all_busy.value().unwrap();
        assert!(busy.slices > 0);
        assert!((0.0..=1.0).contains(&busy.cpu_share) && (0.0..=1.0).contains(&busy.lost_share), "{busy:?}");
        // Either a clock or a contradiction, but never a clock that the other chain denies.
        if let (Reading::Value(median), Reading::Value(peak)) = (&busy.clock_khz, &busy.peak_khz) {
            assert!(0 < *median && median <= peak, "{busy:?}");
        }
    }
    assert_eq!(probe.wake.len(), 2);
    for wake in &probe.wake {
        let wake = wake.value().unwrap();
        assert!(wake.samples > 0 && wake.wake_p50_us <= wake.wake_p99_us, "{wake:?}");
    }
    assert!(*probe.syscall_ns.value().unwrap() > 0.0);
    assert!(*probe.clock_gettime_ns.value().unwrap() > 0.0);
    assert_eq!(probe.memory.len(), 2);

    let json = serde_json::to_string(&probe).unwrap();
    assert_eq!(serde_json::from_str::<super::Probe>(&json).unwrap(), probe);
}

#[test]
fn a_run_stays_inside_the_affinity_of_its_caller() {
    let last = crew::allowed_cpus().unwrap().pop().unwrap();
    // In a thread of its own, because the mask is the thread's.
    std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(last as usize);
        sched_setaffinity(None, &only).unwrap();
        let probe = run(&quick(), &mut |_| {}).unwrap();
        assert_eq!(probe.cpus.iter().map(|clock| clock.cpu).collect::<Vec<_>>(), [last]);
        assert!(probe.memory.iter().all(|bandwidth| bandwidth.threads == 1));
    })
    .join()
    .unwrap();
}
