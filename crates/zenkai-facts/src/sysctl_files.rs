//! Settings in files against settings in force: `sysctl.d(5)` and `modprobe.d(5)`.

mod drop_in;
mod key;
mod modules;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Observed, Reader, Reason};

pub use drop_in::SourceFile;
pub use modules::ModuleOption;

/// Where `systemd-sysctl` looks, the directory that wins first. `/lib` only counts where it is not a link to
/// `/usr/lib`.
const DIRS: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// `sysctl --system` reads this file last; `systemd-sysctl` reads it only where a link in a directory leads to it.
const LAST: &str = "/etc/sysctl.conf";

/// The most assignments that are kept; distributions ship some fifty.
const ASSIGNMENT_LIMIT: usize = 2048;

/// The most keys that one pattern stands for.
const EXPANSION_LIMIT: usize = 1024;

/// Settings in files against settings in force.
#[derive(Debug, Clone, Serialize)]
pub struct SysctlFiles {
    /// The service manager whose start applies the files; not applicable where none does, as in most containers.
    pub applied_by: Observed<String>,
    /// The files, in the order in which they are applied; masked ones too.
    pub files: Vec<SourceFile>,
    /// Every assignment in the files that count, in order. A pattern gives one for each key it stands for.
    pub assignments: Vec<Assignment>,
    /// The options of kernel modules in `modprobe.d`.
    pub module_options: Vec<ModuleOption>,
}

/// A line in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Line {
    /// The file.
    pub file: String,
    /// Its number, from 1.
    pub line: usize,
}

impl std::fmt::Display for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// One setting in a file.
#[derive(Debug, Clone, Serialize)]
pub struct Assignment {
    /// The key with dots, as `sysctl` shows it.
    pub key: String,
    /// The value that is asked for.
    pub value: String,
    /// Where.
    pub at: Line,
    /// Whether failure is to be ignored (`-` in front).
    pub tolerant: bool,
    /// Whether a pattern with `*` stands behind it.
    pub pattern: bool,
    /// The line that is applied later, or takes precedence, and sets the same key.
    pub overridden_by: Option<Line>,
    /// The value in force; absent when the kernel does not have the key now.
    pub running: Observed<String>,
}

impl Assignment {
    /// Whether the value in force is the one asked for; nothing when it could not be read. White space between
    /// numbers and the way a number is written do not matter.
    pub fn in_force(&self) -> Option<bool> {
        Some(same_value(&self.value, self.running.text()?))
    }
}

/// Whether two spellings mean the same value.
pub fn same_value(left: &str, right: &str) -> bool {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse::<i128>().ok(),
    };
    let same = |(left, right): (&str, &str)| {
        left == right || number(left).is_some_and(|value| number(right) == Some(value))
    };
    let words = |text: &str| text.split_whitespace().count();
    words(left) == words(right) && left.split_whitespace().zip(right.split_whitespace()).all(same)
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> SysctlFiles {
    let (files, assignments) = read(reader, |_| true);
    SysctlFiles {
        applied_by: applied_by(reader),
        assignments,
        module_options: modules::observe(reader),
        files,
    }
}

/// The assignments of some files, for who needs nothing else: the rest costs several times as many system calls.
pub fn assignments(reader: &Reader<'_>, wanted: fn(&str) -> bool) -> Vec<Assignment> {
    read(reader, wanted).1
}

fn read(reader: &Reader<'_>, wanted: fn(&str) -> bool) -> (Vec<SourceFile>, Vec<Assignment>) {
    let mut files = drop_in::files(reader, &DIRS);
    if !files.iter().any(|file| file.leads_to(LAST)) && !reader.text(LAST).is_absent() {
        files.push(SourceFile { path: LAST.to_owned(), target: None, masked_by: None });
    }
    let mut lines = Vec::new();
    for file in files.iter().filter(|file| file.counts()) {
        if let Some(text) = reader.text(&file.path).text() {
            lines.extend(text.lines().zip(1..).filter_map(|(text, line)| parse(text, &file.path, line)));
        }
        lines.truncate(ASSIGNMENT_LIMIT);
    }
    let assignments = resolve(reader, &lines, wanted);
    (files, assignments)
}

