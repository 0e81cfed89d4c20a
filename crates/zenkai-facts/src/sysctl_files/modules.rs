//! Options of kernel modules in files against those in force (`modprobe.d(5)`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Line, drop_in, same_value};
use crate::{Observed, Reader};

const DIRS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// The most options that are kept.
const OPTION_LIMIT: usize = 512;

/// One option of one module in a file.
#[derive(Debug, Clone, Serialize)]
pub struct ModuleOption {
    /// The module, with `_` for `-` as the kernel names it.
    pub module: String,
    /// The parameter.
    pub parameter: String,
    /// The value that is asked for; `1` for a bare parameter.
    pub value: String,
    /// Where.
    pub at: Line,
    /// The later line that sets the same parameter.
    pub overridden_by: Option<Line>,
    /// The value in force; absent when the module is not loaded or does not show the parameter.
    pub running: Observed<String>,
}

impl ModuleOption {
    /// Whether the value in force is the one asked for; nothing when it could not be read.
    pub fn in_force(&self) -> Option<bool> {
        let running = self.running.text()?;
        let switch = |word: &str| match word {
            "1" | "Y" | "y" | "on" | "true" => Some(true),
            "0" | "N" | "n" | "off" | "false" => Some(false),
            _ => None,
        };
        // A list such as `queues=4,4` is shown padded for every device by some drivers: only a contradiction counts.
        let same_switch = switch(&self.value).is_some_and(|value| switch(running) == Some(value));
        Some(
            same_switch
                || same_value(&self.value, running)
                || running.starts_with(&format!("{},", self.value)),
        )
    }
}

pub(super) fn observe(reader: &Reader<'_>) -> Vec<ModuleOption> {
    let mut options: Vec<ModuleOption> = Vec::new();
    for file in drop_in::files(reader, &DIRS).iter().filter(|file| file.counts()) {
        let content = reader.text(&file.path);
        for (text, line) in content.text().unwrap_or("").lines().zip(1..) {
            for (module, parameter, value) in parse(text) {
                if options.len() >= OPTION_LIMIT {
                    break;
                }
                let running = reader.text(&format!("/sys/module/{module}/parameters/{parameter}"));
                let at = Line { file: file.path.clone(), line };
                options.push(ModuleOption { module, parameter, value, at, overridden_by: None, running });
            }
        }
    }
    let mut winners: BTreeMap<(String, String), Line> = BTreeMap::new();
    for option in options.iter_mut().rev() {
        let key = (option.module.clone(), option.parameter.clone());
        option.overridden_by = winners.get(&key).cloned();
        winners.entry(key).or_insert_with(|| option.at.clone());
    }
    options
}

/// `options module a=1 b`; module and parameter, value.
fn parse(text: &str) -> Vec<(String, String, String)> {
    let mut words = text.split_whitespace();
    let (Some("options"), Some(module)) = (words.next(), words.next()) else { return Vec::new() };
    let module = module.replace('-', "_");
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\', '"']) && !name.starts_with('.');
    if !is_name(&module) {
        return Vec::new();
    }
    words
        .map(|word| word.split_once('=').unwrap_or((word, "1")))
        .filter(|(parameter, _)| is_name(parameter))
        .map(|(parameter, value)| (module.clone(), parameter.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn in_force_or_not() {
        let host = FakeHost::new(&[
            ("/etc/modprobe.d/a.conf", "# c\noptions kvm-intel nested=1 ept=0\noptions nvme poll_queues=4\n"),
            ("/etc/modprobe.d/b.conf", "options nvme poll_queues=8\nblacklist x\n"),
            ("/sys/module/kvm_intel/parameters/nested", "Y\n"),
            ("/sys/module/kvm_intel/parameters/ept", "Y\n"),
        ]);
        let options = observe(&Reader::new(&host));
        let shown: Vec<_> = options
            .iter()
            .map(|one| (one.parameter.as_str(), one.in_force(), one.overridden_by.is_some()))
            .collect();
        assert_eq!(
            shown,
            [
                ("nested", Some(true), false),
                ("ept", Some(false), false),
                ("poll_queues", None, true),
                ("poll_queues", None, false)
            ]
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "(options )?[a-z_=\\-./\" ]{0,60}") {
            let _ = parse(&text);
        }
    }
}
