//! `/proc/cpuinfo`, read once: it names every CPU, and on older kernels reading it wakes them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::{Observed, Reader, Reason};

const PATH: &str = "/proc/cpuinfo";

/// What a CPU can do, by the names of `/proc/cpuinfo`. Serialised as one line, as there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(BTreeSet<String>);

impl Flags {
    /// Whether the CPU (and the kernel) have this feature.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl Serialize for Flags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        serializer.serialize_str(&names.join(" "))
    }
}

/// Where one logical CPU sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cpu: u32,
    pub(super) package: u32,
    pub(super) core: u32,
}

/// The parsed file.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Keys and values of the first CPU, and of the lines that belong to none.
    first: BTreeMap<String, String>,
    /// Every CPU that tells its package and core; ARM ones do not.
    pub(super) places: Vec<Place>,
}

pub(super) struct Info {
    pub(super) parsed: Observed<Parsed>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Info {
    Info { parsed: reader.text(PATH).map(|text| parse(&text)) }
}

impl Info {
    /// A value of the first CPU.
    pub(super) fn key(&self, name: &str) -> Observed<String> {
        match self.parsed.outcome() {
            Ok(parsed) => match parsed.first.get(name) {
                Some(value) if !value.is_empty() => Observed::known(PATH, value.clone()),
                _ => Observed::unavailable(PATH, Reason::Absent),
            },
            Err(reason) => Observed::unavailable(PATH, reason.clone()),
        }
    }

    /// `flags` on x86, `Features` on ARM.
    pub(super) fn flags(&self) -> Observed<Flags> {
        let line = self.key("flags").or_else(|| self.key("Features"));
        line.map(|line| Flags(line.split_whitespace().map(str::to_owned).collect()))
    }
}

/// One block of `key : value` lines per CPU, separated by blank lines.
fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for (index, block) in text.split("\n\n").enumerate() {
        let (mut cpu, mut package, mut core) = (None, None, None);
        for (key, value) in block.lines().filter_map(|line| line.split_once(':')) {
            let (key, value) = (key.trim(), value.trim());
            match key {
                "processor" => cpu = value.parse().ok(),
                "physical id" => package = value.parse().ok(),
                "core id" => core = value.parse().ok(),
                _ => {}
            }
            if index == 0 {
                parsed.first.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        if let (Some(cpu), Some(package), Some(core)) = (cpu, package, core) {
            parsed.places.push(Place { cpu, package, core });
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn x86_and_arm() {
        let text = "processor\t: 0\nphysical id\t: 0\ncore id\t: 5\nflags\t: a hypervisor\n\n\
                    processor\t: 1\nphysical id\t: 1\ncore id\t: 5\nflags\t: b\n";
        let parsed = parse(text);
        assert_eq!(parsed.places[1], Place { cpu: 1, package: 1, core: 5 });
        assert_eq!(parsed.first["flags"], "a hypervisor");

        let host = FakeHost::new(&[(
            PATH,
            "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd aes\nCPU implementer\t: 0x41\n\n",
        )]);
        let info = observe(&Reader::new(&host));
        assert!(info.flags().get().unwrap().has("aes"));
        assert!(info.key("model name").is_absent());
    }

    proptest! {
        #[test]
        fn never_panics(text in "([a-z ]{0,12}\t?: ?[ -~]{0,12}\n{0,2}){0,20}") {
            let _ = parse(&text);
        }
    }
}
