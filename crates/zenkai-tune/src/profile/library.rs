//! Where profiles are found, and which file a name means.

use std::{collections::BTreeMap, io};

use zenkai_host::{EntryKind, Host, NotRecorded};

use super::{
    Origin, Profile, ProfileError,
    builtin::BUILTIN,
    functions::Functions,
    ini::{self, Dialect},
    load,
};

/// A directory's name cannot be longer (`NAME_MAX`).
const NAME_LIMIT: usize = 255;
/// What stands before the name of a profile that comes with zenkai.
const OWN: &str = "zenkai/";

/// All profiles of a machine: the installed ones and those that come with zenkai.
///
/// The rule for names: a profile in a later directory hides one of the same name in an earlier one; an installed
/// profile hides ours; `zenkai/NAME` is always ours.
#[derive(Clone)]
pub struct Library<'h> {
    host: &'h dyn Host,
    directories: Vec<String>,
    builtin: &'static [(&'static str, &'static str)],
}

/// What a name means.
pub(crate) enum Found {
    /// A file, its directory and its content.
    File { file: String, directory: String, content: Vec<u8> },
    /// Every file of this name is part of the profile already.
    Used,
    /// There is none; whether a capture may be the reason.
    Missing { not_recorded: bool },
}

impl<'h> Library<'h> {
    /// Searches these directories, the later ones stronger: `profile_dirs` of tuned-main.conf
    /// ([`super::MainConf::profile_directories`]).
    pub fn new(host: &'h dyn Host, directories: Vec<String>) -> Self {
        Self { host, directories, builtin: BUILTIN }
    }

    #[cfg(test)]
    pub(crate) fn with_builtin(mut self, builtin: &'static [(&'static str, &'static str)]) -> Self {
        self.builtin = builtin;
        self
    }

    /// Every profile's name and summary, sorted by name. Ours are listed under their bare name, or as `zenkai/NAME`
    /// where an installed one hides them. A file that cannot be parsed has an empty summary, as in tuned.
    pub fn list(&self) -> Vec<(String, String)> {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for directory in &self.directories {
            for entry in self.host.list(directory).unwrap_or_default() {
                if entry.kind == EntryKind::File || !is_name(&entry.name) {
                    continue;
                }
                let file = format!("{directory}/{}/tuned.conf", entry.name);
                if let Ok(content) = self.host.read(&file) {
                    found.insert(entry.name, summary(&file, &content));
                }
            }
        }
        for (name, text) in self.builtin {
            let name = if found.contains_key(*name) { format!("{OWN}{name}") } else { (*name).to_owned() };
            found.insert(name, summary("", text.as_bytes()));
        }
        found.into_iter().collect()
    }

    /// Loads profiles in this order, the later ones stronger, and then the post-loaded one, all merged into one.
    pub fn load(
        &self,
        names: &[String],
        post_loaded: Option<&str>,
        functions: &Functions<'_>,
    ) -> Result<Profile, ProfileError> {
        let names: Vec<String> =
            names.iter().map(String::as_str).chain(post_loaded).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(ProfileError::NoName);
        }
        if let Some(name) = names.iter().find(|name| !is_name(name.strip_prefix(OWN).unwrap_or(name))) {
            return Err(ProfileError::BadName { name: name.clone(), origin: Origin::CommandLine });
        }
        load::load(self, &names, *functions)
    }

    /// The machine the profiles are on.
    pub(crate) fn host(&self) -> &'h dyn Host {
        self.host
    }

    /// The directories in the order of their strength.
    pub(crate) fn strongest_first(&self) -> Vec<String> {
        self.directories.iter().rev().cloned().collect()
    }

    /// Which file the name means. Files that are part of the profile already are passed over, so that a profile in
    /// `/etc` can include the one of the same name in `/usr/lib`.
    pub(crate) fn find(&self, name: &str, used: &[String]) -> Result<Found, ProfileError> {
        if let Some(own) = name.strip_prefix(OWN) {
            return Ok(self.own(own, used).unwrap_or(Found::Missing { not_recorded: false }));
        }
        let (mut is_used, mut not_recorded) = (false, false);
        for directory in self.directories.iter().rev() {
            let directory = format!("{directory}/{name}");
            let file = format!("{directory}/tuned.conf");
            if used.contains(&file) {
                is_used = true;
                continue;
            }
            match self.host.read(&file) {
                Ok(content) => return Ok(Found::File { file, directory, content }),
                Err(error) if NotRecorded::is(&error) => not_recorded = true,
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(ProfileError::Unreadable { file, error: error.to_string() }),
            }
        }
        if is_used {
            return Ok(Found::Used);
        }
        Ok(self.own(name, used).unwrap_or(Found::Missing { not_recorded }))
    }

    fn own(&self, name: &str, used: &[String]) -> Option<Found> {
        let (name, text) = self.builtin.iter().find(|(own, _)| *own == name)?;
        let file = format!("{OWN}{name}");
        if used.contains(&file) {
            return Some(Found::Used);
        }
        Some(Found::File { directory: file.clone(), file, content: text.as_bytes().to_vec() })
    }
}

