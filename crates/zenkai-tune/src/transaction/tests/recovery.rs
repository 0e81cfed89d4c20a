//! Coming back from a death, and from a disk that takes no more.

use super::super::store::{FAULTS, Fault};
use std::sync::atomic::AtomicBool;

use super::*;

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

fn with_faults<T>(faults: &[(Fault, usize)], job: impl FnOnce() -> T) -> T {
    FAULTS.set(faults.to_vec());
    let result = job();
    FAULTS.set(Vec::new());
    result
}

#[test]
fn recovery_keeps_what_somebody_else_changed() {
    let mut tried = 0;
    for dies_at in 0.. {
        let (dir, host) = (tempfile::tempdir().unwrap(), machine());
        let store = store(&dir);
        let mortal = Mortal { host: &host, calls: AtomicUsize::new(0), dies_at, after: true };
        let wishes = vec![wish(SWAPPINESS, "10"), wish("/sys/clamped", "99"), wish("/sys/thp", "never")];
        let job = || apply(&mortal, &store, Kind::Profile, "a", wishes);
        if catch_unwind(AssertUnwindSafe(job)).is_ok() {
            break;
        }
        let writes = host.writes();
        if !writes.contains_key("/sys/clamped") || writes.contains_key("/sys/thp") {
            continue;
        }
        tried += 1;
        // One knob was done, one is in doubt, and one was not reached.
        let set = |path: &str, to: &str| host.set(&Knob::Attribute(path.into()), &to.into()).unwrap();
        set(SWAPPINESS, "33");
        set("/sys/thp", "always");
        let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        let rows = &session.recovered.as_ref().unwrap().rows;
        let kept = |path: &str| {
            let of = |row: &&Row| row.what == path;
            matches!(rows.iter().find(of).unwrap().fate, Fate::Kept { .. })
        };
        assert!(kept(SWAPPINESS) && kept("/sys/thp"), "{rows:?}");
        assert_eq!(host.read(SWAPPINESS).unwrap(), b"33\n");
        assert_eq!(host.read("/sys/thp").unwrap(), b"[always] madvise never\n");
        assert_eq!(host.read("/sys/clamped").unwrap(), b"5\n");
    }
    assert!(tried > 0);
}

#[test]
fn an_end_that_cannot_be_synced_is_taken_back_in_the_journal_too() {
    let (dir, host) = (tempfile::tempdir().unwrap(), machine());
    let store = store(&dir);
    let before = shown(&host);
    let wishes = || vec![wish(SWAPPINESS, "10"), wish("/sys/clamped", "99")];
    let tuned = || apply(&host, &store, Kind::Profile, "a", wishes());
    let report = with_faults(&[(Fault::Sync, 0)], tuned);
    assert!(matches!(&report.end, End::RolledBack { why } if why.contains("ENOSPC")), "{:?}", report.end);
    assert_eq!(shown(&host), before);
    assert_eq!(log(&store).unwrap()[0].end, Some(report.end));
    assert_eq!(active(&host, &store).unwrap(), None);
    // An end that can neither be synced nor cut off stands.
    let report = with_faults(&[(Fault::Sync, 0), (Fault::Cut, 0)], tuned);
    assert_eq!(report.end, End::Done);
    assert_ne!(shown(&host), before);
    assert_eq!(active(&host, &store).unwrap().unwrap().id, report.id.unwrap());
}

#[test]
fn a_disk_that_fills_up_at_any_record_leaves_nothing_behind() {
    for good in 0.. {
        let (dir, host) = (tempfile::tempdir().unwrap(), machine());
        let store = store(&dir);
        let before = shown(&host);
        let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        let plan = Plan::new(&host, all_kinds());
        let job = || session.apply(&host, &plan, &request(Kind::Profile, "a"));
        match with_faults(&[(Fault::Write, good)], job) {
            // The announcement itself: refused before the first write.
            Err(error) => {
                assert_eq!(good, 0);
                assert!(error.to_string().contains("ENOSPC"), "{error}");
                assert!(host.writes().is_empty());
                assert!(store.ids().unwrap().is_empty());
            }
            Ok(Report { end: End::Done, .. }) => {
                assert!(good > 6, "{good}");
                return;
            }
            Ok(report) => {
                assert!(matches!(report.end, End::RolledBack { .. }), "{:?}", report.end);
                assert_eq!(shown(&host), before, "{good} good records");
            }
        }
        drop(session);
        Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        assert_eq!(shown(&host), before);
        assert_eq!(active(&host, &store).unwrap(), None);
    }
}

#[test]
fn without_a_boot_id_nothing_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let host = machine().unreadable("/proc/sys/kernel/random/boot_id", 13);
    let error = Session::begin(&host, &store(&dir), "test", Duration::ZERO).unwrap_err();
    assert!(matches!(error, TransactionError::NoBootId), "{error}");
}

/// Does not let `vm.swappiness` go back to 60.
struct Stubborn<'h> {
    host: &'h FakeHost,
    refuses: AtomicBool,
}

impl Host for Stubborn<'_> {
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

impl TunableHost for Stubborn<'_> {
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()> {
        if self.refuses.load(Ordering::Relaxed) && same(value, &"60".into()) {
            return Err(io::Error::from_raw_os_error(16));
        }
        self.host.set(knob, value)
    }
    fn run(&self, act: &Act) -> io::Result<Finished> {
        self.host.run(act)
    }
}

#[test]
fn what_could_not_be_put_back_is_recorded_and_tried_again() {
    for by_off in [false, true] {
        let (dir, host) = (tempfile::tempdir().unwrap(), machine());
        let store = store(&dir);
        let before = shown(&host);
        let stubborn = Stubborn { host: &host, refuses: AtomicBool::new(true) };
        let wishes = vec![wish(SWAPPINESS, "10"), wish("/sys/refuses", "2")];
        let failed = apply(&stubborn, &store, Kind::Profile, "a", wishes);
        assert!(matches!(failed.end, End::NeedsAttention { .. }), "{:?}", failed.end);
        assert_eq!(active(&host, &store).unwrap(), None);
        assert_eq!(log(&store).unwrap()[0].end, Some(failed.end));
        // The next try fails too, and is no end of it.
        let again = |host: &dyn TunableHost| {
            if by_off {
                apply(host, &store, Kind::Off, "", Vec::new())
            } else {
                undo(host, &store, false).unwrap()
            }
        };
        let second = again(&stubborn);
        assert!(second.rows.iter().any(|row| matches!(row.fate, Fate::NotRestored { .. })), "{second:?}");
        assert_eq!(host.read(SWAPPINESS).unwrap(), b"10\n");
        stubborn.refuses.store(false, Ordering::Relaxed);
        assert_eq!(again(&stubborn).end, End::Done);
        assert_eq!(shown(&host), before);
    }
}
