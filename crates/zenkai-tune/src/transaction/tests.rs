//! Tests of the whole life of a transaction.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use zenkai_host::{Act, DirEntry, FakeHost, Finished, Query, Reply, StoreRule};

use super::*;
use crate::{Want, When, Wish};

mod acts;
mod held;
mod random;
mod recovery;
mod shipped;
mod trial;

const FILES: &[(&str, &str)] = &[
    ("/proc/sys/kernel/random/boot_id", "first\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
    ("/proc/sys/vm/dirty_ratio", "20\n"),
    ("/proc/sys/vm/dirty_bytes", "0\n"),
    ("/sys/thp", "always [madvise] never\n"),
    ("/sys/clamped", "5\n"),
    ("/sys/refuses", "1\n"),
    ("/etc/text", "old\n"),
];

fn machine() -> FakeHost {
    let couple = |path: &str| StoreRule::Couple { path: path.into(), value: "0".into() };
    FakeHost::new(FILES)
        .rule("/proc/sys/vm/dirty_bytes", couple("/proc/sys/vm/dirty_ratio"))
        .rule("/proc/sys/vm/dirty_ratio", couple("/proc/sys/vm/dirty_bytes"))
        .rule("/sys/thp", StoreRule::Select)
        .rule("/sys/clamped", StoreRule::Clamp(1, 10))
        .rule("/sys/refuses", StoreRule::Reject(22))
}

fn shown(host: &dyn Host) -> Vec<Vec<u8>> {
    FILES.iter().map(|(path, _)| host.read(path).unwrap()).collect()
}

fn wish(knob: &str, to: &str) -> Wish {
    let attribute = Knob::Attribute(knob.into());
    let knob = if knob.starts_with("/etc") { Knob::File(knob.into()) } else { attribute };
    Wish::by_hand(Want::Set { knob, to: to.into(), when: When::Now }, to)
}

fn all_kinds() -> Vec<Wish> {
    vec![
        wish("/proc/sys/vm/swappiness", "10"),
        wish("/proc/sys/vm/dirty_bytes", "4096"),
        wish("/sys/thp", "never"),
        wish("/sys/clamped", "99"),
        wish("/etc/text", "new\n"),
    ]
}

fn request(kind: Kind, name: &str) -> Request {
    let names = if name.is_empty() { Vec::new() } else { vec![name.to_owned()] };
    let (label, command) = (name.to_owned(), "test".to_owned());
    Request { kind, label, names, time: 1, command, keep_going: false }
}

fn apply(host: &dyn TunableHost, store: &Store, kind: Kind, name: &str, wishes: Vec<Wish>) -> Report {
    let session = Session::begin(host, store, "test", Duration::ZERO).unwrap();
    session.apply(host, &Plan::new(host, wishes), &request(kind, name)).unwrap()
}

fn undo(host: &dyn TunableHost, store: &Store, force: bool) -> Result<Report, TransactionError> {
    let session = Session::begin(host, store, "test", Duration::ZERO)?;
    session.undo(host, None, force, &request(Kind::Undo { of: 0 }, "undo"))
}

fn store(dir: &tempfile::TempDir) -> Store {
    Store::open(dir.path().join("state").to_str().unwrap()).unwrap()
}

/// Dies at the n-th call, before or after it took effect.
struct Mortal<'h> {
    host: &'h FakeHost,
    calls: AtomicUsize,
    dies_at: usize,
    after: bool,
}

struct Killed;

impl Mortal<'_> {
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        let dies = self.calls.fetch_add(1, Ordering::Relaxed) == self.dies_at;
        if dies && !self.after {
            resume_unwind(Box::new(Killed));
        }
        let result = call();
        if dies {
            resume_unwind(Box::new(Killed));
        }
        result
    }
}

impl Host for Mortal<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.call(|| self.host.read(path))
    }
    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        self.host.list(dir)
    }
    fn resolve(&self, path: &str) -> io::Result<String> {
        self.host.resolve(path)
    }
    fn query(&self, query: &Query) -> io::Result<Reply> {
        self.call(|| self.host.query(query))
    }
}

impl TunableHost for Mortal<'_> {
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()> {
        self.call(|| self.host.set(knob, value))
    }
    fn run(&self, act: &Act) -> io::Result<Finished> {
        self.call(|| self.host.run(act))
    }
}

/// Runs `job` with a death at every call, recovers, and demands the state from before or, when it had been committed,
/// the state after. Tells how many deaths there were.
fn crash_everywhere(
    machine: impl Fn(&Store) -> FakeHost,
    job: impl Fn(&dyn TunableHost, &Store),
    torn: usize,
) -> usize {
    crash_everywhere_seen(shown, machine, job, torn)
}

