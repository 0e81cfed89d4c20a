//! tuned's profile language: from files to one merged profile.
//!
//! Differences from tuned, all of them wanted:
//!
//! * Variables of one load are unknown in the next, and so a variable in `include` is never known.
//! * A name that no profile can have is refused, not passed over; so are `.`, `..` and a leading hyphen where the user
//!   names a profile, and a slash or control character in `include` (tuned takes the last component of a path).
//! * A profile of ours is found when no installed one has its name; `zenkai/NAME` is always ours.
//! * Files over 1 MiB, lines over 64 KiB, NUL bytes, more than 100 included files and values that grow without end are
//!   refused, each with its file and line.
//! * A unit `[script]` without `script=` keeps the included scripts once; tuned would run them twice.
//! * A relative `include` in `[variables]` starts at the profile's directory, and may use variables defined above it.
//! * `priority` that is no number, and a file of variables we may not read, are errors.
//! * Functions: `virt_check` knows the kind of machine itself and works without root; lists of devices are in the order
//!   of their numbers; `check_net_queue_count` counts the CPUs online; `exec` and `lscpu_check` stay as they are written
//!   unless somebody hands over [`Commands`].
//! * Regular expressions give up after a fixed number of steps; see [`regex`] for what is not supported.

mod builtin;
mod error;
mod expand;
mod functions;
mod glob;
mod library;
mod load;
mod main_conf;
mod origin;
mod recommend;
mod state;
mod variables;
mod virt;

pub mod ini;
pub mod regex;

use serde::Serialize;

pub use builtin::BUILTIN;
pub use error::ProfileError;
pub use expand::{Expanded, Expander};
pub use functions::{Commands, Functions};
pub use glob::fnmatch;
pub use ini::IniError;
pub use library::{Library, is_name};
pub use main_conf::{MAIN_CONF, MainConf, Rollback};
pub use origin::Origin;
pub use recommend::{Recommendation, recommend};
pub use state::{ACTIVE_PROFILE, Choice, Mode, POST_LOADED_PROFILE, PROFILE_MODE, State};

/// The value of one option as it is written, with the place where it is written. Variables and functions in it are
/// expanded when a plan is made, as tuned does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptionValue {
    /// The text, not expanded.
    pub raw: String,
    /// Where it is written.
    pub origin: Origin,
}

/// One section of a profile: a plugin, the devices it is for, and the plugin's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// The section's name.
    pub name: String,
    /// The plugin: `type=`, or the section's name.
    pub plugin: String,
    /// Whether the unit is used at all.
    pub enabled: bool,
    /// Units of a lower priority come first and get their devices first.
    pub priority: i64,
    /// Device names, globs and `!`globs, not expanded; `*` when nothing is written.
    pub devices: String,
    /// A regular expression over a device's udev properties; it replaces `devices`.
    pub devices_udev_regex: Option<String>,
    /// The unit is used only where this is found in `/proc/cpuinfo`.
    pub cpuinfo_regex: Option<String>,
    /// The unit is used only where this is found in what `uname` says.
    pub uname_regex: Option<String>,
    /// A script to run before the unit is applied.
    pub script_pre: Option<OptionValue>,
    /// A script to run after the unit was applied.
    pub script_post: Option<OptionValue>,
    /// The plugin's options in the order of the merge. A key comes once, but for `script` in the unit that is named
    /// `script`: it comes once for every file that gives one.
    pub options: Vec<(String, OptionValue)>,
    /// Where the section starts.
    pub origin: Origin,
}

impl Unit {
    /// The option's value as written.
    pub fn option(&self, name: &str) -> Option<&OptionValue> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// All values of the option: the scripts of the unit `script`, in the order in which they run.
    pub fn all<'u>(&'u self, name: &str) -> impl Iterator<Item = &'u OptionValue> {
        self.options.iter().filter(move |(key, _)| key == name).map(|(_, value)| value)
    }
}

/// Something in a profile that was passed over or stays as it is written, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where it is written.
    pub origin: Origin,
    /// What and why.
    pub text: String,
}

/// A profile after all its includes were merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The names it was asked for by, in order.
    pub names: Vec<String>,
    /// One line on what it is for.
    pub summary: String,
    /// More lines.
    pub description: String,
    /// Variables in the order of their definition, already expanded.
    pub variables: Vec<(String, OptionValue)>,
    /// The units, sorted by priority, otherwise in the order of the merge.
    pub units: Vec<Unit>,
    /// The files it was read from, in the order in which they were opened; `zenkai/NAME` for one of ours.
    pub files: Vec<String>,
    /// What was passed over while it was loaded.
    pub notes: Vec<Note>,
}
