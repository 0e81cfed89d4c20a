//! Which profile fits the machine, by tuned's rules: `recommend.conf`, then the files of both `recommend.d`. Where there
//! is none of these, because tuned was never installed or was removed, rules of ours are used.

use std::{collections::BTreeMap, io};

use zenkai_facts::{Reader, firmware};
use zenkai_host::{Host, NotRecorded};

use super::{
    Note, Origin, ProfileError,
    ini::{self, Dialect, Entry, Section},
    regex::{Flags, matches},
    virt,
};

const CONF: &str = "/etc/tuned/recommend.conf";
/// A file in the later directory takes the place of one of the same name.
const DIRECTORIES: [&str; 2] = ["/usr/lib/tuned/recommend.d", "/etc/tuned/recommend.d"];
/// The rules where there are no others, and the name by which they are told.
const OWN: (&str, &str) = ("zenkai/recommend.conf", include_str!("recommend.conf"));
/// When nothing matches.
const FALLBACK: &str = "balanced";

/// Kinds of enclosure by number (SMBIOS, DSP0134, "System Enclosure or Chassis Types"). Rules match these words, so they
/// are spelled as tuned shows them, which is not everywhere as the standard does.
const CHASSIS: [&str; 37] = [
    "",
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosing",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

/// The profile that fits, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recommendation {
    /// Its name.
    pub profile: String,
    /// The section that matched; none when nothing did.
    pub origin: Option<Origin>,
    /// What could not be told on the way.
    pub notes: Vec<Note>,
}

/// Finds the profile. A file that cannot be parsed is passed over with a note, as in tuned.
pub fn recommend(host: &dyn Host) -> Result<Recommendation, ProfileError> {
    let mut search = Search { host, notes: Vec::new(), virt: None, any_rules: false };
    let mut files = BTreeMap::new();
    for directory in DIRECTORIES {
        for entry in host.list(directory).unwrap_or_default() {
            files.insert(entry.name.clone(), format!("{directory}/{}", entry.name));
        }
    }
    for file in std::iter::once(CONF.to_owned()).chain(files.into_values()) {
        if let Some((profile, origin)) = search.file(&file)? {
            return Ok(Recommendation { profile, origin: Some(origin), notes: search.notes });
        }
    }
    let own = if search.any_rules { None } else { search.rules(OWN.0, OWN.1.as_bytes()) };
    let (profile, origin) = own.map_or((FALLBACK.to_owned(), None), |(name, origin)| (name, Some(origin)));
    Ok(Recommendation { profile, origin, notes: search.notes })
}

struct Search<'h> {
    host: &'h dyn Host,
    notes: Vec<Note>,
    /// What `virt-what` would print, once it was asked for.
    virt: Option<Result<String, String>>,
    /// Whether some file with rules is there.
    any_rules: bool,
}

