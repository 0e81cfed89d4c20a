//! NUMA switched off on the command line.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-off-cmdline",
    subsystem: Subsystem::Numa,
    summary: "NUMA is switched off on the kernel command line",
    impact: Impact::Moderate,
    effect: "half of all memory accesses go to the other socket; 10 to 30 % for memory-bound work (estimate)",
    risk: "programs that were tuned for a single node may need new settings",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("numa_off_cmdline.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let line = &facts.kernel.command_line;
    need(line)?;
    if facts.kernel.argument("numa") != Some("off") {
        return Ok(None);
    }
    let sockets = need(&facts.cpu.topology.packages)?.len();
    if sockets < 2 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{sockets} sockets are treated as if all memory were equally near"),
        )
        .with(Evidence::part(line, "numa=off"))
        .with(Evidence::derived(facts.cpu.topology.packages.source(), format!("{sockets} sockets")))
        .remedy(Remedy::Set(vec![Setting::kernel_argument("numa", "")]))
        .because("NUMA is switched off"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{cpu_info, findings};

    fn fires(line: &str, sockets: &[&str]) -> bool {
        let files = [
            ("/proc/cmdline".to_owned(), line.to_owned()),
            ("/proc/cpuinfo".to_owned(), cpu_info(sockets, "")),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_with_several_sockets() {
        assert!(fires("quiet numa=off", &["0-1", "2-3"]));
        assert!(!fires("quiet numa=off", &["0-3"]));
        assert!(!fires("quiet", &["0-1", "2-3"]));
        assert!(!fires("quiet -- numa=off", &["0-1", "2-3"]));
    }
}
