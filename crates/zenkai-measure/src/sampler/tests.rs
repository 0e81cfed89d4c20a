//! The sampler on the machine that runs the tests, beside what that machine is known to have done.

#![expect(clippy::disallowed_methods, reason = "tests make their own load and files")]
#![expect(clippy::float_cmp, reason = "the numbers are made so that they come out exactly")]

use std::{
    hint::black_box,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use proptest::prelude::*;
use zenkai_host::gauges::{real_time_ns, thread_cpu_ns};

use super::{taker::Header, *};

fn options(milliseconds: u64) -> Options {
    Options { interval: Duration::from_millis(milliseconds), ..Options::default() }
}

fn recorded(milliseconds: u64, options: &Options) -> Recording {
    let sampler = Sampler::start(options).unwrap();
    std::thread::sleep(Duration::from_millis(milliseconds));
    sampler.stop()
}

fn total(recording: &Recording, name: &str) -> f64 {
    let summaries = recording.summaries();
    let found = summaries.iter().find(|each| each.channel.name == name);
    found.and_then(|each| each.total).unwrap_or_else(|| panic!("no total of {name}"))
}

#[test]
fn a_spin_is_seen_as_user_time() {
    let sampler = Sampler::start(&options(20)).unwrap();
    let before = thread_cpu_ns();
    let mut sum = 0_u64;
    while thread_cpu_ns() - before < 200_000_000 {
        for _ in 0..1_000 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
    }
    let spun_s = replay::seconds(thread_cpu_ns() - before);
    let recording = sampler.stop();
    let means = recording.means();
    let cpus =
        recording.channels().iter().filter(|each| each.words.starts_with("user time, share of CPU ")).count();
    let cpus = f64::from(u32::try_from(cpus).unwrap());
    let busy = 1.0 - means["cpu.idle"] - means["cpu.iowait"];
    // The kernel counts in hundredths of a second, on each CPU, and rounds both ends.
    let seen_s = busy * cpus * recording.duration_s();
    assert!(seen_s >= spun_s - 0.02 * cpus - 0.02, "{seen_s} s seen, {spun_s} s spun: {means:?}");
    let shares: f64 = ["usr", "sys", "idle", "iowait", "irq", "softirq", "steal"]
        .iter()
        .map(|part| means[&format!("cpu.{part}")])
        .sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    for (name, share) in means.iter().filter(|(name, _)| name.starts_with("cpu")) {
        assert!((0.0..=1.0).contains(share), "{name} {share}");
    }
}

#[test]
fn switches_of_a_ping_pong_are_counted() {
    const ROUNDS: u32 = 2_000;
    let sampler = Sampler::start(&options(50)).unwrap();
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        for _ in 0..ROUNDS {
            there.read_exact(&mut byte).unwrap();
            there.write_all(&byte).unwrap();
        }
    });
    let mut byte = [7];
    for _ in 0..ROUNDS {
        here.write_all(&byte).unwrap();
        here.read_exact(&mut byte).unwrap();
    }
    other.join().unwrap();
    let switches = total(&sampler.stop(), "sched.context_switches");
    // Each of the two sleeps once a round, unless it finds the answer already there, on another CPU.
    assert!(switches >= f64::from(ROUNDS), "{switches}");
}

#[test]
fn what_is_written_to_a_file_reaches_a_disk() {
    const SIZE: usize = 4 << 20;
    // Best where the sources are: /tmp may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).or_else(|_| tempfile::tempdir()).unwrap();
    let device = rustix::fs::stat(dir.path()).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    if !std::path::Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
        println!("not tested: {} is on no block device", dir.path().display());
        return;
    }
    let sampler = Sampler::start(&options(50)).unwrap();
    let mut file = std::fs::File::create(dir.path().join("data")).unwrap();
    file.write_all(&vec![0xa5; SIZE]).unwrap();
    file.sync_all().unwrap();
    let recording = sampler.stop();
    let written: f64 = recording
        .summaries()
        .iter()
        .filter(|each| each.channel.name.starts_with("block.") && each.channel.name.ends_with(".write_bytes"))
        .filter_map(|each| each.total)
        .sum();
    assert!(written >= 4_194_304.0, "{written}");
}