/// The same, with another way to look at the state.
fn crash_everywhere_seen<S: PartialEq + std::fmt::Debug>(
    shown: impl Fn(&dyn Host) -> S,
    machine: impl Fn(&Store) -> FakeHost,
    job: impl Fn(&dyn TunableHost, &Store),
    torn: usize,
) -> usize {
    for dies_at in 0.. {
        for after in [false, true] {
            // Thousands of state directories: in memory where that is possible.
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let store = store(&dir);
            let host = machine(&store);
            let before = shown(&host);
            let mortal = Mortal { host: &host, calls: AtomicUsize::new(0), dies_at, after };
            let Err(death) = catch_unwind(AssertUnwindSafe(|| job(&mortal, &store))) else {
                return dies_at;
            };
            assert!(death.is::<Killed>(), "a real panic at call {dies_at}");
            if let Some(id) = store.ids().unwrap().pop().filter(|_| torn > 0) {
                let journal = store.load(id).unwrap().unwrap();
                if journal.end.is_none() {
                    store.reopen(id, journal.length).unwrap().append(&b"{\"doing\""[..torn]).unwrap();
                }
            }
            Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
            assert_eq!(shown(&host), before, "death at call {dies_at}, after: {after}");
            assert!(Session::begin(&host, &store, "test", Duration::ZERO).unwrap().recovered.is_none());
        }
    }
    0
}

#[test]
fn whatever_call_we_die_at_the_first_state_comes_back() {
    for torn in [0, 5] {
        let job = |host: &dyn TunableHost, store: &Store| {
            apply(host, store, Kind::Profile, "a", all_kinds());
        };
        assert!(crash_everywhere(|_| machine(), job, torn) > 15);
        // The same for a switch and for an undo: back to the first profile.
        let tuned = |store: &Store| {
            let host = machine();
            apply(&host, store, Kind::Profile, "a", all_kinds());
            host
        };
        let switch = |host: &dyn TunableHost, store: &Store| {
            apply(host, store, Kind::Profile, "b", vec![wish("/proc/sys/vm/dirty_ratio", "40")]);
        };
        assert!(crash_everywhere(tuned, switch, torn) > 15);
        let back = |host: &dyn TunableHost, store: &Store| drop(undo(host, store, false).unwrap());
        assert!(crash_everywhere(tuned, back, torn) > 15);
    }
}

#[test]
fn apply_and_undo_is_nothing() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let before = shown(&host);
    let report = apply(&host, &store, Kind::Fix, "fix", all_kinds());
    assert_eq!(report.end, End::Done);
    assert!(report.rows.iter().any(|row| row.fate == Fate::Adjusted { shows: "10".into() }));
    assert_ne!(shown(&host), before);
    undo(&host, &store, false).unwrap();
    assert_eq!(shown(&host), before);
    assert!(matches!(undo(&host, &store, false), Err(TransactionError::NothingToUndo)));
    let log = log(&store).unwrap();
    assert_eq!((log[1].id, log[1].undone_by), (1, Some(2)));
}

#[test]
fn switching_and_off_is_nothing() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let before = shown(&host);
    apply(&host, &store, Kind::Profile, "a", all_kinds());
    let tuned = shown(&host);
    let other = || vec![wish("/proc/sys/vm/dirty_ratio", "40"), wish("/proc/sys/vm/swappiness", "10")];
    apply(&host, &store, Kind::Profile, "b", other());
    assert_eq!(host.read("/sys/thp").unwrap(), b"always [madvise] never\n");
    undo(&host, &store, false).unwrap();
    assert_eq!(shown(&host), tuned);
    assert_eq!(active(&host, &store).unwrap().unwrap().names, ["a"]);
    apply(&host, &store, Kind::Profile, "b", other());
    assert_eq!(apply(&host, &store, Kind::Profile, "b", other()).id, None);
    apply(&host, &store, Kind::Off, "", Vec::new());
    assert_eq!(shown(&host), before);
    assert_eq!(active(&host, &store).unwrap(), None);
}

#[test]
fn a_refused_write_takes_everything_back() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let before = shown(&host);
    let wishes = || all_kinds().into_iter().chain([wish("/sys/refuses", "2")]).collect();
    assert!(
        matches!(apply(&host, &store, Kind::Profile, "a", wishes()).end, End::RolledBack { why } if why.contains("EINVAL"))
    );
    assert_eq!(shown(&host), before);
    let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
    let request = Request { keep_going: true, ..request(Kind::Profile, "a") };
    let report = session.apply(&host, &Plan::new(&host, wishes()), &request).unwrap();
    assert_eq!(report.end, End::Partly);
    assert_eq!(host.read("/proc/sys/vm/swappiness").unwrap(), b"10\n");
}

