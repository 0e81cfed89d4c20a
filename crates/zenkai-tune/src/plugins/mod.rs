//! tuned's plugins: one file each, and each only plans. Applying, verifying and undoing are the same for all.

mod acpi;
mod audio;
mod bootloader;
mod cpu;
mod cpus;
mod disk;
mod eeepc_she;
mod irq;
mod irqbalance;
mod modules;
mod mounts;
mod net;
mod rtentsk;
mod scheduler;
mod script;
mod scsi_host;
mod selinux;
mod service;
mod shared;
mod sysctl;
mod sysfs;
mod systemd;
#[cfg(test)]
pub(crate) mod testing;
mod uncore;
mod usb;
mod video;
mod vm;
mod wishes;
mod xen;

pub use bootloader::{RISK as KERNEL_ARGUMENT_RISK, kernel_argument_wishes};
pub(crate) use shared::glob_paths;
pub use wishes::Wishes;

use crate::{Instance, Scene};

/// One kind of thing that a profile can tune.
pub struct Plugin {
    /// The name that profiles use.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// The names of the devices it can tune, for plugins that have devices.
    pub devices: Option<fn(&Scene) -> Vec<String>>,
    /// Says what it wants. It reads the machine through the scene and writes nothing.
    pub plan: fn(&Scene, &Instance, &mut Wishes),
}

/// One option of a plugin.
pub struct OptionSpec {
    /// The name; one that ends in `*` stands for every name that begins so, and a lone `*` for any.
    pub name: &'static str,
    /// What it is for, with unit and allowed values.
    pub help: &'static str,
    /// What holds when the option is not written; empty when then nothing happens.
    pub default: &'static str,
}

/// All plugins, by name.
pub static PLUGINS: &[&Plugin] = &[
    &acpi::PLUGIN,
    &audio::PLUGIN,
    &bootloader::PLUGIN,
    &cpu::PLUGIN,
    &disk::PLUGIN,
    &eeepc_she::PLUGIN,
    &irq::PLUGIN,
    &irqbalance::PLUGIN,
    &modules::PLUGIN,
    &mounts::PLUGIN,
    &net::PLUGIN,
    &rtentsk::PLUGIN,
    &scheduler::PLUGIN,
    &script::PLUGIN,
    &scsi_host::PLUGIN,
    &selinux::PLUGIN,
    &service::PLUGIN,
    &sysctl::PLUGIN,
    &sysfs::PLUGIN,
    &systemd::PLUGIN,
    &uncore::PLUGIN,
    &usb::PLUGIN,
    &video::PLUGIN,
    &vm::PLUGIN,
    &xen::PLUGIN,
];

/// The plugin called `name`.
pub fn find(name: &str) -> Option<&'static Plugin> {
    PLUGINS.iter().copied().find(|plugin| plugin.name == name)
}

impl Plugin {
    /// Whether the plugin has an option of this name.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|spec| match spec.name.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => spec.name == name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PLUGINS;

    #[test]
    fn plugins_are_listed_by_name_and_each_has_its_file() {
        let listed: Vec<&str> = PLUGINS.iter().map(|plugin| plugin.name).collect();
        assert!(listed.is_sorted(), "{listed:?}");
        let shared = ["mod", "cpus", "wishes", "shared", "testing"];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugins");
        let mut files: Vec<String> = zenkai_host::Host::list(&zenkai_host::LiveHost, folder)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name.trim_end_matches(".rs").to_owned())
            .filter(|name| !shared.contains(&name.as_str()))
            .collect();
        files.dedup();
        assert_eq!(files, listed);
    }

    #[test]
    fn every_option_is_explained() {
        for plugin in PLUGINS {
            assert!(!plugin.summary.is_empty(), "{}", plugin.name);
            for option in plugin.options {
                assert!(!option.help.is_empty(), "{}.{}", plugin.name, option.name);
            }
        }
    }
}