#[test]
fn the_workloads_process_and_its_children_are_counted() {
    let us = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let sampler = Sampler::start(&Options { pid: Some(us), ..options(20) }).unwrap();
    let recording = sampler.stop();
    let missing = recording.missing();
    let seen = recording.channels().iter().any(|each| each.name == "perf.task_clock");
    // Counted, or the reason is told.
    assert!(seen || missing.iter().any(|(name, _)| name.starts_with("perf")), "{missing:?}");
}

#[test]
fn what_is_not_there_is_told_and_not_zero() {
    let options = Options { cgroup: Some("/sys/fs/cgroup/zenkai-no-such-group".to_owned()), ..options(20) };
    let recording = recorded(60, &options);
    let missing = recording.missing();
    assert!(
        missing.iter().any(|(name, reason)| name == "cgroup" && reason.contains("No such file")),
        "{missing:?}"
    );
    assert!(!recording.channels().iter().any(|each| each.group == "cgroup"));
    for (name, reason) in &missing {
        assert!(!name.is_empty() && !reason.is_empty(), "{name}: {reason}");
    }
}

#[test]
fn a_steady_rhythm_and_a_whole_recording() {
    let before = real_time_ns();
    let recording = recorded(300, &options(10));
    // At most one every 10 ms, and both ends.
    assert!(recording.samples() <= 33 + usize::try_from((real_time_ns() - before) / 10_000_000).unwrap());
    assert!(recording.samples() >= 3);
    assert!(recording.duration_s() >= 0.3);
    assert!((before..real_time_ns()).contains(&recording.started_ns()));
    assert!(recording.own_cpu_s() > 0.0);
    let digest = recording.digest(5);
    assert!(digest.width_s >= recording.duration_s() / 6.0);
    let usr = digest.curves.iter().find(|each| each.channel.name == "cpu.usr").unwrap();
    assert!((1..=6).contains(&usr.bins.len()), "{usr:?}");
    assert_eq!(digest.summaries, recording.summaries());
    assert_eq!(digest.missing, recording.missing());
}