impl Search<'_> {
    fn file(&mut self, file: &str) -> Result<Option<(String, Origin)>, ProfileError> {
        let content = match self.host.read(file) {
            Ok(content) => content,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => {
                return Err(ProfileError::Unreadable { file: file.to_owned(), error: error.to_string() });
            }
        };
        self.any_rules = true;
        Ok(self.rules(file, &content))
    }

    fn rules(&mut self, file: &str, content: &[u8]) -> Option<(String, Origin)> {
        let ini = match ini::parse(file, content, Dialect::Sections) {
            Ok(ini) => ini,
            Err(error) => {
                let origin = Origin::Line { file: error.file, line: error.line };
                self.notes.push(Note { origin, text: format!("the file is passed over: {}", error.message) });
                return None;
            }
        };
        for section in &ini.sections {
            if self.fits(file, section) {
                let name = section.name.rsplit_once(',').map_or(section.name.as_str(), |(name, _)| name);
                let origin = Origin::Line { file: file.to_owned(), line: section.line };
                return Some((name.to_owned(), origin));
            }
        }
        None
    }

    /// Whether all keys of the section match; without keys it fits every machine.
    fn fits(&mut self, file: &str, section: &Section) -> bool {
        section.entries.iter().all(|entry| {
            self.matches(entry).unwrap_or_else(|text| {
                let origin = Origin::Line { file: file.to_owned(), line: entry.line };
                self.notes.push(Note { origin, text });
                false
            })
        })
    }

    fn matches(&mut self, entry: &Entry) -> Result<bool, String> {
        let pattern = entry.value.as_deref().filter(|value| !value.is_empty()).unwrap_or("^$");
        let whole = Flags { dotall: true, ..Flags::default() };
        let any_case = Flags { ignore_case: true, ..Flags::default() };
        match entry.key.as_str() {
            "virt" => matches(pattern, &self.virt()?, whole),
            "system" => {
                matches(pattern, &self.content("/etc/system-release-cpe")?.unwrap_or_default(), whole)
            }
            "chassis_type" => matches(pattern, self.chassis(), any_case),
            "syspurpose_role" => matches(pattern, &self.role()?, any_case),
            key if key.starts_with('/') => {
                self.content(key)?.map_or(Ok(false), |content| matches(pattern, &content, whole))
            }
            key if key.starts_with("process") => self.any_process(pattern),
            // tuned lets a key that it does not know match.
            _ => Ok(true),
        }
    }

    fn virt(&mut self) -> Result<String, String> {
        let host = self.host;
        let words = self.virt.get_or_insert_with(|| {
            let words = virt::words(host)?;
            Ok(words.iter().flat_map(|word| [word.as_str(), "\n"]).collect())
        });
        words.clone()
    }

    /// A file's text; none where there is no such file.
    fn content(&self, path: &str) -> Result<Option<String>, String> {
        match self.host.read(path) {
            Ok(content) => Ok(Some(String::from_utf8_lossy(&content).into_owned())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }

    fn chassis(&self) -> &'static str {
        let number = firmware::observe(&Reader::new(self.host)).chassis_type;
        let index = number.get().and_then(|number| usize::try_from(*number).ok());
        index.and_then(|index| CHASSIS.get(index)).copied().unwrap_or_default()
    }

    /// The role that `syspurpose` gave the machine (`/etc/rhsm/syspurpose/syspurpose.json`).
    fn role(&self) -> Result<String, String> {
        let text = self.content("/etc/rhsm/syspurpose/syspurpose.json")?.unwrap_or_default();
        // One key of a flat object; everything else in the file is of no interest here.
        let after = text.split_once("\"role\"").and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        let value = after.and_then(|rest| rest.trim_start().strip_prefix('"'));
        Ok(value.and_then(|rest| rest.split_once('"')).map(|(role, _)| role.to_owned()).unwrap_or_default())
    }

    /// Whether the name of some process starts with the pattern.
    fn any_process(&self, pattern: &str) -> Result<bool, String> {
        let entries = self.host.list("/proc").map_err(|error| format!("/proc: {error}"))?;
        let is_process = |name: &str| name.chars().all(|letter| letter.is_ascii_digit());
        for entry in entries.iter().filter(|entry| is_process(&entry.name)) {
            // A process may end while we look.
            let Ok(Some(name)) = self.content(&format!("/proc/{}/comm", entry.name)) else { continue };
            if matches(pattern, name.trim_end_matches('\n'), Flags::default())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    NotRecorded::is(error) || matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zenkai_host::FakeHost;

    fn machine() -> FakeHost {
        FakeHost::new(&[
            ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n"),
            ("/proc/1/comm", "systemd\n"),
            ("/proc/77/comm", "postgres\n"),
            ("/sys/class/dmi/id/chassis_type", "10\n"),
            ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("/etc/system-release-cpe", "cpe:/o:some:linux:9\n"),
            ("/etc/rhsm/syspurpose/syspurpose.json", "{\n  \"role\": \"Atomic Host\"\n}\n"),
        ])
    }

    fn recommended(rules: &str) -> String {
        let found = recommend(&machine().file(CONF, rules)).unwrap();
        let note = |note: &Note| format!(" ({} {})", note.origin, note.text);
        let notes = found.notes.iter().map(note).collect::<Vec<_>>().concat();
        format!("{}{notes}", found.profile)
    }

    #[test]
    fn rules() {
        for (rules, wanted) in [
            ("[a]\nvirt=\n[b]\nvirt=.+\n", "b"),
            ("[a]\nsystem=.*other.*\n[b,1]\nsystem=.*some.*\n", "b"),
            ("[a]\nprocess=gres\n[b]\nprocess=postgres\nprocess2=sys\n", "b"),
            ("[a]\n/no/file=.*\n[b]\n/sys/class/dmi/id/sys_vendor=QEMU\n", "b"),
            ("[a]\nchassis_type=laptop\n[b]\nchassis_type=.*(notebook|laptop)$\n", "b"),
            ("[a]\nsyspurpose_role=compute\n[b]\nsyspurpose_role=atomic\n", "b"),
            ("[a]\nvirt=.+\nprocess=nothing\n", "balanced"),
            ("[a]\n", "a"),
            ("", "balanced"),
            (
                "[a]\nprocess=(\n",
                "balanced (/etc/tuned/recommend.conf:2 `(` is no regular expression: Parsing error at position 7: \
                 Opening parenthesis without closing parenthesis)",
            ),
            (
                "x\n",
                "balanced (/etc/tuned/recommend.conf:1 the file is passed over: this line stands before the first \
                 [section])",
            ),
        ] {
            assert_eq!(recommended(rules), wanted, "{rules}");
        }
    }

    #[test]
    fn rules_of_ours_where_there_are_no_others() {
        let found = recommend(&machine()).unwrap();
        assert_eq!(found.profile, "virtual-guest");
        assert!(found.origin.unwrap().to_string().starts_with("zenkai/recommend.conf:"));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        for (number, wanted) in
            [("17\n", "throughput-performance"), ("10\n", "balanced"), ("2\n", "balanced")]
        {
            let metal = FakeHost::new(&[
                ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu\n"),
                ("/sys/class/dmi/id/chassis_type", number),
            ]);
            assert_eq!(recommend(&metal).unwrap().profile, wanted, "{number}");
        }
        assert!(
            ini::parse(OWN.0, OWN.1.as_bytes(), Dialect::Sections)
                .unwrap()
                .sections
                .iter()
                .all(|section| { super::super::BUILTIN.iter().any(|(name, _)| *name == section.name) })
        );
    }

    #[test]
    fn files_of_the_same_name_hide_each_other() {
        let host = machine()
            .file("/usr/lib/tuned/recommend.d/50-tuned.conf", "[stock]\n")
            .file("/usr/lib/tuned/recommend.d/40-early.conf", "[early]\nvirt=\n")
            .file("/etc/tuned/recommend.d/50-tuned.conf", "[mine]\n");
        let found = recommend(&host).unwrap();
        assert_eq!(found.profile, "mine");
        assert_eq!(found.origin.unwrap().to_string(), "/etc/tuned/recommend.d/50-tuned.conf:1");
    }
}
