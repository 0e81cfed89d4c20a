//! CPUs that exist and take no work.

use zenkai_facts::{CpuSet, Facts};
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-offline",
    subsystem: Subsystem::Cpu,
    summary: "CPUs are switched off",
    impact: Impact::Large,
    effect: "the missing share of the machine, for work that uses all CPUs (follows from the count)",
    risk: "licences may count CPUs; a CPU may have been switched off because it is faulty",
    source: "https://docs.kernel.org/admin-guide/cputopology.html",
    explanation: include_str!("cpu_offline.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let cpu = &facts.cpu;
    let (online, present) = (need(&cpu.online)?, need(&cpu.present)?);
    let missing = present.difference(online);
    if missing.is_empty() || explained_by_smt(facts, &missing, online) {
        return Ok(hidden(facts));
    }
    let share = missing.len() * 4 >= present.len();
    let settings = match facts.kernel.argument("maxcpus") {
        Some(_) => vec![Setting::kernel_argument("maxcpus", "")],
        None => missing
            .iter()
            .map(|cpu| Setting::attribute(format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1"))
            .collect(),
    };
    let what = format!("switched off, {} of {} take work", online.len(), present.len());
    let mut finding = Finding::new(Subject::Cpus(missing), what)
        .with(Evidence::of(&cpu.online).expected(present))
        .with(Evidence::of(&cpu.present))
        .impact(if share { Impact::Large } else { Impact::Moderate })
        .remedy(Remedy::Set(settings))
        .because(format!("only {} of {} CPUs are online", online.len(), present.len()));
    if let Some(limit) = facts.kernel.argument("maxcpus") {
        finding = finding.with(
            Evidence::part(&facts.kernel.command_line, format!("maxcpus={limit}")).expected("no limit"),
        );
    }
    Ok(Some(finding))
}

/// With SMT switched off the second threads are offline; that has a check of its own.
fn explained_by_smt(facts: &Facts, missing: &CpuSet, online: &CpuSet) -> bool {
    matches!(facts.cpu.smt_control.text(), Some("off" | "forceoff")) && missing.len() <= online.len()
}

/// CPUs beyond `nr_cpus=` are not even present; the kernel lists them as offline.
fn hidden(facts: &Facts) -> Option<Finding> {
    let limit = facts.kernel.argument("nr_cpus")?;
    let hidden = facts.cpu.offline.get()?.difference(facts.cpu.present.get()?);
    if hidden.is_empty() {
        return None;
    }
    let what = format!("hidden from the system by nr_cpus={limit}");
    Some(
        Finding::new(Subject::Cpus(hidden), what)
            .with(Evidence::part(&facts.kernel.command_line, format!("nr_cpus={limit}")).expected("no limit"))
            .with(Evidence::of(&facts.cpu.offline))
            .remedy(Remedy::Set(vec![Setting::kernel_argument("nr_cpus", "")]))
            .because(format!("nr_cpus={limit} hides CPUs")),
    )
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn found(online: &str, present: &str, more: &[(&str, &str)]) -> Vec<crate::Finding> {
        let dir = "/sys/devices/system/cpu";
        let mut world = vec![
            (format!("{dir}/online"), online.to_owned()),
            (format!("{dir}/present"), present.to_owned()),
        ];
        world.extend(more.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())));
        findings(&super::CHECK, &world)
    }

    #[test]
    fn missing_cpus() {
        assert_eq!(found("0-5\n", "0-7\n", &[])[0].subject.to_string(), "CPUs 6-7");
        assert!(found("0-7\n", "0-7\n", &[]).is_empty());
        let limited = found("0-1\n", "0-7\n", &[("/proc/cmdline", "maxcpus=2\n")]);
        assert_eq!(limited[0].evidence.len(), 3);
    }

    #[test]
    fn second_threads_have_their_own_check() {
        let smt = ("/sys/devices/system/cpu/smt/control", "off\n");
        assert!(found("0-3\n", "0-7\n", &[smt]).is_empty());
        assert_eq!(found("0-1\n", "0-7\n", &[smt]).len(), 1);
    }

    #[test]
    fn beyond_nr_cpus() {
        let offline = ("/sys/devices/system/cpu/offline", "4-7\n");
        assert_eq!(found("0-3\n", "0-3\n", &[offline, ("/proc/cmdline", "nr_cpus=4\n")]).len(), 1);
        // Empty sockets of a hot-plug machine.
        assert!(found("0-3\n", "0-3\n", &[offline]).is_empty());
    }
}
