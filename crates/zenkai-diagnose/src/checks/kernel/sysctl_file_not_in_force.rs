//! The value in the winning file is not the running one.

use zenkai_facts::{Facts, sysctl_files::Assignment};

use super::shared;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sysctl-file-not-in-force",
    subsystem: Subsystem::Kernel,
    summary: "a setting in a file is not in force",
    impact: Impact::Depends,
    effect: "whatever the setting was meant to bring",
    risk: "the running value may be the one that is wanted",
    source: "https://man7.org/linux/man-pages/man5/sysctl.d.5.html",
    explanation: include_str!("sysctl_file_not_in_force.md"),
    run,
};

/// Two keys of which setting one sets the other to 0 (`mm/page-writeback.c`, `mm/util.c`).
const COUPLED: [(&str, &str); 3] = [
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
    ("vm.overcommit_ratio", "vm.overcommit_kbytes"),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.sysctl_files.applied_by).map(|by| judge_all(facts, by)).into()
}

fn judge_all(facts: &Facts, applied_by: &str) -> Judgement {
    let all = &facts.sysctl_files.assignments;
    let ours = all.iter().filter(|one| {
        one.overridden_by.is_none()
            && !one.pattern
            && shared::bears_on_speed(&one.key)
            && !one.running.is_absent()
    });
    Judgement::each(ours, |one| judge(one, all, applied_by))
}

fn judge(one: &Assignment, all: &[Assignment], applied_by: &str) -> Result<Option<Finding>, Outcome> {
    let running = need(&one.running)?;
    if one.in_force() == Some(true) || replaced_by_partner(one, all) || raised_by_kernel(one, running) {
        return Ok(None);
    }
    let unread = one.at.file == "/etc/sysctl.conf" && applied_by == "systemd-sysctl";
    let hint = if unread {
        "systemd does not read /etc/sysctl.conf: move the line to a file in /etc/sysctl.d"
    } else {
        "decide which value is meant; `sysctl --system` puts the files in force, and if that does not last, \
         tuned, a node agent or a start script sets it later"
    };
    Ok(Some(
        Finding::new(Subject::device(&one.key), format!("is {running}, but its file asks for {}", one.value))
            .with(Evidence::of(&one.running).expected(&one.value))
            .with(Evidence::derived(one.at.to_string(), format!("{} = {}", one.key, one.value)))
            .remedy(Remedy::Do(hint.to_owned())),
    ))
}

/// Whether the files also set the other of two coupled keys, which made this one 0.
fn replaced_by_partner(one: &Assignment, all: &[Assignment]) -> bool {
    let partner = COUPLED.iter().find_map(|(left, right)| match one.key.as_str() {
        key if key == *left => Some(*right),
        key if key == *right => Some(*left),
        _ => None,
    });
    one.running.text() == Some("0")
        && all.iter().any(|other| Some(other.key.as_str()) == partner && other.in_force() == Some(true))
}

/// Transparent huge pages raise the reserve when it is smaller than they need (`mm/khugepaged.c`).
fn raised_by_kernel(one: &Assignment, running: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    one.key == "vm.min_free_kbytes" && number(running) > number(&one.value)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn whats(file: &str, running: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![("/etc/sysctl.d/90-x.conf", file), ("/run/systemd/system/x", "")];
        files.extend(running);
        let found = findings(&super::CHECK, &files);
        found.iter().map(|finding| format!("{} {}", finding.subject, finding.what)).collect()
    }

    #[test]
    fn only_true_differences() {
        let swappiness = ("/proc/sys/vm/swappiness", "60\n");
        let expected = ["vm.swappiness is 60, but its file asks for 10"];
        assert_eq!(whats("vm.swappiness = 10\n", &[swappiness]), expected);
        assert!(whats("vm.swappiness = 60\n", &[swappiness]).is_empty());
        let rmem = ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
        assert!(whats("net.ipv4.tcp_rmem = 4096 131072  6291456\n", &[rmem]).is_empty());
        assert!(whats("kernel.sysrq = 1\n", &[("/proc/sys/kernel/sysrq", "16\n")]).is_empty());
    }

    #[test]
    fn coupled_and_raised_values_are_legitimate() {
        let dirty = [("/proc/sys/vm/dirty_ratio", "0\n"), ("/proc/sys/vm/dirty_bytes", "629145600\n")];
        assert!(whats("vm.dirty_ratio = 10\nvm.dirty_bytes = 629145600\n", &dirty).is_empty());
        assert_eq!(whats("vm.dirty_ratio = 10\n", &dirty).len(), 1);
        assert!(
            whats("vm.min_free_kbytes = 65536\n", &[("/proc/sys/vm/min_free_kbytes", "90112\n")]).is_empty()
        );
    }

    #[test]
    fn containers_are_not_judged() {
        let files =
            [("/etc/sysctl.d/90-x.conf", "vm.swappiness = 10\n"), ("/proc/sys/vm/swappiness", "60\n")];
        assert!(findings(&super::CHECK, &files).is_empty());
    }
}
