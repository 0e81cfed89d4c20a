//! Arms of experiments: entered and left, and never left behind.

use super::*;

fn enter(session: &Session, host: &dyn TunableHost, instead_of_profile: bool, wishes: Vec<Wish>) -> Report {
    let kind = Kind::Trial { instead_of_profile };
    session.apply(host, &Plan::new(host, wishes), &request(kind, "arm")).unwrap()
}

fn there_and_back(host: &dyn TunableHost, store: &Store) {
    for instead_of_profile in [false, true] {
        let session = Session::begin(host, store, "test", Duration::ZERO).unwrap();
        let id = enter(&session, host, instead_of_profile, all_kinds()).id.unwrap();
        session.leave(host, id, &request(Kind::Undo { of: id }, "leave")).unwrap();
    }
}

fn with_profile(store: &Store) -> FakeHost {
    let host = machine();
    let wishes = vec![wish("/proc/sys/vm/dirty_ratio", "40"), wish("/sys/thp", "always")];
    apply(&host, store, Kind::Profile, "a", wishes);
    host
}

#[test]
fn an_arm_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let host = with_profile(&store);
    let before = shown(&host);
    there_and_back(&host, &store);
    assert_eq!(shown(&host), before);
    let log = log(&store).unwrap();
    assert_eq!(log.iter().map(|entry| (entry.id, entry.active)).collect::<Vec<_>>(), [(1, true)]);
}

#[test]
fn an_arm_stands_in_for_the_profile_or_comes_on_top_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let host = with_profile(&store);
    let swappiness = || vec![wish("/proc/sys/vm/swappiness", "1")];
    for (instead, thp) in [(true, "always [madvise] never\n"), (false, "[always] madvise never\n")] {
        let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        let id = enter(&session, &host, instead, swappiness()).id.unwrap();
        assert_eq!(host.read("/sys/thp").unwrap(), thp.as_bytes(), "instead: {instead}");
        session.leave(&host, id, &request(Kind::Undo { of: id }, "leave")).unwrap();
    }
}

#[test]
fn an_arm_that_changes_nothing_is_no_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let (host, store) = (machine(), store(&dir));
    let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
    let report = enter(&session, &host, false, vec![wish("/proc/sys/vm/swappiness", "60")]);
    assert_eq!((report.id, report.end), (None, End::Done));
}

#[test]
fn an_arm_that_is_refused_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let rule = StoreRule::Accept(vec!["b".into()]);
    let host = machine().file("/sys/choice", "x\n").rule("/sys/choice", rule);
    let before = shown(&host);
    let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
    let wishes = vec![wish("/proc/sys/vm/swappiness", "1"), wish("/sys/choice", "z")];
    let report = enter(&session, &host, false, wishes);
    assert!(report.id.is_none() && matches!(report.end, End::RolledBack { .. }), "{report:?}");
    assert_eq!(shown(&host), before);
    assert!(log(&store).unwrap().is_empty());
}

#[test]
fn whenever_the_experiment_dies_its_arm_is_left() {
    assert!(crash_everywhere(|_| machine(), there_and_back, 0) > 40);
    assert!(crash_everywhere(with_profile, there_and_back, 5) > 40);
    // Dying between entering and leaving is no half transaction, but it is not forgotten either.
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let host = with_profile(&store);
    let before = shown(&host);
    {
        let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        enter(&session, &host, true, all_kinds());
    }
    assert_ne!(shown(&host), before);
    let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
    assert!(session.recovered.as_ref().is_some_and(|report| report.end == End::Done));
    assert_eq!(shown(&host), before);
}

#[test]
fn the_first_value_that_the_kernel_takes_is_the_last_that_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let rule = StoreRule::Accept(vec!["b".into(), "c".into()]);
    let host = machine().file("/sys/choice", "x\n").rule("/sys/choice", rule);
    let mut wish = wish("/sys/choice", "");
    let choices = ["a", "b", "c"].map(String::from).to_vec();
    wish.want = Want::SetFirst { knob: Knob::Attribute("/sys/choice".into()), choices };
    let report = apply(&host, &store(&dir), Kind::Fix, "choice", vec![wish]);
    assert_eq!((report.end, host.read("/sys/choice").unwrap()), (End::Done, b"b\n".to_vec()));
    assert_eq!(host.writes()["/sys/choice"], 2, "a was refused, b was taken, c was never tried");
}