/// Files that container managers leave inside (`systemd.io/CONTAINER_INTERFACE`, podman, Docker). In there
/// `/proc/sys` is mostly the host's, and `systemd-sysctl` is skipped where it cannot be written.
const CONTAINER_MARKS: [&str; 3] = ["/run/systemd/container", "/run/.containerenv", "/.dockerenv"];

fn applied_by(reader: &Reader<'_>) -> Observed<String> {
    if let Some(mark) = CONTAINER_MARKS.iter().find(|mark| reader.bytes(mark).get().is_some()) {
        let why = "in a container these settings are the host's".to_owned();
        return Observed::unavailable(*mark, Reason::NotApplicable(why));
    }
    // `sd_booted(3)`: this directory is there exactly when systemd is the first process.
    let systemd = reader.entries("/run/systemd/system").map(|_| "systemd-sysctl".to_owned());
    let found = systemd.or_else(|| reader.entries("/run/openrc").map(|_| "OpenRC".to_owned()));
    if !found.is_absent() {
        return found;
    }
    let why = "no service manager that applies sysctl.d has started this system";
    Observed::unavailable("/run/systemd/system", Reason::NotApplicable(why.into()))
}

/// A line that is understood.
struct Parsed {
    /// Path below `/proc/sys`, perhaps with `*` in it.
    path: String,
    /// Nothing when the line only keeps the key out of patterns.
    value: Option<String>,
    tolerant: bool,
    at: Line,
}

/// `[-]key = value`, or `-key` alone; `#` and `;` begin comments.
fn parse(text: &str, file: &str, line: usize) -> Option<Parsed> {
    let text = text.trim();
    if text.is_empty() || text.starts_with(['#', ';']) {
        return None;
    }
    let (text, tolerant) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.trim().to_owned())),
        None if tolerant => (text, None),
        None => return None,
    };
    let at = Line { file: file.to_owned(), line };
    Some(Parsed { path: key::to_path(key.trim())?, value, tolerant, at })
}

