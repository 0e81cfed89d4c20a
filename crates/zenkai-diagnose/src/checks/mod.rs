//! All checks. To add one: a file and its `.md` in the subsystem's folder, and two lines in that folder's
//! `mod.rs`. The order here is the order of equally bad findings.

pub mod block;
pub mod cgroup;
pub(crate) mod clock;
pub mod cpu;
pub mod idle;
pub mod irq;
pub mod kernel;
pub mod memory;
pub mod net;
pub mod numa;
pub mod pcie;
pub mod power;
pub mod services;
pub(crate) mod shared;
pub mod virtualisation;

#[cfg(test)]
pub(crate) mod testing;

use std::sync::LazyLock;

use crate::Check;

/// Every check, by subsystem.
pub static CHECKS: LazyLock<Vec<&'static Check>> = LazyLock::new(|| {
    [
        cpu::CHECKS,
        idle::CHECKS,
        power::CHECKS,
        memory::CHECKS,
        numa::CHECKS,
        block::CHECKS,
        pcie::CHECKS,
        net::CHECKS,
        irq::CHECKS,
        kernel::CHECKS,
        cgroup::CHECKS,
        virtualisation::CHECKS,
        services::CHECKS,
    ]
    .concat()
});

/// The check called `id`.
pub fn find(id: &str) -> Option<&'static Check> {
    CHECKS.iter().copied().find(|check| check.id == id)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test looks at the source tree")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const HEADINGS: [&str; 7] = [
        "**What.**",
        "**Why it costs.**",
        "**Evidence.**",
        "**Fix.**",
        "**Risk.**",
        "**When it is wrong.**",
        "**Source.**",
    ];

    #[test]
    fn every_file_is_listed_and_named_after_its_check() {
        let mut files = BTreeSet::new();
        for folder in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/checks")).unwrap() {
            let folder = folder.unwrap().path();
            if !folder.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
                if stem == "mod" || stem.starts_with("shared") {
                    continue;
                }
                assert!(path.with_extension("md").is_file(), "{stem}: no explanation");
                assert!(path.with_extension("rs").is_file(), "{stem}: no check");
                files.insert((folder.file_name().unwrap().to_str().unwrap().to_owned(), stem));
            }
        }
        let listed: BTreeSet<_> =
            CHECKS.iter().map(|check| (check.subsystem.to_string(), check.id.replace('-', "_"))).collect();
        assert_eq!(listed, files);
        assert_eq!(listed.len(), CHECKS.len(), "an id is used twice");
    }

    #[test]
    fn every_explanation_says_all_there_is_to_say() {
        for check in CHECKS.iter() {
            let title = check.explanation.lines().next().unwrap();
            assert!(title.starts_with("# "), "{}: the title comes first", check.id);
            let mut rest = check.explanation;
            for heading in HEADINGS {
                let (_, after) =
                    rest.split_once(heading).unwrap_or_else(|| panic!("{}: {heading}", check.id));
                rest = after;
            }
            assert!(check.source.starts_with("https://"), "{}", check.id);
            assert!(check.explanation.contains(check.source), "{}: the source is in the page", check.id);
            assert!(!check.summary.ends_with('.') && !check.effect.is_empty() && !check.risk.is_empty());
        }
    }
}
