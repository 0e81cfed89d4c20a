#![expect(clippy::disallowed_methods, reason = "a test makes a file for a browser")]

use serde_json::json;
use zenkai_measure::sampler::{Channel, Process, Summary};

use super::super::browser::{browser, used};
use super::super::tests::balanced;
use super::*;

/// A channel that goes up and down, or stays at zero.
fn curve(name: &str, unit: &str, words: &str, height: f64) -> Curve {
    let group = name.split('.').next().unwrap_or("").to_owned();
    let channel = Channel { name: name.into(), unit: unit.into(), words: words.into(), group };
    let bin = |at: u32| {
        let mean = height * (1.0 + f64::from(at % 17) / 17.0);
        Some(Bin { low: 0.5 * mean, mean, high: 1.5 * mean })
    };
    Curve { channel, bins: (0..240).map(bin).collect() }
}

fn digest(curves: Vec<Curve>) -> Digest {
    let summary = |curve: &Curve| Summary {
        channel: curve.channel.clone(),
        mean: mean(curve),
        min: if is_zero(curve) { 0.0 } else { 0.5 },
        max: mean(curve),
        total: None,
        intervals: 36_000,
    };
    Digest {
        about: vec![
            ("command".to_owned(), "make -j 8".to_owned()),
            ("kernel".to_owned(), "6.12.0".to_owned()),
        ],
        started_ns: 1_700_000_000_000_000_000,
        duration_s: 3_600.0,
        interval_s: 0.1,
        samples: 36_001,
        own_cpu_s: 18.0,
        summaries: curves.iter().map(summary).collect(),
        curves,
        width_s: 15.0,
        missing: vec![("clock".to_owned(), "no such file".to_owned())],
        processes: vec![Process { pid: 7, name: "cc1".to_owned(), cpu_s: 12.0 }],
    }
}

/// A machine with so many CPUs and disks.
fn machine(cpus: usize, disks: usize) -> Digest {
    let mut curves = vec![
        curve("cpu.usr", "1", "user time, share of all CPUs", 0.3),
        curve("cpu.steal", "1", "time that the hypervisor gave to others, share of all CPUs", 0.0),
        curve("vmstat.swapped_in", "B/s", "read from swap", 0.0),
        curve("memory.free", "B", "memory that nothing uses", 4e9),
    ];
    for cpu in 0..cpus {
        for part in ["usr", "sys", "iowait"] {
            let words = format!("time, share of CPU {cpu}");
            curves.push(curve(&format!("cpu{cpu}.{part}"), "1", &words, 0.2 + to_share(cpu, cpus)));
        }
        curves.push(curve(&format!("interrupts.cpu{cpu}"), "1/s", &format!("interrupts on CPU {cpu}"), 90.0));
    }
    for disk in 0..disks {
        for (what, unit) in [("reads", "1/s"), ("read_bytes", "B/s"), ("util", "1")] {
            let words = format!("{what} of d{disk}");
            curves.push(curve(&format!("block.d{disk}.{what}"), unit, &words, 0.1));
        }
    }
    digest(curves)
}

fn to_share(part: usize, whole: usize) -> f64 {
    super::super::super::real(part) / (2.0 * super::super::super::real(whole))
}

#[test]
fn what_vmstat_shows_comes_first_and_the_rest_is_folded() {
    let page = recorded_html("a.zks", &machine(2, 1));
    balanced(&page);
    let places: Vec<Option<usize>> = [
        "<h2>make -j 8</h2>",
        "id=\"overview\"",
        "id=\"channels\"",
        "id=\"processes\"",
        "id=\"missing\"",
        "id=\"numbers\"",
    ]
    .iter()
    .map(|wanted| page.find(wanted))
    .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    for wanted in [
        "1:00:00 from 2023-11-14 22:13 UTC · 36001 samples, one every 100 ms · the recorder itself used 0.50 % of one CPU",
        "the mean of 15 s each: 150 samples where there is one every 100 ms",
        "at zero all the time: stolen by the hypervisor",
        "Nothing happened, so not drawn: Swapping.",
        "time, share of each CPU",
        "cpu: 7 channels in 4 charts",
        "2 channels stayed at zero: not drawn.",
        "6.12.0",
        "cc1",
        "no such file",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("verdict\""), "a recording judges nothing");
}

#[test]
fn many_cpus_and_disks_fold_into_one_chart_each() {
    let page = recorded_html("a.zks", &machine(256, 64));
    balanced(&page);
    assert!(page.contains("256 of them: their median, and the range from the lowest to the highest"));
    assert!(page.contains("highest mean: cpu255"));
    // Three of the CPUs, one of their interrupts, three of the disks, and two that stand alone.
    let channels = &page[page.find("id=\"channels\"").unwrap()..];
    assert_eq!(channels.matches("<figure").count(), 9);
    assert!(page.len() < 600_000, "{} bytes", page.len());
}

#[test]
fn thousands_of_channels_stay_a_small_page() {
    let names = (0..4_000).map(|at| curve(&format!("other.{at}"), "1/s", "something else", 7.0));
    let page = recorded_html("a.zks", &digest(names.collect()));
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("charts left out to keep the page small; what was recorded has all."));
}

#[test]
fn hostile_names_stay_text_and_odd_recordings_are_pages() {
    let hostile = "</title></script><script>alert(1)</script><img src=x onerror=\"alert(2)\"> & \u{202e}'\"";
    let mut odd = digest(vec![curve(&format!("block.{hostile}.reads"), hostile, hostile, 1.0)]);
    odd.about = vec![("command".to_owned(), hostile.repeat(9)), (hostile.to_owned(), hostile.to_owned())];
    odd.missing = vec![("the end".to_owned(), hostile.to_owned())];
    odd.processes[0].name = hostile.to_owned();
    let page = recorded_html(hostile, &odd);
    balanced(&page);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert!(page.contains("class=\"warning\">the end: "));
    let mut empty = digest(Vec::new());
    (empty.duration_s, empty.interval_s, empty.width_s, empty.samples) = (0.0, 0.0, 0.0, 1);
    let page = recorded_html("", &empty);
    balanced(&page);
    assert!(!page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn a_browser_shows_it_and_can_zoom() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("report.html"), recorded_html("a.zks", &machine(16, 3))).unwrap();
    let look = |width: &str| used(include_str!("harness.html"), browser, dir.path(), width);
    let found = look("1000");
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!((found["script"].as_str(), found["title"].as_str()), (Some("on"), Some("make -j 8")));
    assert_eq!((found["glance"].as_u64(), found["folded"].as_u64()), (Some(3), Some(4)), "{found}");
    assert!(found["reading"].as_str().unwrap().contains("user: "), "{found}");
    assert_eq!(found["zoomed"], true);
    assert_eq!(found["charts"], 3, "the three quantities of CPU 7, in the charts of all CPUs");
    assert_eq!(look("380")["overflow"], 0, "a telephone does not scroll sideways");
}