/// Expands patterns, reads what is in force and finds out which line wins.
fn resolve(reader: &Reader<'_>, lines: &[Parsed], wanted: fn(&str) -> bool) -> Vec<Assignment> {
    // A key that is named takes no part in any pattern, wherever the two stand.
    let named: BTreeSet<&str> =
        lines.iter().filter(|line| !key::is_pattern(&line.path)).map(|line| line.path.as_str()).collect();
    let mut running: BTreeMap<String, Observed<String>> = BTreeMap::new();
    let mut assignments: Vec<Assignment> = Vec::new();
    for line in lines.iter().filter(|line| wanted(&line.at.file)) {
        let Some(value) = &line.value else { continue };
        let pattern = key::is_pattern(&line.path);
        let paths = if pattern {
            let mut paths = key::expand(reader, &line.path, EXPANSION_LIMIT);
            paths.retain(|path| !named.contains(path.as_str()));
            paths
        } else {
            vec![line.path.clone()]
        };
        for path in paths {
            if assignments.len() >= ASSIGNMENT_LIMIT {
                break;
            }
            let running = running
                .entry(path.clone())
                .or_insert_with(|| reader.text(&format!("/proc/sys/{path}")))
                .clone();
            assignments.push(Assignment {
                key: key::swap(&path),
                value: value.clone(),
                at: line.at.clone(),
                tolerant: line.tolerant,
                pattern,
                overridden_by: None,
                running,
            });
        }
    }
    let mut winners: BTreeMap<String, Line> = BTreeMap::new();
    for assignment in assignments.iter_mut().rev() {
        assignment.overridden_by = winners.get(&assignment.key).cloned();
        winners.entry(assignment.key.clone()).or_insert_with(|| assignment.at.clone());
    }
    assignments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    fn assignments(host: &FakeHost) -> Vec<String> {
        let show = |one: &Assignment| {
            let by = one.overridden_by.as_ref().map_or(String::new(), |line| format!(" < {line}"));
            format!("{}={} {}{by}", one.key, one.value, one.at)
        };
        observe(&Reader::new(host)).assignments.iter().map(show).collect()
    }

    #[test]
    fn earlier_directories_mask_and_later_names_win() {
        let host = FakeHost::new(&[
            ("/dev/null", ""),
            ("/etc/sysctl.d/50-a.conf", "# c\n; c\nvm.swappiness = 10\n"),
            ("/usr/lib/sysctl.d/50-a.conf", "vm.swappiness = 99\n"),
            ("/usr/lib/sysctl.d/60-b.conf", "vm.swappiness=1\n-vm/dirty_ratio=5\n"),
            ("/usr/lib/sysctl.d/70-off.conf", "vm.swappiness=2\n"),
            ("/etc/sysctl.d/README", "vm.swappiness=3\n"),
            ("/etc/sysctl.conf", "vm.swappiness=7\n"),
        ])
        .link("/etc/sysctl.d/70-off.conf", "/dev/null")
        .link("/etc/sysctl.d/10-conf.conf", "/etc/sysctl.conf");
        assert_eq!(
            assignments(&host),
            [
                "vm.swappiness=7 /etc/sysctl.d/10-conf.conf:1 < /usr/lib/sysctl.d/60-b.conf:1",
                "vm.swappiness=10 /etc/sysctl.d/50-a.conf:3 < /usr/lib/sysctl.d/60-b.conf:1",
                "vm.swappiness=1 /usr/lib/sysctl.d/60-b.conf:1",
                "vm.dirty_ratio=5 /usr/lib/sysctl.d/60-b.conf:2",
            ]
        );
        let files = observe(&Reader::new(&host)).files;
        let masked: Vec<_> =
            files.iter().filter(|file| !file.counts()).map(|file| file.path.as_str()).collect();
        assert_eq!(
            masked,
            ["/usr/lib/sysctl.d/50-a.conf", "/etc/sysctl.d/70-off.conf", "/usr/lib/sysctl.d/70-off.conf"]
        );
    }

    #[test]
    fn a_named_key_takes_no_part_in_a_pattern() {
        let host = FakeHost::new(&[
            ("/proc/sys/net/ipv4/conf/all/rp_filter", "1\n"),
            ("/proc/sys/net/ipv4/conf/eth0.5/rp_filter", "2\n"),
            ("/proc/sys/net/ipv4/conf/eth1/rp_filter", "2\n"),
            (
                "/etc/sysctl.d/1.conf",
                "net.ipv4.conf.*.rp_filter=2\n-net.ipv4.conf.eth1.rp_filter\nnet.ipv4.conf.all.rp_filter=1\n",
            ),
        ]);
        assert_eq!(
            assignments(&host),
            [
                "net.ipv4.conf.eth0/5.rp_filter=2 /etc/sysctl.d/1.conf:1",
                "net.ipv4.conf.all.rp_filter=1 /etc/sysctl.d/1.conf:3"
            ]
        );
        let found = observe(&Reader::new(&host)).assignments;
        assert_eq!(found[0].in_force(), Some(true));
    }

    #[test]
    fn values_that_mean_the_same() {
        assert!(same_value("4096 87380  6291456", "4096\t87380\t6291456"));
        assert!(same_value("0x10", "16"));
        assert!(!same_value("1 2", "1"));
        assert!(!same_value("fq", "bbr"));
    }

    #[test]
    fn a_link_to_itself_and_a_flood_are_survived() {
        let flood = "vm.swappiness = 1\n".repeat(50_000);
        let host =
            FakeHost::new(&[("/etc/sysctl.d/50-flood.conf", &flood), ("/run/systemd/container", "lxc")])
                .link("/etc/sysctl.d/10-a.conf", "/etc/sysctl.d/20-b.conf")
                .link("/etc/sysctl.d/20-b.conf", "/etc/sysctl.d/10-a.conf");
        let found = observe(&Reader::new(&host));
        assert_eq!(found.assignments.len(), ASSIGNMENT_LIMIT);
        assert!(matches!(found.applied_by.reason(), Some(Reason::NotApplicable(_))));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[-#;a-z.*/= \n]{0,80}") {
            let host = FakeHost::new(&[("/etc/sysctl.d/1.conf", &text), ("/proc/sys/a/b", "1\n")]);
            let _ = assignments(&host);
        }
    }
}
