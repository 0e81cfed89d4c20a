use zenkai_host::FakeHost;

use super::*;

fn set(path: &str, to: &str) -> Wish {
    let knob = match path.strip_prefix("/proc/sys/") {
        Some(tail) => Knob::Sysctl(tail.replace('/', ".")),
        None => Knob::Attribute(path.to_owned()),
    };
    Wish::by_hand(Want::Set { knob, to: to.into(), when: When::Now }, to)
}

/// As a profile's disk unit has it.
fn of_device(device: &str, path: &str, to: &str) -> Wish {
    let (plugin, option) = ("disk".to_owned(), "readahead".to_owned());
    Wish { device: Some(device.to_owned()), plugin, option, ..set(path, to) }
}

fn cpus(file: &str, values: [&str; 2]) -> Vec<(String, String)> {
    let path = |cpu: usize| format!("/sys/devices/system/cpu/cpufreq/policy{cpu}/{file}");
    values.iter().enumerate().map(|(cpu, value)| (path(cpu), format!("{value}\n"))).collect()
}

fn host() -> FakeHost {
    let mut host = FakeHost::new(&[
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/proc/sys/vm/dirty_ratio", "20\n"),
        ("/proc/sys/vm/dirty_bytes", "0\n"),
        ("/proc/sys/vm/dirty_background_ratio", "10\n"),
        ("/proc/sys/kernel/kptr_restrict", "1\n"),
        ("/sys/block/sda/queue/read_ahead_kb", "128\n"),
        ("/sys/block/sdb/queue/read_ahead_kb", "128\n"),
        ("/sys/block/sda/queue/nr_requests", "64\n"),
        ("/sys/block/sda/queue/scheduler", "[none] bfq\n"),
        ("/sys/block/sdb/queue/scheduler", "[none] bfq\n"),
    ]);
    for (path, value) in cpus("scaling_governor", ["powersave"; 2])
        .into_iter()
        .chain(cpus("energy_performance_preference", ["balance_performance"; 2]))
    {
        host = host.file(&path, &value);
    }
    host
}

fn sides(host: &FakeHost, a: Vec<Wish>, b: Vec<Wish>) -> Sides {
    Sides::new(host, ["a", "b"], a, b, false)
}

fn told(sides: &Sides) -> Vec<String> {
    let mut told: Vec<String> =
        sides.toggles.iter().map(|one| format!("{}: {} → {}", one.name, one.from, one.to)).collect();
    told.sort();
    told
}

#[test]
fn what_disturbs_each_other_is_one_toggle() {
    let mut wishes = vec![
        set("/proc/sys/vm/swappiness", "10"),
        set("/proc/sys/vm/dirty_ratio", "40"),
        set("/proc/sys/vm/dirty_background_ratio", "5"),
    ];
    for cpu in 0..2 {
        let folder = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
        wishes.push(set(&format!("{folder}/scaling_governor"), "performance"));
        wishes.push(set(&format!("{folder}/energy_performance_preference"), "performance"));
    }
    let sides = sides(&host(), wishes, Vec::new());
    assert_eq!(
        told(&sides),
        [
            "governor and preference: powersave, balance_performance, powersave, balance_performance → performance",
            "limits of unwritten memory: 20, 10 → 40, 5",
            "vm.swappiness: 60 → 10",
        ]
    );
    // As in B all of them are left alone.
    assert!(sides.wishes(&[]).is_empty());
    let each: usize = (0..3).map(|nth| sides.wishes(&[nth]).len()).sum();
    assert_eq!((each, sides.wishes(&[0, 1, 2]).len()), (7, 7));
}

#[test]
fn the_same_for_several_devices_is_one_toggle_and_another_value_another() {
    let ahead = |disk: &str, to: &str| of_device(disk, &format!("/sys/block/{disk}/queue/read_ahead_kb"), to);
    let same = sides(&host(), vec![ahead("sda", "4096"), ahead("sdb", "4096")], Vec::new());
    assert_eq!(told(&same), ["read_ahead_kb of sda, sdb: 128 → 4096"]);
    let apart = sides(&host(), vec![ahead("sda", "4096"), ahead("sdb", "512")], Vec::new());
    assert_eq!(told(&apart), ["read_ahead_kb of sda: 128 → 4096", "read_ahead_kb of sdb: 128 → 512"]);
}

#[test]
fn a_scheduler_takes_its_depth_along_on_its_own_disk() {
    let wishes = vec![
        set("/sys/block/sda/queue/scheduler", "bfq"),
        set("/sys/block/sda/queue/nr_requests", "256"),
        set("/sys/block/sdb/queue/scheduler", "bfq"),
    ];
    let names: Vec<String> =
        sides(&host(), wishes, Vec::new()).toggles.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["scheduler and its depth", "scheduler of sdb"]);
}

#[test]
fn only_what_differs_is_toggled_and_protection_is_left() {
    let of_a = vec![
        set("/proc/sys/vm/swappiness", "60"),
        set("/proc/sys/kernel/kptr_restrict", "0"),
        set("/proc/sys/vm/no_such_thing", "1"),
    ];
    let found = sides(&host(), of_a.clone(), Vec::new());
    assert!(found.toggles.is_empty(), "{:?}", told(&found));
    let left: Vec<&str> = found.left.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(left, ["vm.no_such_thing", "kernel.kptr_restrict"]);
    let hints = found.nothing().hints.join("\n");
    assert!(
        hints.contains("--allow-insecure") && hints.contains("left out: kernel.kptr_restrict"),
        "{hints}"
    );
    let insecure = Sides::new(&host(), ["a", "b"], of_a, Vec::new(), true);
    assert_eq!(told(&insecure), ["kernel.kptr_restrict: 1 → 0"]);
}

#[test]
fn of_two_profiles_what_both_want_is_in_every_arm() {
    let of_a = vec![set("/proc/sys/vm/swappiness", "10"), set("/proc/sys/vm/dirty_ratio", "40")];
    let of_b = vec![set("/proc/sys/vm/swappiness", "10"), set("/proc/sys/vm/dirty_ratio", "5")];
    let sides = sides(&host(), of_a, of_b);
    assert_eq!(told(&sides), ["vm.dirty_ratio: 5 → 40"]);
    let wanted =
        |on: &[usize]| -> Vec<String> { sides.wishes(on).iter().map(|wish| wish.asked.clone()).collect() };
    assert_eq!((wanted(&[]), wanted(&[0])), (vec!["10".into(), "5".into()], vec!["10".into(), "40".into()]));
}

#[test]
fn a_machine_that_is_not_as_it_was_is_told() {
    let wishes = vec![set("/proc/sys/vm/swappiness", "10"), set("/proc/sys/vm/dirty_ratio", "40")];
    let sides = sides(&host(), wishes, Vec::new());
    assert_eq!(sides.changed(&host()), Vec::<String>::new());
    assert_eq!(
        sides.changed(&host().file("/proc/sys/vm/swappiness", "1\n")),
        ["vm.swappiness: 60 then, 1 now"]
    );
    let gone = FakeHost::new(&[("/proc/sys/vm/swappiness", "60\n")]);
    let told = sides.changed(&gone);
    assert!(told.len() == 1 && told[0].starts_with("vm.dirty_ratio: "), "{told:?}");
}
