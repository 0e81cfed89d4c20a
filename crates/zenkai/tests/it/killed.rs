//! `kill -9` of a running change, on this machine: whatever was done until then, the next command puts it back.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use crate::{
    real_tuned::{PutBack, inside, zenkai},
    watched::Watched,
};

/// How often at least, and how often when it takes no longer than that.
const KILLS: std::ops::Range<u32> = 50..200;
const ENOUGH: Duration = Duration::from_secs(60);

/// The profile whose change is interrupted: it writes values that disturb each other (`dirty_bytes`, `dirty_ratio`).
const PROFILE: &str = "zenkai/database";

/// Any command recovers first; then nothing is active, and nothing is changed.
#[test]
#[ignore = "changes this machine for a minute; `cargo xtask test` runs it"]
fn nothing_is_lost_by_kill_9() {
    if !inside("killed::nothing_is_lost_by_kill_9") {
        return;
    }
    let before = PutBack(Watched::look());
    let whole = one_apply(&before.0);
    let start = Instant::now();
    let (mut killed, mut too_late) = (0, 0);
    // A fixed sequence without a pattern (the multiplier of Knuth's MMIX generator), so that a failure can be repeated.
    let mut random = 0x5eed_u64;
    while killed < KILLS.start || killed < KILLS.end && start.elapsed() < ENOUGH {
        assert!(too_late < 4 * KILLS.end, "only {killed} kills hit their mark, {too_late} came too late");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = whole.mul_f64(f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX));
        let mut child = zenkai(&["profile", "apply", PROFILE]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(moment);
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            too_late += 1;
        } else {
            killed += 1;
        }
        recover();
        let changed = before.0.differences(&Watched::look());
        assert!(changed.is_empty(), "killed after {moment:?} (kill {killed}): {changed:?}");
    }
    eprintln!("killed {killed} times within {whole:?} of its work, {too_late} times it was faster");
}

/// How long an undisturbed change takes; it must change something, and `off` must put it back.
fn one_apply(before: &Watched) -> Duration {
    let start = Instant::now();
    assert!(zenkai(&["profile", "apply", PROFILE]).status().unwrap().success());
    let whole = start.elapsed();
    assert!(!before.differences(&Watched::look()).is_empty(), "{PROFILE} changes nothing here");
    recover();
    let changed = before.differences(&Watched::look());
    assert!(changed.is_empty(), "{changed:?}");
    whole
}

/// The next command after a crash, and then `off`, which may find nothing to do.
fn recover() {
    for args in [&["profile", "active"][..], &["profile", "off"]] {
        zenkai(args).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    }
}
