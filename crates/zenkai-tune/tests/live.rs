//! A transaction on the machine that runs the tests, as root.

use std::time::Duration;

use zenkai_host::{Host, Knob, LiveHost, TunableHost, Value, value};
use zenkai_tune::{
    Plan, Want, When, Wish,
    transaction::{End, Kind, Request, Session, Store},
};

/// Puts back what was there, even when the test panics.
struct Restore(Vec<(Knob, Value)>);

impl Drop for Restore {
    fn drop(&mut self) {
        // Twice: dirty_bytes and dirty_ratio zero each other, and 0 is refused for the byte form.
        for (knob, from) in self.0.iter().chain(&self.0) {
            if value(&LiveHost, knob).is_ok_and(|shows| shows != *from) {
                let _ = LiveHost.set(knob, from);
            }
        }
    }
}

fn wish(knob: &Knob, to: &str) -> Wish {
    Wish::by_hand(Want::Set { knob: knob.clone(), to: to.into(), when: When::Now }, to)
}

fn request(kind: Kind) -> Request {
    let (label, command) = ("live".to_owned(), "test".to_owned());
    Request { kind, label, names: Vec::new(), time: 1, command, keep_going: false }
}

#[test]
fn live_knobs_are_turned_and_come_back() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root may turn knobs");
        return;
    }
    let knob = |path: &str| Knob::Attribute(path.to_owned());
    let mut wishes =
        vec![(knob("/proc/sys/vm/swappiness"), "37"), (knob("/proc/sys/vm/dirty_bytes"), "104857600")];
    let disks = LiveHost.list("/sys/block").unwrap_or_default();
    let ahead = disks.iter().map(|disk| knob(&format!("/sys/block/{}/queue/read_ahead_kb", disk.name)));
    wishes.extend(ahead.into_iter().find(|knob| value(&LiveHost, knob).is_ok()).map(|knob| (knob, "260")));
    let watched: Vec<Knob> =
        wishes.iter().map(|(knob, _)| knob.clone()).chain([knob("/proc/sys/vm/dirty_ratio")]).collect();
    let look = || watched.iter().map(|knob| value(&LiveHost, knob).unwrap()).collect::<Vec<Value>>();
    let before = look();
    let restore = Restore(watched.iter().cloned().zip(before.clone()).collect());
    if let Some((knob, from)) = restore.0.iter().find(|(knob, from)| LiveHost.set(knob, from).is_err())
        && from.text().is_none_or(|text| text != "0")
    {
        eprintln!("skipped: {knob} cannot be written here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("state").to_str().unwrap()).unwrap();
    let session = Session::begin(&LiveHost, &store, "test", Duration::ZERO).unwrap();
    let plan = Plan::new(&LiveHost, wishes.iter().map(|(knob, to)| wish(knob, to)).collect());
    let report = session.apply(&LiveHost, &plan, &request(Kind::Fix)).unwrap();
    assert_eq!(report.end, End::Done, "{:?}", report.rows);
    assert_eq!(look()[..wishes.len()], wishes.iter().map(|(_, to)| (*to).into()).collect::<Vec<Value>>());
    let undone = session.undo(&LiveHost, None, false, &request(Kind::Undo { of: 0 })).unwrap();
    assert_eq!(undone.end, End::Done, "{:?}", undone.rows);
    assert_eq!(look(), before);
}
