//! tuned's profile language: from files to one merged profile.

mod origin;

use serde::Serialize;

pub use origin::Origin;

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
    /// The plugin's options in the order of the merge.
    pub options: Vec<(String, OptionValue)>,
    /// Where the section starts.
    pub origin: Origin,
}

impl Unit {
    /// The option's value as written.
    pub fn option(&self, name: &str) -> Option<&OptionValue> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// A profile after all its includes were merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
}
