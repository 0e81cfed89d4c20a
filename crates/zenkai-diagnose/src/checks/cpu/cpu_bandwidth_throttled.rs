//! Leftover limits on memory bandwidth or last-level cache.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-bandwidth-throttled",
    subsystem: Subsystem::Cpu,
    summary: "memory bandwidth or last-level cache is limited by resctrl",
    impact: Impact::Moderate,
    effect: "several times slower for work that memory limits, when the share is small (estimate)",
    risk: "whoever set the limit loses its protection",
    source: "https://docs.kernel.org/filesystems/resctrl.html",
    explanation: include_str!("cpu_bandwidth_throttled.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let schemata = &facts.cpu.resctrl_schemata;
    let lines =
        need_or_not_applicable(schemata, "resctrl is not mounted, so nothing limits bandwidth or cache")?;
    let Some((line, lowest)) =
        lines.iter().filter_map(|line| Some((line, lowest_share(line)?))).min_by_key(|(_, share)| *share)
    else {
        return Ok(None);
    };
    if lowest >= 100 {
        return Ok(None);
    }
    let full: Vec<String> = line
        .split(';')
        .map(|part| part.split_once('=').map_or(part, |(domain, _)| domain))
        .map(|domain| format!("{domain}=100"))
        .collect();
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("the default group may use only {lowest} % of the memory bandwidth"),
        )
        .with(Evidence::part(schemata, line).expected("100 for every domain"))
        .remedy(Remedy::Set(vec![Setting::attribute(schemata.source(), full.join(";"))]))
        .because("memory bandwidth is throttled"),
    ))
}

/// The lowest percentage of a line such as `MB:0=100;1=10`. Intel counts per cent; a line with a number above 100
/// counts something else (AMD: units of 1/8 GB/s) and is left alone. Cache masks have no width to compare with here.
fn lowest_share(line: &str) -> Option<u32> {
    let (resource, domains) = line.trim().split_once(':')?;
    if resource.trim() != "MB" {
        return None;
    }
    let shares: Option<Vec<u32>> =
        domains.split(';').map(|domain| domain.split_once('=')?.1.trim().parse().ok()).collect();
    let shares = shares?;
    if shares.iter().any(|share| *share > 100) { None } else { shares.into_iter().min() }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn found(schemata: &str) -> Vec<crate::Finding> {
        findings(&super::CHECK, &[("/sys/fs/resctrl/schemata", schemata)])
    }

    #[test]
    fn below_all() {
        let found_one = found("L3:0=7ff;1=7ff\nMB:0=100;1=10\n");
        assert!(found_one[0].what.contains("10 %"));
        assert!(format!("{:?}", found_one[0].remedy).contains("MB:0=100;1=100"));
        assert!(found("L3:0=7ff;1=7ff\nMB:0=100;1=100\n").is_empty());
        assert!(found("MB:0=2048;1=64\n").is_empty(), "AMD counts otherwise");
        assert!(found("MB:0=x;=\nnonsense\n").is_empty());
    }
}
