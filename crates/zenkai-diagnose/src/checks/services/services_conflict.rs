//! Services that overwrite each other.

use zenkai_facts::{
    Facts,
    services::{Service, Touches},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "services-conflict",
    subsystem: Subsystem::Services,
    summary: "several services set the same things",
    impact: Impact::Small,
    effect: "whoever comes last wins, so that a chosen profile may not be in force (no general number)",
    risk: "the settings of the service that goes are lost",
    source: "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/monitoring_and_managing_system_status_and_performance/",
    explanation: include_str!("services_conflict.md"),
    run,
};

/// What two services cannot sensibly share, in words. tuned and saptune write sysctls too, but not the same ones.
const EXCLUSIVE: [(Touches, &str); 3] = [
    (Touches::CpuClock, "CPU clock policy"),
    (Touches::Ksm, "page merging"),
    (Touches::Numa, "NUMA placement"),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    let present = &facts.services.present;
    need_or_not_applicable(present, "services cannot be seen here")
        .map(|services| Judgement::each(EXCLUSIVE, |what| Ok(judge(facts, services, what))))
        .into()
}

fn judge(facts: &Facts, services: &[Service], (touches, name): (Touches, &str)) -> Option<Finding> {
    let rivals: Vec<&Service> =
        services.iter().filter(|service| service.is_active() && service.touches.contains(&touches)).collect();
    let names: Vec<&str> = rivals.iter().map(|service| service.name.as_str()).collect();
    // ksm.service only starts what ksmtuned then steers.
    if names.len() < 2 || names.iter().all(|name| name.starts_with("ksm")) {
        return None;
    }
    // Without policies nobody can set the clock: then their rivalry is of no account.
    if touches == Touches::CpuClock && facts.cpu.frequency.policies.get().is_none_or(Vec::is_empty) {
        return None;
    }
    let advice =
        format!("keep one of {} and disable the others (`systemctl disable --now …`)", names.join(", "));
    let mut finding = Finding::new(Subject::device(names.join(", ")), format!("all set the {name}"))
        .remedy(Remedy::Do(advice));
    for service in rivals {
        let (reading, state) = if service.running.value() == Some(true) {
            (&service.running, "runs")
        } else {
            (&service.enabled, "enabled")
        };
        finding = finding.with(Evidence::derived(reading.source(), format!("{} {state}", service.name)));
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(running: &[&str], enabled: &[&str], policy: bool) -> bool {
        let mut files: Vec<(String, String)> = Vec::new();
        for name in running.iter().chain(&["sshd"]) {
            files
                .push((format!("/sys/fs/cgroup/system.slice/{name}.service/cgroup.procs"), "7\n".to_owned()));
        }
        for name in enabled {
            files
                .push((format!("/etc/systemd/system/multi-user.target.wants/{name}.service"), String::new()));
        }
        if policy {
            let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
            files.push((governor.to_owned(), "performance\n".to_owned()));
        }
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn two_that_are_active() {
        assert!(fires(&["tuned", "power-profiles-daemon"], &[], true));
        assert!(fires(&["tuned"], &["cpupower"], true));
        assert!(!fires(&["tuned", "irqbalance", "thermald"], &[], true), "they share nothing");
        assert!(!fires(&["tuned"], &["power-profiles-daemon"], true), "enabled, but it does not run");
        assert!(!fires(&["tuned"], &["cpupower"], false), "a guest without a clock to set");
        assert!(!fires(&["ksmtuned"], &["ksm"], true));
    }
}
