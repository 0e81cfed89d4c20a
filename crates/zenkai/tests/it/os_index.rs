//! The built-in suite, through the program itself and as the workload of an experiment.

use std::{collections::BTreeMap, process::Command, time::Duration};

use zenkai_measure::workload::prepare;

use crate::zenkai;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

#[test]
fn every_test_runs_in_processes_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_zenkai"));
    command.args(["os-index", "--seconds", "0.02", "--copies", "1,2", "--json", "--dir"]).arg(dir.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let scores = json["scores"].as_array().unwrap();
    let mut copies = BTreeMap::new();
    for score in scores {
        assert!(score["rate"].as_f64().unwrap() > 0.0, "{score}");
        *copies.entry(score["copies"].as_u64().unwrap()).or_insert(0) += 1;
    }
    let tests = zenkai_measure::os_index::tests().count();
    assert_eq!(copies, BTreeMap::from([(1, tests), (2, tests)]));
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

#[test]
fn it_is_a_workload() {
    let mut prepared = prepare(&words("os-index --seconds 0.02 --copies 1 --test syscall --test copy-1k"));
    assert_eq!(prepared.argv[..2], ["/proc/self/exe", "os-index"]);
    // Here that would be the test itself.
    prepared.argv[0] = env!("CARGO_BIN_EXE_zenkai").to_owned();
    let job = zenkai_host::workload::Job {
        argv: prepared.argv.clone(),
        environment: Vec::new(),
        timeout: Some(Duration::from_secs(60)),
        cgroup: true,
        cpu_max: None,
        output_limit: 1 << 20,
        terminal: false,
    };
    let ran = zenkai_host::workload::run(&job, None, &mut |_| ()).unwrap();
    let measures = prepared.measures(&ran).unwrap();
    let mean = (measures["1x/syscall"].value * measures["1x/copy-1k"].value).sqrt();
    assert!((measures["index"].value / mean - 1.0).abs() < 1e-9);
    assert_eq!(measures["1x/copy-1k"].unit, "B/s");
    assert_eq!(prepared.primary(), "index");
}

#[test]
fn wrong_names_are_told() {
    let called = zenkai(&["os-index", "--test", "nothing"]);
    assert_eq!((called.exit.code(), called.out.as_str()), (2, ""));
    assert!(called.err.contains("no test is called `nothing`") && called.err.contains("pipe-switch"));
}
