//! A module runs with another option than its file asks for.

use zenkai_facts::{Facts, sysctl_files::ModuleOption};

use crate::checks::shared::outside_container;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "module-option-not-in-force",
    subsystem: Subsystem::Kernel,
    summary: "a module runs with another option than its file asks for",
    impact: Impact::Depends,
    effect: "whatever the option was meant to bring",
    risk: "loading a module again interrupts what it serves",
    source: "https://man7.org/linux/man-pages/man5/modprobe.d.5.html",
    explanation: include_str!("module_option_not_in_force.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    outside_container(facts, "the modules are loaded by the container's host")
        .map(|()| judge_all(facts))
        .into()
}

fn judge_all(facts: &Facts) -> Judgement {
    let winners = facts.sysctl_files.module_options.iter().filter(|one| {
        one.overridden_by.is_none() && one.at.file.starts_with("/etc/") && !one.running.is_absent()
    });
    Judgement::each(winners, |one| judge(one, facts))
}

fn judge(one: &ModuleOption, facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let running = need(&one.running)?;
    let plain = |text: &str| {
        matches!(text, "Y" | "N" | "y" | "n")
            || (!text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit()))
    };
    let name = format!("{}.{}", one.module, one.parameter);
    let by_command_line = facts.kernel.command_line.get().is_some_and(|line| line.has(&name));
    if one.in_force() != Some(false) || !plain(running) || !plain(&one.value) || by_command_line {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::device(name), format!("is {running}, but its file asks for {}", one.value))
            .with(Evidence::of(&one.running).expected(&one.value))
            .with(Evidence::derived(one.at.to_string(), format!("options {} {}={}", one.module, one.parameter, one.value)))
            .remedy(Remedy::Do(
                "make the initial ramdisk anew (dracut -f, update-initramfs -u) and reboot, if the file is what is meant"
                    .to_owned(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(option: &str, running: &str, line: &str) -> bool {
        let option = format!("options nvme {option}\n");
        let files = [
            ("/etc/modprobe.d/nvme.conf", option.as_str()),
            ("/sys/module/nvme/parameters/poll_queues", running),
            ("/proc/cmdline", line),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn a_container_loads_no_modules() {
        let files = [
            ("/etc/modprobe.d/nvme.conf", "options nvme poll_queues=4\n"),
            ("/sys/module/nvme/parameters/poll_queues", "0\n"),
            ("/run/.containerenv", "engine=\"podman\"\n"),
        ];
        assert_eq!(findings(&super::CHECK, &files), []);
    }

    #[test]
    fn only_plain_contradictions() {
        assert!(fires("poll_queues=4", "0\n", ""));
        assert!(!fires("poll_queues=4", "4\n", ""));
        assert!(!fires("poll_queues=1", "Y\n", ""));
        assert!(!fires("poll_queues=4", "0\n", "nvme.poll_queues=0"));
        assert!(!fires("poll_queues=auto", "0\n", ""));
        assert!(!fires("other=4", "0\n", ""));
    }
}
