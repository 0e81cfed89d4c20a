//! What is run, and what is no failure.

use zenkai_host::TaskParameter;

use super::*;

fn command(word: &str) -> Act {
    Act::Command { argv: vec![word.to_owned()] }
}

fn run(word: &str) -> Wish {
    let undo = Some(command(&format!("un{word}")));
    Wish { want: Want::Run { act: command(word), undo, verify: None }, ..wish("/sys/thp", "never") }
}

/// A machine with something of its own when it is changed: reading is the other's.
struct Behind<'h, S, R> {
    host: &'h FakeHost,
    set: S,
    run: R,
}

impl<S: Send + Sync, R: Send + Sync> Host for Behind<'_, S, R> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.host.read(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        self.host.list(dir)
    }
    fn resolve(&self, path: &str) -> io::Result<String> {
        self.host.resolve(path)
    }
    fn query(&self, query: &Query) -> io::Result<Reply> {
        self.host.query(query)
    }
}

impl<S, R> TunableHost for Behind<'_, S, R>
where
    S: Fn(&Knob, &Value) -> io::Result<()> + Send + Sync,
    R: Fn(&Act) -> io::Result<Finished> + Send + Sync,
{
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()> {
        (self.set)(knob, value)
    }
    fn run(&self, act: &Act) -> io::Result<Finished> {
        (self.run)(act)
    }
}

#[test]
fn acts_are_undone_in_reverse_after_the_file_is_back() {
    for by_off in [false, true] {
        let (dir, host) = (tempfile::tempdir().unwrap(), machine());
        let store = store(&dir);
        let diary = std::sync::Mutex::new(Vec::new());
        let set = |knob: &Knob, value: &Value| {
            diary.lock().unwrap().push(format!("{knob}={}", value.text().unwrap_or("-").trim()));
            host.set(knob, value)
        };
        let run_act = |act: &Act| {
            diary.lock().unwrap().push(act.to_string());
            host.run(act)
        };
        let behind = Behind { host: &host, set, run: run_act };
        let wishes = vec![run("first"), wish("/etc/text", "new\n"), run("second")];
        apply(&behind, &store, Kind::Profile, "a", wishes);
        if by_off {
            apply(&behind, &store, Kind::Off, "", Vec::new());
        } else {
            undo(&behind, &store, false).unwrap();
        }
        let told = diary.lock().unwrap().join(" ");
        assert_eq!(told, "first file /etc/text=new second unsecond file /etc/text=old unfirst");
    }
}

#[test]
fn an_act_that_may_have_run_is_undone() {
    for after in [false, true] {
        for dies_at in 0.. {
            let (dir, host) = (tempfile::tempdir().unwrap(), machine());
            let store = store(&dir);
            let mortal = Mortal { host: &host, calls: AtomicUsize::new(0), dies_at, after };
            let wishes =
                vec![wish("/sys/clamped", "7"), run("first"), wish("/etc/text", "new\n"), run("second")];
            let job = || apply(&mortal, &store, Kind::Profile, "a", wishes);
            if catch_unwind(AssertUnwindSafe(job)).is_ok() {
                break;
            }
            let ran = host.acts();
            let announced: Vec<usize> = store.ids().unwrap().pop().map_or_else(Vec::new, |id| {
                let mut doing: Vec<usize> = store.load(id).unwrap().unwrap().doing.into_iter().collect();
                doing.sort_unstable();
                doing
            });
            Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
            let undone: Vec<Act> = host.acts().split_off(ran.len());
            let mut expected = Vec::new();
            expected.extend(announced.contains(&3).then(|| command("unsecond")));
            expected.extend(announced.contains(&1).then(|| command("unfirst")));
            assert_eq!(undone, expected, "death at {dies_at}, after: {after}");
            assert!(ran.len() <= undone.len(), "what ran is undone");
        }
    }
}

