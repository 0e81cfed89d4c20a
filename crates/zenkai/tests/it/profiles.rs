//! The profiles that we write: rules that every file keeps.

use std::{collections::BTreeMap, fs, path::Path};

/// What a profile may be called besides: the names that tuned's users know, and ours.
const NAMES: [&str; 13] = [
    "balanced",
    "database",
    "hpc-compute",
    "latency-performance",
    "network-latency",
    "network-throughput",
    "powersave",
    "storage-server",
    "throughput-performance",
    "virtual-guest",
    "virtual-host",
    "web-server",
    "xen-dom0",
];

fn profiles() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    };
    fs::read_dir(folder).unwrap().map(file).collect()
}

#[test]
fn every_profile_is_there_and_in_the_table() {
    let profiles = profiles();
    assert_eq!(profiles.keys().map(String::as_str).collect::<Vec<_>>(), NAMES);
    let page = include_str!("../../../../docs/profiles.md");
    for name in profiles.keys() {
        assert!(page.contains(&format!("\n| `{name}` |")), "docs/profiles.md has no row for {name}");
    }
}

#[test]
fn every_value_says_what_it_does_and_costs() {
    for (name, text) in profiles() {
        let (mut comment, mut section) = (String::new(), "");
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}.conf:{}", number + 1);
            assert!(line.len() <= 120, "{place} is longer than 120 characters");
            if let Some(words) = line.strip_prefix("# ") {
                comment.push_str(words);
                comment.push(' ');
                continue;
            }
            if line.starts_with('[') {
                section = line;
            } else if section != "[main]" && line.contains('=') {
                assert!(
                    comment.contains("Costs"),
                    "{place}: no comment above says what it costs: {comment:?}"
                );
            }
            comment.clear();
        }
        assert!(text.contains("\nsummary="), "{name} has no summary");
    }
}

#[test]
fn ours_include_only_ours() {
    let profiles = profiles();
    for (name, text) in &profiles {
        for include in text.lines().filter_map(|line| line.strip_prefix("include=")) {
            let base = include.strip_prefix("zenkai/");
            assert!(
                base.is_some_and(|base| profiles.contains_key(base)),
                "{name} includes {include}, which another installation may change"
            );
        }
    }
}

/// Kernel arguments, scripts and services would reach further than a profile of ours should.
#[test]
fn ours_stay_with_harmless_plugins() {
    let allowed = ["main", "cpu", "acpi", "disk", "sysctl", "vm", "audio", "scsi_host", "xen"];
    for (name, text) in profiles() {
        for line in text.lines().filter(|line| line.starts_with('[')) {
            let section = line.trim_matches(['[', ']']);
            assert!(allowed.contains(&section), "{name} uses {section}");
        }
    }
}
