//! Planning what is in force already, or what takes its place.

use super::*;
use crate::{State, plugins::testing::Bench};

const READ_AHEAD: &str = "/sys/block/sda/queue/read_ahead_kb";

fn bench() -> Bench {
    let sda = [("/sys/block/sda/removable", "0\n"), (READ_AHEAD, "128\n")];
    Bench::new("disk", &[FILES, &sda].concat())
}

/// Plans and applies as a profile; the plan.
fn put_in_force(bench: &mut Bench, store: &Store, name: &str, value: (&str, &str)) -> Plan {
    let session = Session::begin(&bench.host, store, "test", Duration::ZERO).unwrap();
    bench.held = Held::read(&bench.host, store).unwrap();
    let plan = bench.plan(&[value]);
    session.apply(&bench.host, &plan, &request(Kind::Profile, name)).unwrap();
    plan
}

fn read_ahead(bench: &Bench) -> Vec<u8> {
    bench.host.read(READ_AHEAD).unwrap()
}

#[test]
fn what_starts_from_a_value_starts_from_the_one_before_the_profile() {
    for (option, value, set) in [("readahead_multiply", "1.5", "192"), ("readahead", ">4096", "4096")] {
        let dir = tempfile::tempdir().unwrap();
        let (mut bench, store) = (bench(), store(&dir));
        let first = put_in_force(&mut bench, &store, "a", (option, value));
        assert_eq!(first.lines(), format!("{READ_AHEAD}: 128 -> {set}\n"));
        // The same again changes nothing, and what it holds is not put back.
        let again = put_in_force(&mut bench, &store, "a", (option, value));
        assert_eq!(again.lines(), format!("{READ_AHEAD}: {set}\n"));
        assert_eq!(read_ahead(&bench), format!("{set}\n").as_bytes());
        // Another profile starts from the same value.
        let other = put_in_force(&mut bench, &store, "b", ("readahead_multiply", "2"));
        assert_eq!(other.lines(), format!("{READ_AHEAD}: {set} -> 256\n"));
        apply(&bench.host, &store, Kind::Off, "", Vec::new());
        assert_eq!(read_ahead(&bench), b"128\n");
    }
}

#[test]
fn somebody_elses_value_is_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bench, store) = (bench(), store(&dir));
    put_in_force(&mut bench, &store, "a", ("readahead_multiply", "1.5"));
    bench.host.set(&Knob::Attribute(READ_AHEAD.into()), &"1000".into()).unwrap();
    let again = put_in_force(&mut bench, &store, "a", ("readahead_multiply", "1.5"));
    assert_eq!(again.lines(), format!("{READ_AHEAD}: 1000 -> 1500\n"));
}

#[test]
fn a_reboot_ends_what_the_kernel_held() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bench, store) = (bench(), store(&dir));
    put_in_force(&mut bench, &store, "a", ("readahead_multiply", "1.5"));
    let boot = Knob::Attribute("/proc/sys/kernel/random/boot_id".into());
    bench.host.set(&boot, &"second".into()).unwrap();
    let held = Held::read(&bench.host, &store).unwrap();
    let knob = Knob::Attribute(READ_AHEAD.into());
    assert_eq!(held.before(&knob, "192".into()), "192".into());
}

#[test]
fn what_has_run_is_no_change_until_it_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (host, store) = (machine(), store(&dir));
    let act = |word: &str| Act::Command { argv: vec!["true".into(), word.into()] };
    let mut script = wish("/sys/thp", "never");
    script.want = Want::Run { act: act("start"), undo: Some(act("stop")), verify: None };
    let plan = || Plan::beside(&Held::read(&host, &store).unwrap(), &host, vec![script.clone()]);
    assert_eq!((&plan().steps[0].state, plan().is_empty()), (&State::Run, false));
    apply(&host, &store, Kind::Profile, "a", vec![script.clone()]);
    assert_eq!((&plan().steps[0].state, plan().is_empty()), (&State::RunAgain, true));
    apply(&host, &store, Kind::Off, "", Vec::new());
    assert_eq!(plan().steps[0].state, State::Run);
}
