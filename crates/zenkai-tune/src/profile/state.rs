//! What tuned keeps of the choice of profile: `active_profile`, `profile_mode` and `post_loaded_profile`.

use std::io;

use zenkai_host::{Host, NotRecorded};

use super::{IniError, ProfileError};

/// The chosen profiles, one line, separated by blanks.
pub const ACTIVE_PROFILE: &str = "/etc/tuned/active_profile";
/// `auto` or `manual`.
pub const PROFILE_MODE: &str = "/etc/tuned/profile_mode";
/// The profile that is laid over every other one.
pub const POST_LOADED_PROFILE: &str = "/etc/tuned/post_loaded_profile";

/// Who chose the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody: the recommended one is used.
    Auto,
    /// The administrator.
    Manual,
}

impl Mode {
    /// The word in `profile_mode`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// What the three files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The names in `active_profile`.
    pub active: Vec<String>,
    /// The word in `profile_mode`; none when the file is absent or empty.
    pub mode: Option<Mode>,
    /// The name in `post_loaded_profile`.
    pub post_loaded: Option<String>,
}

/// What is to be used at a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The recommended profile.
    Recommended,
    /// These profiles, in this order.
    Named(Vec<String>),
    /// The administrator wants none.
    None,
}

impl State {
    /// Reads the files. An absent one says nothing; any other word than the two in `profile_mode` is an error.
    pub fn read(host: &dyn Host) -> Result<Self, ProfileError> {
        let words = |file: &str| -> Result<Vec<String>, ProfileError> {
            Ok(text(host, file)?.split_whitespace().map(str::to_owned).collect())
        };
        let mode = match text(host, PROFILE_MODE)?.trim() {
            "" => None,
            "auto" => Some(Mode::Auto),
            "manual" => Some(Mode::Manual),
            other => {
                let message = format!(
                    "`{}` is no mode; write auto or manual",
                    other.chars().take(40).collect::<String>().escape_debug()
                );
                return Err(IniError { file: PROFILE_MODE.to_owned(), line: 1, message }.into());
            }
        };
        let post_loaded = words(POST_LOADED_PROFILE)?.into_iter().next();
        Ok(Self { active: words(ACTIVE_PROFILE)?, mode, post_loaded })
    }

    /// The mode that the files mean: without a word, a profile was chosen by hand and no profile by nobody.
    pub fn effective_mode(&self) -> Mode {
        match self.mode {
            Some(mode) => mode,
            None if self.active.is_empty() => Mode::Auto,
            None => Mode::Manual,
        }
    }

    /// What is to be used at a start.
    pub fn choice(&self) -> Choice {
        match self.effective_mode() {
            Mode::Auto => Choice::Recommended,
            Mode::Manual if self.active.is_empty() => Choice::None,
            Mode::Manual => Choice::Named(self.active.clone()),
        }
    }

    /// The three files' content for this state, to be written by the executor. Nothing chosen is an empty file.
    pub fn files(&self) -> [(&'static str, String); 3] {
        let line = |text: String| if text.is_empty() { text } else { format!("{text}\n") };
        [
            (ACTIVE_PROFILE, line(self.active.join(" "))),
            (PROFILE_MODE, format!("{}\n", self.effective_mode().word())),
            (POST_LOADED_PROFILE, line(self.post_loaded.clone().unwrap_or_default())),
        ]
    }
}

fn text(host: &dyn Host, file: &str) -> Result<String, ProfileError> {
    match host.read(file) {
        Ok(content) => Ok(String::from_utf8_lossy(&content).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound || NotRecorded::is(&error) => Ok(String::new()),
        Err(error) => Err(ProfileError::Unreadable { file: file.to_owned(), error: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn choice(active: &str, mode: &str) -> Choice {
        let host = FakeHost::new(&[(ACTIVE_PROFILE, active), (PROFILE_MODE, mode)]);
        State::read(&host).unwrap().choice()
    }

    #[test]
    fn rules_of_the_mode() {
        let named = |names: &[&str]| Choice::Named(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(State::read(&FakeHost::new(&[])).unwrap().choice(), Choice::Recommended);
        assert_eq!(choice("", ""), Choice::Recommended);
        assert_eq!(choice("", "manual\n"), Choice::None);
        assert_eq!(choice("a  b\n", ""), named(&["a", "b"]));
        assert_eq!(choice("a\n", "manual\n"), named(&["a"]));
        assert_eq!(choice("a\n", "auto\n"), Choice::Recommended);
        let host = FakeHost::new(&[(PROFILE_MODE, "\u{1b}x\n")]);
        let error = State::read(&host).unwrap_err().to_string();
        assert_eq!(error, "/etc/tuned/profile_mode:1: `\\u{1b}x` is no mode; write auto or manual");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let state = State {
            active: vec!["a".to_owned(), "b".to_owned()],
            mode: Some(Mode::Manual),
            post_loaded: Some("p".to_owned()),
        };
        let files = state.files();
        let host = files.iter().fold(FakeHost::new(&[]), |host, (file, text)| host.file(file, text));
        assert_eq!(State::read(&host).unwrap(), state);
        assert_eq!(files[0].1, "a b\n");
        assert_eq!(State::default().files()[0].1, "");
    }
}
