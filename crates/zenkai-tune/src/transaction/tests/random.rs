//! Random machines and profiles.

use proptest::prelude::*;

use super::*;

const KNOBS: &[&str] = &[
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/overcommit_ratio",
    "/sys/thp",
    "/sys/clamped",
    "/sys/picky",
    "/etc/text",
];

fn world(start: &[u8]) -> FakeHost {
    let values: Vec<String> = start.iter().map(|number| format!("{}\n", number % 10 + 1)).collect();
    let host = machine()
        .file(KNOBS[0], &values[0])
        .file(KNOBS[1], &values[1])
        .file(KNOBS[3], &values[2])
        .file("/sys/clamped", &values[3])
        .file("/sys/picky", "1\n");
    host.rule("/sys/picky", StoreRule::Accept(vec!["1".into(), "7".into()]))
}

fn all(host: &FakeHost) -> Vec<Vec<u8>> {
    KNOBS.iter().map(|path| host.read(path).unwrap()).collect()
}

fn wishes() -> impl Strategy<Value = Vec<(usize, u16)>> {
    prop::collection::vec((0..KNOBS.len(), 1..60_u16), 0..8)
}

fn made(wishes: &[(usize, u16)]) -> Vec<Wish> {
    let make = |(knob, number): &(usize, u16)| match KNOBS[*knob] {
        "/sys/thp" => wish("/sys/thp", ["always", "madvise", "never"][usize::from(*number % 3)]),
        "/sys/picky" => wish("/sys/picky", if number % 8 == 0 { "9" } else { "7" }),
        "/proc/sys/vm/dirty_bytes" => wish(KNOBS[*knob], &(u32::from(*number) * 4096).to_string()),
        path => wish(path, &number.to_string()),
    };
    // A profile that asks for both of two that rule each other out contradicts itself.
    let bytes = wishes.iter().any(|(knob, _)| *knob == 2);
    wishes.iter().filter(|(knob, _)| !(bytes && *knob == 1)).map(make).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apply_and_undo_is_identity(start in prop::collection::vec(0..250_u8, 4), a in wishes()) {
        let (dir, host) = (tempfile::tempdir().unwrap(), world(&start));
        let store = store(&dir);
        let before = all(&host);
        let report = apply(&host, &store, Kind::Fix, "a", made(&a));
        if report.end == End::Done && report.id.is_some() {
            prop_assert_eq!(undo(&host, &store, false).unwrap().end, End::Done);
        }
        prop_assert_eq!(all(&host), before);
    }

    #[test]
    fn applied_twice_is_applied_once(start in prop::collection::vec(0..250_u8, 4), a in wishes()) {
        let (dir, host) = (tempfile::tempdir().unwrap(), world(&start));
        let store = store(&dir);
        let before = all(&host);
        apply(&host, &store, Kind::Profile, "a", made(&a));
        let once = all(&host);
        apply(&host, &store, Kind::Profile, "a", made(&a));
        prop_assert_eq!(all(&host), once);
        apply(&host, &store, Kind::Off, "", Vec::new());
        prop_assert_eq!(all(&host), before);
    }

    #[test]
    fn two_profiles_and_off_is_identity(
        start in prop::collection::vec(0..250_u8, 4), a in wishes(), b in wishes(),
    ) {
        let (dir, host) = (tempfile::tempdir().unwrap(), world(&start));
        let store = store(&dir);
        let before = all(&host);
        apply(&host, &store, Kind::Profile, "a", made(&a));
        apply(&host, &store, Kind::Profile, "b", made(&b));
        apply(&host, &store, Kind::Off, "", Vec::new());
        prop_assert_eq!(all(&host), before);
    }
}
