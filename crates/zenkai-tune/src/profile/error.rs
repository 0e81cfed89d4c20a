//! Why a profile cannot be used.

use std::fmt;

use super::{Origin, ini::IniError};

/// Why a profile cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileError {
    /// No name at all was given.
    NoName,
    /// A name that no profile can have. It is shown with its control characters made visible.
    BadName {
        /// What was asked for.
        name: String,
        /// Where it is asked for.
        origin: Origin,
    },
    /// No such profile.
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it is asked for.
        origin: Origin,
        /// The directories that were searched, the strongest first.
        directories: Vec<String>,
        /// Some directory is not part of the capture, so that the profile may well exist on the machine.
        not_recorded: bool,
    },
    /// Its file cannot be read.
    Unreadable {
        /// The file.
        file: String,
        /// What the machine said.
        error: String,
    },
    /// Its file cannot be parsed.
    Syntax(IniError),
    /// A value that cannot be used.
    BadValue {
        /// The line.
        origin: Origin,
        /// What is wrong, and what to do.
        message: String,
    },
    /// An assertion in the profile does not hold.
    Assertion {
        /// The line.
        origin: Origin,
        /// The profile's own words.
        text: String,
    },
    /// More files, options or text than any profile has.
    TooLarge {
        /// The profile's file.
        file: String,
        /// What there is too much of.
        message: String,
    },
}

impl ProfileError {
    /// The sentence tuned has for it, which scripts look for.
    pub fn as_tuned(&self) -> String {
        match self {
            Self::NoName | Self::BadName { .. } => {
                "No profile or invalid profiles were specified.".to_owned()
            }
            Self::NotFound { name, directories, .. } => {
                let quoted: Vec<String> = directories.iter().map(|dir| format!("'{dir}'")).collect();
                format!("Cannot find profile '{name}' in '[{}]'.", quoted.join(", "))
            }
            Self::Syntax(IniError { file, .. })
            | Self::Unreadable { file, .. }
            | Self::TooLarge { file, .. } => {
                format!("Cannot parse '{file}'.")
            }
            Self::BadValue { message, .. } => message.clone(),
            Self::Assertion { text, .. } => format!("Assertion '{text}' failed."),
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => out.write_str("no profile is named"),
            Self::BadName { name, origin } => write!(
                out,
                "{origin}: {} is no profile's name; names have letters, digits, `_`, `.` and `-`",
                quoted(name)
            ),
            Self::NotFound { name, origin, directories, not_recorded } => {
                write!(out, "{origin}: there is no profile {} in {}", quoted(name), directories.join(", "))?;
                let why = if *not_recorded { " (not all of them are in the capture)" } else { "" };
                write!(out, "{why}; `zenkai profile list` shows what there is")
            }
            Self::Unreadable { file, error } => write!(out, "{file}: cannot be read: {error}"),
            Self::Syntax(error) => error.fmt(out),
            Self::BadValue { origin, message } => write!(out, "{origin}: {message}"),
            Self::Assertion { origin, text } => {
                write!(out, "{origin}: the profile demands: {text}; set what it asks for")
            }
            Self::TooLarge { file, message } => write!(out, "{file}: {message}"),
        }
    }
}

impl std::error::Error for ProfileError {}

impl From<IniError> for ProfileError {
    fn from(error: IniError) -> Self {
        Self::Syntax(error)
    }
}

/// A name from outside, without control characters and not endless.
fn quoted(name: &str) -> String {
    let short: String = name.chars().take(60).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}
