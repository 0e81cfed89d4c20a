//! Every read-only command on every captured machine. A change of output is a change of these files: look at the
//! difference, then accept it with `INSTA_UPDATE=always cargo test -p zenkai golden`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;
use zenkai::cli::Exit;

use crate::zenkai;

pub(crate) fn hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

/// The captures in a folder, by name.
pub(crate) fn captures(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "capture"))
        .collect();
    paths.sort();
    paths
}

/// The text of a capture in the first version, which does not tell where it ends, so that lines may be added and taken out.
pub(crate) fn unmarked(path: impl AsRef<Path>) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let end = text.rfind("end ").unwrap();
    text[..end].replacen("zenkai-capture 2", "zenkai-capture 1", 1)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn snapshot(dir: &Path, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(dir.join("golden"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name.to_owned(), text));
}

fn check_json(path: &str) -> Vec<String> {
    let called = zenkai(&["doctor", "--json", "--capture", path]);
    let value: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!(value["schema"], "zenkai.doctor/1");
    let findings = value["findings"].as_array().unwrap();
    for finding in findings {
        assert!(!finding["evidence"].as_array().unwrap().is_empty(), "{finding}: no evidence");
    }
    assert_eq!(called.exit == Exit::Findings, !findings.is_empty());
    let facts = zenkai(&["facts", "--json", "--capture", path]);
    assert!(serde_json::from_str::<Value>(&facts.out).unwrap().is_object());
    findings.iter().map(|finding| finding["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn healthy_machines() {
    for path in captures(&hosts()) {
        let name = path.to_str().unwrap();
        check_json(name);
        let doctor = zenkai(&["doctor", "--all", "--capture", name]);
        snapshot(&hosts(), &format!("{}.doctor", stem(&path)), &doctor.out);
        let facts = zenkai(&["facts", "--capture", name]);
        snapshot(&hosts(), &format!("{}.facts", stem(&path)), &facts.out);
    }
}

#[test]
fn ailing_machines() {
    let dir = hosts().join("ailing");
    for path in captures(&dir) {
        let name = path.to_str().unwrap();
        check_json(name);
        let doctor = zenkai(&["doctor", "--capture", name]);
        snapshot(&dir, &format!("{}.doctor", stem(&path)), &doctor.out);
    }
}

#[test]
fn captures_survive_being_captured_again() {
    for path in captures(&hosts()) {
        let name = path.to_str().unwrap();
        let again = zenkai(&["capture", "--capture", name]);
        assert_eq!(
            again.out,
            std::fs::read_to_string(&path).unwrap(),
            "{name}: capture it again with this version"
        );
    }
}

#[test]
fn no_golden_file_is_left_over() {
    for dir in [hosts(), hosts().join("ailing")] {
        let known: BTreeSet<String> = captures(&dir).iter().map(|path| stem(path)).collect();
        for entry in std::fs::read_dir(dir.join("golden")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let capture = name.split('.').next().unwrap();
            assert!(known.contains(capture), "{name} belongs to no capture");
        }
    }
}