#[test]
fn what_somebody_changed_since_is_kept() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let before = shown(&host);
    let knob = Knob::Attribute("/proc/sys/vm/swappiness".into());
    apply(&host, &store, Kind::Fix, "fix", all_kinds());
    host.set(&knob, &"33".into()).unwrap();
    let report = undo(&host, &store, false).unwrap();
    assert!(report.rows.iter().any(|row| row.fate == Fate::Kept { shows: "33".into() }));
    assert_eq!(value(&host, &knob).unwrap(), "33".into());
    host.set(&knob, &"60".into()).unwrap();
    apply(&host, &store, Kind::Fix, "fix", all_kinds());
    host.set(&knob, &"33".into()).unwrap();
    undo(&host, &store, true).unwrap();
    assert_eq!(shown(&host), before);
}

#[test]
fn a_later_alternative_is_as_asked_and_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let knob = Knob::Attribute("/sys/preference".into());
    let host = machine()
        .file("/sys/preference", "c\n")
        .rule("/sys/preference", StoreRule::Accept(vec!["b".into(), "c".into()]));
    let store = store(&dir);
    let mut wish = wish("/sys/preference", "a");
    wish.want = Want::SetFirst { knob: knob.clone(), choices: vec!["a".into(), "b".into()] };
    let report = apply(&host, &store, Kind::Fix, "fix", vec![wish]);
    assert_eq!((&report.rows[0].fate, &report.rows[0].to), (&Fate::Set, &"b".into()));
    undo(&host, &store, false).unwrap();
    assert_eq!(value(&host, &knob).unwrap(), "c".into());
}

#[test]
fn after_a_reboot_only_files_are_put_back() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let mortal = Mortal { host: &host, calls: AtomicUsize::new(0), dies_at: 20, after: true };
    let job = || apply(&mortal, &store, Kind::Profile, "a", all_kinds().into_iter().rev().collect());
    assert!(catch_unwind(AssertUnwindSafe(job)).is_err());
    assert_eq!(host.read("/etc/text").unwrap(), b"new\n");
    let rebooted = machine().file("/proc/sys/kernel/random/boot_id", "second\n");
    let rebooted = rebooted.file("/etc/text", "new\n").file("/proc/sys/vm/swappiness", "10\n");
    let recovered = Session::begin(&rebooted, &store, "test", Duration::ZERO).unwrap().recovered.unwrap();
    assert_eq!(recovered.end, End::Lost);
    assert_eq!(rebooted.read("/etc/text").unwrap(), b"old\n");
    assert_eq!(rebooted.writes().len(), 1);
}

#[test]
fn a_held_lock_is_waited_for_and_no_longer_than_asked() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let first = Session::begin(&host, &store, "first", Duration::ZERO).unwrap();
    let short = Duration::from_millis(30);
    let refused = Session::begin(&host, &store, "second", short).unwrap_err();
    assert!(matches!(refused, TransactionError::Locked { .. }));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| Session::begin(&host, &store, "third", Duration::from_secs(60)).is_ok());
        std::thread::sleep(short);
        drop(first);
        assert!(waits.join().unwrap());
    });
    // Whoever gave up above does not hold it now.
    Session::begin(&host, &store, "fourth", Duration::from_secs(60)).unwrap();
}

#[test]
fn what_is_wrong_with_the_state_directory_is_said_before_anything_is_written() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let session = Session::begin(&host, &store, "first", Duration::ZERO).unwrap();
    let second = Session::begin(&host, &store, "second", Duration::ZERO).unwrap_err().to_string();
    assert!(second.contains("(first)"), "{second}");
    drop(session);
    store.create(1, b"{\"begin\":\n{}\n", 0).unwrap();
    let corrupt = Session::begin(&host, &store, "test", Duration::ZERO).unwrap_err().to_string();
    assert!(corrupt.contains("0001.jsonl:1:"), "{corrupt}");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert!(Store::open(link.to_str().unwrap()).unwrap_err().to_string().contains("link"));
    let deep = dir.path().join("missing/state");
    let said = Store::open(deep.to_str().unwrap()).unwrap_err().to_string();
    assert!(said.ends_with(&format!("`mkdir -p {}`", dir.path().join("missing").display())), "{said}");
    assert!(host.writes().is_empty());
}
