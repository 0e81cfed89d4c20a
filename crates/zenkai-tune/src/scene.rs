//! What a plugin may look at while it plans.

use std::{io, sync::LazyLock};

use zenkai_facts::CpuSet;
use zenkai_host::{Host, Knob, Value, value};

use crate::{profile::Origin, transaction::Held};

/// The machine a plan is made for. Plugins read only what they need: a whole look at the machine costs more than
/// applying a profile.
#[derive(Clone, Copy)]
pub struct Scene<'s> {
    /// The machine.
    pub host: &'s dyn Host,
    /// Whether sysctls that `sysctl.d` sets keep those values (`reapply_sysctl` in `tuned-main.conf`).
    pub reapply_sysctl: bool,
    /// What the profile in force holds on this machine.
    pub held: &'s Held,
}

static NOTHING: LazyLock<Held> = LazyLock::new(Held::default);

impl<'s> Scene<'s> {
    /// A machine on which no profile is in force.
    pub fn new(host: &'s dyn Host, reapply_sysctl: bool) -> Self {
        Self { host, reapply_sysctl, held: &NOTHING }
    }
}

impl Scene<'_> {
    /// What the knob showed before the profile in force, which the next one takes the place of: what depends on a value
    /// that is there (`>4096`, a factor, an intersection) starts from this.
    pub fn before(&self, knob: &Knob) -> io::Result<Value> {
        Ok(self.held.before(knob, value(self.host, knob)?))
    }

    /// The file's content as text without white space around it, or `None`.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.host.read(path).ok()?;
        Some(String::from_utf8(bytes).ok()?.trim().to_owned())
    }

    /// The names in a directory; empty when it cannot be listed.
    pub fn names(&self, dir: &str) -> Vec<String> {
        self.host
            .list(dir)
            .map(|entries| entries.into_iter().map(|entry| entry.name).collect())
            .unwrap_or_default()
    }

    /// Whether the path leads anywhere.
    pub fn exists(&self, path: &str) -> bool {
        self.host.resolve(path).is_ok()
    }

    /// The CPUs that are online, from `/sys/devices/system/cpu/online`.
    pub fn online_cpus(&self) -> CpuSet {
        self.text("/sys/devices/system/cpu/online").and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// A unit of a profile when its turn has come: devices chosen, variables and functions expanded.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The unit's name.
    pub name: String,
    /// The plugin.
    pub plugin: String,
    /// Where the unit begins.
    pub origin: Origin,
    /// The devices that are this instance's own.
    pub devices: Vec<String>,
    /// The options in the order of the profile.
    pub options: Vec<OptionText>,
    /// All variables of the profile, for scripts.
    pub variables: Vec<(String, String)>,
    /// The directories profiles come from; scripts must lie in one of them.
    pub profile_dirs: Vec<String>,
}

impl Instance {
    /// The option's expanded value.
    pub fn option(&self, name: &str) -> Option<&OptionText> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Stands for the unit as a whole, where a plugin wants something that no option asks for.
    pub fn unit_option(&self) -> OptionText {
        OptionText { name: String::new(), value: String::new(), origin: self.origin.clone() }
    }
}

/// One option, expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionText {
    /// The option's name as written.
    pub name: String,
    /// The value.
    pub value: String,
    /// Where it is written.
    pub origin: Origin,
}