#[test]
fn intervals_out_of_range_are_refused() {
    for milliseconds in [0, 9, 1_001] {
        let error = Sampler::start(&options(milliseconds)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    let nowhere = Options { cpu: Some(1_000_000), ..options(100) };
    assert!(Sampler::start(&nowhere).unwrap_err().to_string().contains("cannot stay on CPU 1000000"));
}

#[test]
fn taken_piece_by_piece_it_is_the_same() {
    let sampler = Sampler::start(&options(10)).unwrap();
    let mut live = Live::default();
    let mut file = Recording::mark();
    // A piece may hold too little time for the kernel's ticks to move, or on a busy machine no sample at all.
    let (mut seen, mut pieces) = (false, 0);
    while pieces < 5 || !seen {
        std::thread::sleep(Duration::from_millis(30));
        let piece = sampler.take();
        live.feed(&piece);
        seen |= live.values().contains_key("cpu.usr");
        file.extend(piece);
        pieces += 1;
        assert!(pieces < 1_000, "no piece shows what the CPU did");
    }
    let rest = sampler.stop().to_bytes().split_off(Recording::mark().len());
    live.feed(&rest);
    file.extend(rest);
    let recording = Recording::from_bytes(&file).unwrap();
    assert_eq!(recording.samples(), live.samples());
    assert!(recording.missing().iter().all(|(name, _)| name != "the end"));
}

#[test]
fn instruments_serve_one_recording_after_another() {
    let us = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut instruments = Instruments::open();
    for pid in [Some(us), None, None] {
        let sampler = Sampler::begin(instruments, &Options { pid, ..options(20) }).unwrap();
        while !sampler.shared.lock().begun {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (recording, kept) = sampler.finish();
        // It stands by itself, as a file.
        let read = Recording::from_bytes(&recording.unwrap().to_bytes()).unwrap();
        assert!(read.means().contains_key("sched.context_switches"));
        let missing = read.missing();
        let workload = read.channels().iter().any(|each| each.name.starts_with("perf."))
            || missing.iter().any(|(name, _)| name.starts_with("perf"));
        assert_eq!(workload, pid.is_some(), "{missing:?}");
        instruments = kept.unwrap();
    }
}

#[test]
fn written_and_read_back_and_cut_off() {
    let recording = recorded(200, &options(10));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording");
    recording.write(&path).unwrap();
    assert_eq!(recording.write(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(Recording::read(&path).unwrap().summaries(), recording.summaries());
    let bytes = recording.to_bytes();
    // The last samples, and what is written after them, are lost one after the other.
    let cuts = (0..bytes.len()).rev().step_by(50).map(|at| Recording::from_bytes(&bytes[..at]).unwrap());
    let cut = cuts.into_iter().find(|cut| cut.samples() < recording.samples()).unwrap();
    assert!(cut.samples() > 0);
    assert!(cut.missing().iter().any(|(name, reason)| name == "the end" && reason.contains("cut off")));
    assert!(matches!(Recording::from_bytes(b"PK"), Err(ReadError::Foreign)));
    let mut later = bytes.clone();
    later[9] = 2;
    assert!(matches!(Recording::from_bytes(&later), Err(ReadError::Version(2))));
}

/// A recording of texts of one's own, one a second.
fn made(source: &'static str, texts: &[&str]) -> Recording {
    let known = sources::SOURCES.iter().find(|known| known.name == source).unwrap();
    let mut body = Vec::new();
    let header = Header { sources: vec![source.to_owned()], interval_s: 1.0, ..Header::default() };
    codec::put_record(taker::HEADER, &serde_json::to_vec(&header).unwrap(), &mut body);
    let mut open = taker::Open::of(known);
    for (number, text) in texts.iter().enumerate() {
        let mut payload = Vec::new();
        for number in [if number == 0 { 0 } else { 1_000_000_000 }, 0, 0, 1] {
            codec::put(number, &mut payload);
        }
        let (mut template, mut row) = (Vec::new(), Vec::new());
        template::take_apart(text.as_bytes(), known.digits, &mut template, &mut row);
        open.put(&template, &row, &mut payload);
        codec::put(0, &mut payload);
        codec::put_record(taker::SAMPLE, &payload, &mut body);
    }
    Recording::of(body)
}

#[test]
fn a_device_comes_and_goes() {
    let disk = |name: &str, reads: u32| format!("8 0 {name} {reads} 0 0 0 0 0 0 0 0 0 0\n");
    let both = |a: u32, b: u32| disk("sda", a) + &disk("sdb", b);
    let recording =
        made("diskstats", &[&both(0, 0), &both(10, 5), &disk("sda", 20), &both(30, 0), &both(40, 2)]);
    let digest = recording.digest(100);
    let of = |name: &str| {
        let curve = digest.curves.iter().find(|each| each.channel.name == name).unwrap();
        curve.bins.iter().map(|bin| bin.map(|bin| bin.mean)).collect::<Vec<_>>()
    };
    assert_eq!(of("block.sda.reads"), [Some(10.0); 4]);
    assert_eq!(of("block.sdb.reads"), [Some(5.0), None, None, Some(2.0)]);
    assert_eq!(recording.means()["block.sdb.reads"], 3.5);
}

#[test]
fn a_cpu_that_takes_another_s_place_is_not_compared_with_it() {
    let of = |cpu: u32, time: u32| format!("@C1/{cpu}/time\n{time}\n@C1/{cpu}/usage\n1\n");
    let texts = [of(0, 0), of(0, 500_000), of(1, 90_000_000), of(1, 90_500_000)];
    let recording = made("idle", &texts.each_ref().map(String::as_str));
    assert_eq!(recording.means()["idle.C1"], 0.5);
    let digest = recording.digest(100);
    let bins = &digest.curves.iter().find(|each| each.channel.name == "idle.C1").unwrap().bins;
    let means: Vec<Option<f64>> = bins.iter().map(|bin| bin.map(|bin| bin.mean)).collect();
    assert_eq!(means, [Some(0.5), None, Some(0.5)]);
}

#[test]
fn a_column_or_line_that_takes_another_cpu_s_place_is_not_compared_with_it() {
    let table = |head: &str, one: u32, two: u32| {
        format!(
            "           {head}\n  24:  {one}  {two}  PCI-MSI  1-edge  nvme0q1\nLOC:  {two}  {one}  Timer\n"
        )
    };
    let recording = made(
        "interrupts",
        &[&table("CPU0  CPU1", 100, 5), &table("CPU0  CPU3", 110, 900), &table("CPU0  CPU3", 130, 910)],
    );
    let mean = |name: &str, recording: &Recording| {
        let all = recording.summaries();
        let found = all.iter().find(|each| each.channel.name == name).unwrap();
        (found.intervals, found.mean)
    };
    // Only from the second to the third: 20 on CPU 0 and 10 on CPU 3.
    assert_eq!(mean("interrupts.24.nvme0q1", &recording), (1, 30.0));
    assert_eq!(mean("interrupts.loc", &recording), (1, 30.0));
    assert_eq!(mean("interrupts.cpu0", &recording).0, 2, "it was there all the time");
    let lines = |cpu: &str, waited: u64| {
        format!("version 17\ncpu0 0 0 0 0 0 0 0 {waited} 1\n{cpu} 0 0 0 0 0 0 0 {} 1\n", waited * 7)
    };
    let (second, third) = (lines("cpu3", 2_000_000_000), lines("cpu3", 3_000_000_000));
    let recording = made("schedstat", &[&lines("cpu1", 1_000_000_000), &second, &third]);
    assert_eq!(mean("sched.run_delay", &recording), (1, 8.0));
}

#[test]
fn a_reset_is_left_out_of_the_mean() {
    let recording = made("cpu", &["ctxt 100\n", "ctxt 200\n", "ctxt 5\n", "ctxt 105\n"]);
    assert_eq!(recording.means()["sched.context_switches"], 100.0);
    assert_eq!(recording.summaries()[0].intervals, 2);
    let reset = made("cpu", &["ctxt 100\n", "ctxt 5\n"]);
    assert_eq!(reset.missing()[0].0, "sched.context_switches");
    assert!(reset.means().is_empty());
}

/// Three samples in a bin; one that is read seldom stands for the bins between.
#[test]
fn bins_keep_mean_and_extremes() {
    let texts: Vec<String> = [0, 6, 6, 9, 10, 10].iter().map(|count| format!("ctxt {count}\n")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let recording = made("cpu", &texts);
    let bins = |digest: &Digest| digest.curves[0].bins.clone();
    let digest = recording.digest(2);
    assert_eq!((digest.width_s, digest.samples), (3.0, 6));
    let (first, second) = (Bin { low: 0.0, mean: 3.0, high: 6.0 }, Bin { low: 0.0, mean: 0.5, high: 1.0 });
    assert_eq!(bins(&digest), [Some(first), Some(second)]);
    let fine = bins(&recording.binned(0.5, 100));
    assert_eq!(fine.len(), 10);
    assert_eq!((fine[0], fine[1]), (fine[1], Some(Bin { low: 6.0, mean: 6.0, high: 6.0 })));
    assert_eq!(bins(&recording.binned(1.0, 1)).len(), 5, "a few more than asked for, but not without end");
    assert!(bins(&recording.binned(1e-9, 1)).is_empty());
}

#[test]
fn a_cgroup_that_reaches_a_device_late_had_counted_nothing_before() {
    let line = |device: &str, bytes: u32| {
        format!("{device} rbytes={bytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n")
    };
    let recording = made(
        "cgroup",
        &[
            "@io.stat\n",
            "@io.stat\n",
            &format!("@io.stat\n{}", line("254:0", 300)),
            &format!("@io.stat\n{}{}", line("254:0", 300), line("8:0", 100)),
        ],
    );
    let summaries = recording.summaries();
    let read = summaries.iter().find(|each| each.channel.name == "cgroup.read_bytes").unwrap();
    assert_eq!((read.total, read.intervals, read.min, read.max), (Some(400.0), 3, 0.0, 300.0));
    // A device that went took its counts with it.
    let gone = made(
        "cgroup",
        &[
            &format!("@io.stat\n{}", line("8:0", 100)),
            "@io.stat\n",
            &format!("@io.stat\n{}", line("8:0", 50)),
        ],
    );
    assert_eq!(gone.means()["cgroup.read_bytes"], 50.0);
}

#[test]
fn what_a_recording_is_about() {
    let about = [("command".to_owned(), "make -j".to_owned())];
    let mut bytes = Recording::mark();
    bytes.extend(Recording::about_record(&about));
    bytes.extend(made("cpu", &["ctxt 100\n", "ctxt 200\n"]).to_bytes().split_off(Recording::mark().len()));
    let recording = Recording::from_bytes(&bytes).unwrap();
    assert_eq!((recording.digest(10).about, recording.samples()), (about.to_vec(), 2));
}

#[test]
fn words_that_change_all_the_time_cost_room_only() {
    let texts: Vec<String> = (0..50).map(|at| format!("ctxt {}\nword x{at}\n", at * 10)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let recording = made("cpu", &texts);
    assert_eq!(recording.means()["sched.context_switches"], 10.0);
    assert_eq!(recording.summaries()[0].intervals, 49);
}

proptest! {
    #[test]
    fn a_damaged_file_gives_what_was_before_or_an_error(at: prop::sample::Index, byte: u8) {
        let recording = made("cpu", &["ctxt 100\ncpu 1 2 3 4\n", "ctxt 200\ncpu 5 6 7 8\n", "ctxt 300\ncpu 9 9 9 9\n"]);
        let mut bytes = recording.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = Recording::from_bytes(&bytes) {
            prop_assert!(read.samples() <= 3);
            for (name, mean) in read.means() {
                prop_assert!(name.starts_with("cpu") || mean == 100.0);
            }
        }
    }

    /// Whoever makes the checksums right can still only make a recording that says little.
    #[test]
    fn a_malicious_file_does_no_harm(payload in proptest::collection::vec(any::<u8>(), 0..120), kind in prop::sample::select(vec![b'S', b'H', b'P', b'?'])) {
        let mut body = made("cpu", &["ctxt 100\n", "ctxt 200\n"]).to_bytes();
        codec::put_record(kind, &payload, &mut body);
        if let Ok(read) = Recording::from_bytes(&body) {
            let digest = read.digest(240);
            prop_assert!(digest.curves.iter().all(|curve| curve.bins.len() <= 248));
        }
    }

    #[test]
    fn whatever_the_files_hold(text in "[ -~\n@!]{0,200}", number in 0..sources::SOURCES.len()) {
        let source = sources::SOURCES[number];
        let names = sources::testing::made_of(source, &text);
        prop_assert!(names.len() <= 4_000);
    }
}

/// An hour at 10 Hz of what this machine shows, every third number moving on.
#[test]
fn an_hour_at_ten_a_second_is_thinned_out() {
    const SAMPLES: usize = 36_000;
    let options = options(100);
    let mut open: Vec<(taker::Open, Vec<u8>, Vec<u64>)> = Vec::new();
    for source in sources::SOURCES {
        let Ok(parts) = (source.open)(&options) else { continue };
        let (mut text, mut template, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for part in &parts {
            part.read(&mut text);
        }
        template::take_apart(&text, source.digits, &mut template, &mut row);
        open.push((taker::Open::of(source), template, row));
    }
    let names = open.iter().map(|(open, ..)| open.name().to_owned()).collect();
    let header = Header { sources: names, interval_s: 0.1, ..Header::default() };
    let mut body = Vec::new();
    codec::put_record(taker::HEADER, &serde_json::to_vec(&header).unwrap(), &mut body);
    let mut payload = Vec::new();
    for sample in 0..SAMPLES {
        payload.clear();
        for number in [if sample == 0 { 0 } else { 100_000_000 }, 0, 0] {
            codec::put(number, &mut payload);
        }
        for (number, (open, template, row)) in (1..).zip(&mut open) {
            for (at, value) in row.iter_mut().enumerate().filter(|(at, _)| (at + sample) % 3 == 0) {
                *value += u64::try_from(at % 300).unwrap();
            }
            codec::put(number, &mut payload);
            open.put(template, row, &mut payload);
        }
        codec::put(0, &mut payload);
        codec::put_record(taker::SAMPLE, &payload, &mut body);
    }
    let recording = Recording::of(body);
    if let Some(path) = std::env::var_os("ZENKAI_HOUR") {
        // For docs/benchmarks.md.
        recording.write(std::path::Path::new(&path)).unwrap();
    }
    let start = thread_cpu_ns();
    let digest = recording.digest(240);
    let took_s = replay::seconds(thread_cpu_ns() - start);
    println!("{} bytes, {} channels, {took_s:.2} s of CPU time", recording.size(), digest.curves.len());
    assert_eq!(recording.samples(), SAMPLES);
    assert!(
        digest.curves.len() > 50 && digest.curves.iter().all(|each| (2..=248).contains(&each.bins.len()))
    );
}
