//! The real tuned beside zenkai in guests with hardware that this machine lacks: the same profile must end in the same
//! state. The guests' Debian root has tuned; no network is needed.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use zenkai_lab::{Cache, Job, LabError, Machine, MachineSpec, Mode};

use crate::{
    guests::program,
    real_tuned::intended,
    watched::{FILES, KERNEL, LONGEST, RESTLESS},
};

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guest_tuned.py");

/// Python and tuned take some 10 s of a guest's time per profile, and minutes on a busy host.
const LIMIT: Duration = Duration::from_secs(900);

/// Where else than on the live machine the two differ on purpose: the start of a path, and the reason.
const INTENDED: [(&str, &str); 1] = [("/sys/block/ram", "there is nothing to read ahead from in memory")];

/// What became of a profile.
#[derive(Debug, Deserialize)]
struct Compared {
    profile: String,
    /// Whether tuned said that it was applied.
    applied: bool,
    /// What zenkai said when it failed.
    failed: Vec<String>,
    /// So many settings tuned changed, and so many are watched.
    tuned_changed: usize,
    watched: usize,
    /// With tuned and with zenkai; none where there is no such file.
    paths: BTreeMap<String, [Option<String>; 2]>,
    /// Before, and after zenkai took the profile off.
    rest: BTreeMap<String, [Option<String>; 2]>,
    /// What could not be put back between the two.
    stuck: BTreeMap<String, [Option<String>; 2]>,
}

/// The machine with the Debian root, also when it has busybox only otherwise.
fn with_debian(name: &str) -> Option<Machine> {
    let mut spec = MachineSpec::load(name).unwrap();
    if spec.mode == Mode::Mini {
        spec.mode = Mode::Tools;
        spec.name = format!("{name}-debian");
    }
    match Machine::from_spec(Cache::open().unwrap(), spec) {
        Ok(machine) => Some(machine),
        Err(error @ LabError::Missing { .. }) => {
            eprintln!("SKIPPED: machine {name}: {error}");
            None
        }
        Err(error) => panic!("machine {name}: {error}"),
    }
}

fn ends_as_with_the_real_tuned(machine: &str, profiles: &str) {
    let (Some(program), Some(guest)) = (program(), with_debian(machine)) else { return };
    // The kernel calculates it anew with every change of huge pages, and never again once it was written.
    let restless = [&RESTLESS[..], &["/vm/min_free_kbytes"]].concat();
    let watched = serde_json::json!({
        "kernel": KERNEL, "files": FILES, "restless": restless, "longest": LONGEST,
    });
    let script = format!("WATCHED='{watched}' PROFILES='{profiles}' CARDS=yes python3 guest_tuned.py");
    let job = Job::shell(script).program(&program).file("guest_tuned.py", DRIVER).limit(LIMIT);
    let outcome = guest.run(job).unwrap();
    assert_eq!(outcome.code, 0, "{machine}: {}", outcome.stderr);
    let compared: Vec<Compared> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<&str> = compared.iter().map(|one| one.profile.as_str()).collect();
    assert_eq!(seen, profiles.split(' ').collect::<Vec<_>>(), "{machine}: {}", outcome.stderr);
    for one in &compared {
        let clean = one.rest.is_empty() && one.stuck.is_empty();
        assert!(one.applied && one.failed.is_empty() && clean, "{machine}: {one:?}");
        assert!(one.tuned_changed > 0 && one.watched > 1000, "{machine}: {one:?}");
        let on_purpose = |path: &str| {
            intended(&one.profile, path).is_some()
                || INTENDED.iter().any(|(start, _)| path.starts_with(start))
        };
        let wrong: Vec<_> = one.paths.iter().filter(|(path, _)| !on_purpose(path)).collect();
        assert!(wrong.is_empty(), "{machine}: {}: with tuned, with zenkai: {wrong:#?}", one.profile);
    }
    eprintln!("{machine}: {} profiles, {:.1} s", compared.len(), outcome.wall.as_secs_f64());
}

#[test]
#[ignore = "takes minutes; `cargo xtask test` runs it"]
fn with_intel_pstate_and_hwp() {
    ends_as_with_the_real_tuned("hwp", "throughput-performance powersave");
}

#[test]
#[ignore = "takes minutes; `cargo xtask test` runs it"]
fn with_arrays_and_volumes() {
    ends_as_with_the_real_tuned("storage", "virtual-guest");
}

#[test]
#[ignore = "takes minutes; `cargo xtask test` runs it"]
fn with_network_cards() {
    ends_as_with_the_real_tuned("nic", "network-latency");
}

#[test]
#[ignore = "takes minutes; `cargo xtask test` runs it"]
fn with_two_nodes() {
    ends_as_with_the_real_tuned("numa", "latency-performance");
}
