//! Two files of the administrator disagree.

use zenkai_facts::{
    Facts,
    sysctl_files::{Assignment, Line, same_value},
};

use super::shared;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sysctl-file-overridden",
    subsystem: Subsystem::Kernel,
    summary: "two files set one value differently",
    impact: Impact::Small,
    effect: "whatever the setting that loses was meant to bring",
    risk: "none in removing the line that loses",
    source: "https://man7.org/linux/man-pages/man5/sysctl.d.5.html",
    explanation: include_str!("sysctl_file_overridden.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.sysctl_files.applied_by)
        .map(|_| {
            let all = &facts.sysctl_files.assignments;
            Judgement::each(
                all.iter().filter(|one| !one.pattern && shared::bears_on_speed(&one.key)),
                |one| Ok(judge(one, all)),
            )
        })
        .into()
}

fn judge(one: &Assignment, all: &[Assignment]) -> Option<Finding> {
    let by_hand = |line: &Line| line.file.starts_with("/etc/") || line.file.starts_with("/run/");
    let winning = one.overridden_by.as_ref()?;
    let winner = all.iter().find(|other| other.key == one.key && other.at == *winning)?;
    if !by_hand(&one.at) || !by_hand(winning) || same_value(&one.value, &winner.value) {
        return None;
    }
    Some(
        Finding::new(
            Subject::device(&one.key),
            format!("is asked to be {} and, by a line that wins, {}", one.value, winner.value),
        )
        .with(Evidence::derived(one.at.to_string(), format!("{} = {}", one.key, one.value)))
        .with(Evidence::derived(winning.to_string(), format!("{} = {}", winner.key, winner.value)))
        .remedy(Remedy::Do("keep the line that is meant and remove the other".to_owned())),
    )
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(first: &str, second: &str, value: &str) -> bool {
        let value = format!("vm.swappiness = {value}\n");
        let files =
            [(first, "vm.swappiness = 10\n"), (second, value.as_str()), ("/run/systemd/system/x", "")];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn overriding_the_distribution_is_normal() {
        assert!(fires("/etc/sysctl.d/10-a.conf", "/etc/sysctl.d/20-b.conf", "60"));
        assert!(!fires("/etc/sysctl.d/10-a.conf", "/etc/sysctl.d/20-b.conf", "10"));
        assert!(!fires("/usr/lib/sysctl.d/10-a.conf", "/etc/sysctl.d/20-b.conf", "60"));
    }
}