#[test]
fn an_act_that_cannot_be_undone_is_tried_again() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let refuses = std::sync::atomic::AtomicBool::new(true);
    let run_act = |act: &Act| match host.run(act) {
        Ok(finished) if refuses.load(Ordering::Relaxed) && *act == command("unfirst") => {
            Ok(Finished { code: 1, ..finished })
        }
        other => other,
    };
    let set = |knob: &Knob, value: &Value| host.set(knob, value);
    let behind = Behind { host: &host, set, run: run_act };
    let trial = Kind::Trial { instead_of_profile: false };
    let id = apply(&behind, &store, trial, "a", vec![run("first"), run("second")]).id.unwrap();
    let stuck = |report: &Report| {
        let stuck = report.rows.iter().filter(|row| matches!(row.fate, Fate::NotRestored { .. }));
        stuck.map(|row| row.what.clone()).collect::<Vec<_>>()
    };
    let session = Session::begin(&host, &store, "test", Duration::ZERO);
    drop(session);
    // That was the next command after a death: all is undone, and nothing is left.
    assert!(!store.ids().unwrap().contains(&id));
    let id = apply(&behind, &store, trial, "a", vec![run("first"), run("second")]).id.unwrap();
    for _ in 0..2 {
        let session = Session::begin(&behind, &store, "test", Duration::ZERO).unwrap();
        assert_eq!(stuck(session.recovered.as_ref().unwrap()), ["unfirst"]);
    }
    refuses.store(false, Ordering::Relaxed);
    let before = host.acts().len();
    let session = Session::begin(&behind, &store, "test", Duration::ZERO).unwrap();
    assert!(stuck(session.recovered.as_ref().unwrap()).is_empty());
    assert_eq!(host.acts().split_off(before), [command("unfirst")], "what was undone is not undone again");
    assert!(!store.ids().unwrap().contains(&id));
}

#[test]
fn managed_interrupts_are_skipped() {
    let path = "/proc/irq/30/smp_affinity_list";
    let host = machine().file(path, "0-3\n").rule(path, StoreRule::Reject(5));
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let report = apply(&host, &store, Kind::Profile, "a", vec![wish(path, "0"), wish("/sys/clamped", "7")]);
    assert_eq!(report.end, End::Done);
    assert!(matches!(&report.rows[0].fate, Fate::Skipped { why } if why.contains("interrupt")));
    let undone = undo(&host, &store, false).unwrap();
    assert!(undone.rows.iter().all(|row| row.what != path), "{:?}", undone.rows);
}

#[test]
fn a_task_that_has_ended_is_no_failure() {
    let knob = Knob::Task { tid: 7, start_ticks: 9, parameter: TaskParameter::Policy };
    let host = machine().reply(&Query::Knob(knob.clone()), Reply::Text("o:0".into()));
    let (dir, dir2) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wishes = || {
        let want = Want::Set { knob: knob.clone(), to: "f:1".into(), when: When::Now };
        vec![Wish { want, ..wish("/sys/thp", "never") }]
    };
    // Every task has ended once it is to be changed.
    let set = |knob: &Knob, value: &Value| match knob {
        Knob::Task { .. } => Err(io::Error::from_raw_os_error(3)),
        _ => host.set(knob, value),
    };
    let ended = Behind { host: &host, set, run: |act: &Act| host.run(act) };
    let report = apply(&ended, &store(&dir), Kind::Profile, "a", wishes());
    assert_eq!(report.end, End::Done);
    assert!(matches!(report.rows[0].fate, Fate::Skipped { .. }));
    // The same on the way back.
    let store = store(&dir2);
    apply(&host, &store, Kind::Profile, "a", wishes());
    assert_eq!(undo(&ended, &store, false).unwrap().end, End::Done);
}

#[test]
fn a_value_that_a_later_step_moves_is_written_again() {
    let (requests, scheduler) = ("/sys/block/sda/queue/nr_requests", "/sys/block/sda/queue/scheduler");
    let couple = StoreRule::Couple { path: requests.into(), value: "64".into() };
    let host = machine().file(requests, "256\n").file(scheduler, "none\n").rule(scheduler, couple);
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let wishes = vec![wish(requests, "512"), wish(scheduler, "bfq")];
    assert_eq!(apply(&host, &store, Kind::Profile, "a", wishes).end, End::Done);
    assert_eq!(host.read(requests).unwrap(), b"512\n");
    undo(&host, &store, false).unwrap();
    assert_eq!(host.read(requests).unwrap(), b"256\n");
    // So is one that was right before.
    let wishes = vec![wish(requests, "256"), wish(scheduler, "bfq")];
    apply(&host, &store, Kind::Profile, "a", wishes);
    assert_eq!(host.read(requests).unwrap(), b"256\n");
    undo(&host, &store, false).unwrap();
    // Of two that move each other, the later one counts, and the other is told as what it became.
    let both = || vec![wish("/proc/sys/vm/dirty_bytes", "4096"), wish("/proc/sys/vm/dirty_ratio", "40")];
    apply(&host, &store, Kind::Profile, "b", both());
    assert_eq!(host.read("/proc/sys/vm/dirty_ratio").unwrap(), b"40\n");
    assert_eq!(host.read("/proc/sys/vm/dirty_bytes").unwrap(), b"0\n");
    undo(&host, &store, false).unwrap();
    assert_eq!(host.read("/proc/sys/vm/dirty_ratio").unwrap(), b"20\n");
}