/// Nothing there, or a directory where the file should be.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

/// Whether a profile may be asked for by this name. A leading hyphen is refused, which tuned takes for "if there is
/// one", and `.` and `..`.
pub fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    !name.is_empty()
        && name.len() <= NAME_LIMIT
        && name.chars().all(is_letter)
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

fn summary(file: &str, content: &[u8]) -> String {
    let Ok(ini) = ini::parse(file, content, Dialect::Headerless) else { return String::new() };
    ini.section("main").and_then(|main| main.value("summary")).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn directories() -> Vec<String> {
        ["/usr/lib/tuned", "/usr/lib/tuned/profiles", "/etc/tuned"].map(str::to_owned).to_vec()
    }

    #[test]
    fn lists_both_layouts_and_ours() {
        let host = FakeHost::new(&[
            ("/usr/lib/tuned/old/tuned.conf", "[main]\nsummary=an old one\n"),
            ("/usr/lib/tuned/profiles/new/tuned.conf", "[main]\nsummary=a new one\n[sysctl]\na=1\n"),
            ("/usr/lib/tuned/profiles/both/tuned.conf", "[main]\nsummary=stock\n"),
            ("/etc/tuned/both/tuned.conf", "[main]\nsummary=mine\n"),
            ("/etc/tuned/broken/tuned.conf", "[main]\nsummary=x\nno value\n[x\n"),
            ("/etc/tuned/active_profile", "both\n"),
            ("/usr/lib/tuned/recommend.d/50-tuned.conf", ""),
        ]);
        let library = Library::new(&host, directories())
            .with_builtin(&[("both", "[main]\nsummary=ours\n"), ("own", "[main]\nsummary=ours too\n")]);
        let shown: Vec<String> =
            library.list().into_iter().map(|(name, summary)| format!("{name}: {summary}")).collect();
        assert_eq!(
            shown,
            [
                "both: mine",
                "broken: x",
                "new: a new one",
                "old: an old one",
                "own: ours too",
                "zenkai/both: ours"
            ]
        );
    }

    #[test]
    fn names_that_are_refused() {
        let host = FakeHost::new(&[]);
        let library = Library::new(&host, directories());
        let functions = Functions { host: &host, commands: None };
        let long = "x".repeat(5_000);
        for name in ["a\nb", "\u{1b}[31m", "../x", "-rf", "", " ", ".", "..", "a/b", "zenkai/../x", &long] {
            let error = library.load(&[name.to_owned()], None, &functions).unwrap_err();
            assert!(matches!(error, ProfileError::BadName { .. }), "{name}: {error:?}");
            let text = error.to_string();
            assert!(!text.chars().any(char::is_control) && text.len() < 200, "{text}");
        }
        assert_eq!(library.load(&[], None, &functions).unwrap_err(), ProfileError::NoName);
        let error = library.load(&["nope".to_owned()], None, &functions).unwrap_err();
        assert_eq!(
            error.as_tuned(),
            "Cannot find profile 'nope' in '['/etc/tuned', '/usr/lib/tuned/profiles', '/usr/lib/tuned']'."
        );
    }
}
