//! A small machine to try one plugin on.

use zenkai_host::{FakeHost, Value};

use crate::{Instance, OptionText, Plan, Scene, State, Want, profile::Origin, transaction::Held};

/// One plugin and a fake machine.
pub(crate) struct Bench {
    plugin: &'static super::Plugin,
    pub(crate) host: FakeHost,
    /// What the profile in force holds.
    pub(crate) held: Held,
}

impl Bench {
    /// The plugin of this name on a machine of these files.
    pub(crate) fn new(plugin: &str, files: &[(&str, &str)]) -> Self {
        Self::on(plugin, FakeHost::new(files))
    }

    /// The plugin of this name on this machine.
    pub(crate) fn on(plugin: &str, host: FakeHost) -> Self {
        Self { plugin: super::find(plugin).expect("a plugin of this name"), host, held: Held::default() }
    }

    fn scene(&self) -> Scene<'_> {
        Scene { held: &self.held, ..Scene::new(&self.host, true) }
    }

    /// The plan for these options on all devices of the plugin.
    pub(crate) fn plan(&self, options: &[(&str, &str)]) -> Plan {
        let scene = self.scene();
        let devices = self.plugin.devices.map(|list| list(&scene)).unwrap_or_default();
        self.plan_for(&devices, options)
    }

    /// The plan for these options on these devices.
    pub(crate) fn plan_for(&self, devices: &[String], options: &[(&str, &str)]) -> Plan {
        let scene = self.scene();
        let option = |(line, (name, value)): (usize, &(&str, &str))| {
            assert!(self.plugin.has_option(name), "{} has no option {name}", self.plugin.name);
            OptionText {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
                origin: Origin::Line { file: "test".into(), line: u32::try_from(line).unwrap() + 1 },
            }
        };
        let instance = Instance {
            name: self.plugin.name.to_owned(),
            plugin: self.plugin.name.to_owned(),
            origin: Origin::Line { file: "test".into(), line: 1 },
            devices: devices.to_vec(),
            options: options.iter().enumerate().map(option).collect(),
            variables: vec![("x".into(), "1".into())],
            profile_dirs: vec!["/etc/tuned/profiles".into()],
        };
        let mut wishes = super::Wishes::new(&instance);
        (self.plugin.plan)(&scene, &instance, &mut wishes);
        Plan::beside(&self.held, &self.host, wishes.into_list())
    }
}

impl Plan {
    /// One line a step, for tests: `knob: old -> new`, `knob: value` when it is right, or what else it is.
    pub(crate) fn lines(&self) -> String {
        let show = |value: &Value| value.text().unwrap_or("(none)").replace('\n', "\\n");
        self.steps
            .iter()
            .map(|step| {
                let knob = step.wish.knob().map(ToString::to_string).unwrap_or_default();
                match (&step.state, &step.wish.want) {
                    (State::Same { value }, _) => format!("{knob}: {}\n", show(value)),
                    (State::Change { from, to, .. }, _) => {
                        format!("{knob}: {} -> {}\n", show(from), show(to))
                    }
                    (State::Run | State::RunAgain, Want::Run { act, undo, .. }) => {
                        let undo = undo.as_ref().map(|undo| format!(" (undo: {undo})")).unwrap_or_default();
                        format!("run: {act}{undo}\n")
                    }
                    (State::Hold, Want::Hold(hold)) => format!("hold: {hold:?}\n"),
                    (State::Leave(why), _) => format!("leave: {why}\n"),
                    (State::Overruled { by }, _) => format!("overruled by {by}\n"),
                    (State::Cannot { why, .. }, _) => format!("cannot: {why}\n"),
                    (state, want) => format!("{state:?} {want:?}\n"),
                }
            })
            .collect()
    }
}
