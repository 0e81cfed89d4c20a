//! `vm`: huge pages and the limits of dirty memory (Documentation/admin-guide/mm/transhuge.rst, sysctl/vm.rst).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, shared::whole};
use crate::{Fault, Instance, OptionText, Scene, Want};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "vm",
    summary: "Sets huge pages and the limits of unwritten memory",
    options: &[
        OptionSpec { name: "transparent_hugepages", help: "always, madvise or never", default: "" },
        OptionSpec { name: "transparent_hugepage", help: "The same as transparent_hugepages", default: "" },
        OptionSpec {
            name: "transparent_hugepage.defrag",
            help: "always, defer, defer+madvise, madvise or never",
            default: "",
        },
        OptionSpec { name: "dirty_bytes", help: "Bytes, or N% of available memory", default: "" },
        OptionSpec { name: "dirty_background_bytes", help: "Bytes, or N% of available memory", default: "" },
        OptionSpec {
            name: "dirty_ratio",
            help: "Percent of available memory (use dirty_bytes)",
            default: "",
        },
        OptionSpec {
            name: "dirty_background_ratio",
            help: "Percent of available memory (use dirty_background_bytes)",
            default: "",
        },
    ],
    devices: None,
    plan,
};

const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        match option.name.as_str() {
            "transparent_hugepages" | "transparent_hugepage" => huge_pages(scene, option, "enabled", wishes),
            "transparent_hugepage.defrag" => huge_pages(scene, option, "defrag", wishes),
            // mm/page-writeback.c: below two pages `dirty_bytes` is refused.
            "dirty_bytes" => limit(option, "vm.dirty_bytes", "vm.dirty_ratio", 8192, wishes),
            "dirty_background_bytes" => {
                limit(option, "vm.dirty_background_bytes", "vm.dirty_background_ratio", 1, wishes);
            }
            "dirty_ratio" => ratio(option, "vm.dirty_ratio", &option.value, wishes),
            "dirty_background_ratio" => ratio(option, "vm.dirty_background_ratio", &option.value, wishes),
            _ => {}
        }
    }
}

fn huge_pages(scene: &Scene, option: &OptionText, file: &str, wishes: &mut Wishes) {
    let command_line = scene.text("/proc/cmdline").unwrap_or_default();
    let argument = command_line.split_whitespace().find(|word| word.starts_with("transparent_hugepage="));
    if let Some(argument) = argument {
        wishes.want(option, "", Want::Leave(format!("the kernel was started with {argument}")));
        return;
    }
    let path = format!("{HUGE}/{file}");
    let Some(shown) = scene.text(&path) else {
        wishes.cannot(option, "", Fault::Machine, "this kernel has no transparent huge pages");
        return;
    };
    let asked = option.value.trim();
    let known: Vec<&str> = shown.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
    if known.contains(&asked) {
        wishes.set(option, "", Knob::Attribute(path), asked);
    } else {
        wishes.cannot(option, "", Fault::Profile, format!("`{asked}` is none of {}", known.join(", ")));
    }
}

fn limit(option: &OptionText, bytes: &str, percent: &str, lowest: i64, wishes: &mut Wishes) {
    if let Some(number) = option.value.trim().strip_suffix('%') {
        ratio(option, percent, number, wishes);
        return;
    }
    match whole(&option.value, lowest, i64::MAX) {
        Ok(number) => wishes.set(option, "", Knob::Sysctl(bytes.into()), number.to_string()),
        Err(why) => wishes.cannot(option, "", Fault::Profile, why),
    };
}

fn ratio(option: &OptionText, name: &str, text: &str, wishes: &mut Wishes) {
    match whole(text, 0, 100) {
        Ok(number) => wishes.set(option, "", Knob::Sysctl(name.into()), number.to_string()),
        Err(why) => wishes.cannot(option, "", Fault::Profile, why),
    };
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    const FILES: &[(&str, &str)] = &[
        ("/proc/cmdline", "quiet\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("/proc/sys/vm/dirty_bytes", "0\n"),
        ("/proc/sys/vm/dirty_ratio", "20\n"),
        ("/proc/sys/vm/dirty_background_ratio", "10\n"),
    ];

    #[test]
    fn percent_and_bytes() {
        let plan = Bench::new("vm", FILES).plan(&[
            ("dirty_bytes", "40%"),
            ("dirty_background_bytes", "10%"),
            ("transparent_hugepages", "always"),
        ]);
        assert_eq!(
            plan.lines(),
            "vm.dirty_ratio: 20 -> 40\nvm.dirty_background_ratio: 10\n\
             /sys/kernel/mm/transparent_hugepage/enabled: madvise -> always\n"
        );
        let bytes = Bench::new("vm", FILES).plan(&[("dirty_bytes", "1000000")]);
        assert_eq!(bytes.lines(), "vm.dirty_bytes: 0 -> 1000000\n");
    }

    #[test]
    fn nonsense_and_absence() {
        let bench = Bench::new("vm", FILES);
        let plan = bench.plan(&[
            ("dirty_bytes", "0"),
            ("dirty_ratio", "101"),
            ("dirty_background_bytes", "x%"),
            ("transparent_hugepage", "maybe"),
        ]);
        assert_eq!(plan.mistakes().count(), 4, "{}", plan.lines());
        let none = Bench::new("vm", &[]).plan(&[("transparent_hugepage.defrag", "never")]);
        assert_eq!(none.lines(), "cannot: this kernel has no transparent huge pages\n");
    }

    #[test]
    fn the_kernel_command_line_counts_more() {
        let bench = Bench::new("vm", &[("/proc/cmdline", "a transparent_hugepage=never b\n")]);
        let plan = bench.plan(&[("transparent_hugepages", "always")]);
        assert_eq!(plan.lines(), "leave: the kernel was started with transparent_hugepage=never\n");
    }
}
