//! CPU time stolen by the hypervisor.

use zenkai_facts::Facts;

use crate::checks::shared::per_cent;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-steal",
    subsystem: Subsystem::Virtualisation,
    summary: "the hypervisor gives our CPU time to others",
    impact: Impact::Moderate,
    effect: "the stolen share of CPU time is lost, and latency with it (by the definition of the counter)",
    risk: "dedicated or larger instances cost more",
    source: "https://docs.kernel.org/filesystems/proc.html",
    explanation: include_str!("virtualisation_steal.md"),
    run,
};

/// A minute of wanted CPU time in ticks of 1/100 s: shares of less say nothing.
const ENOUGH_TICKS: u64 = 6_000;

/// Stolen thousandths of the wanted time from which a finding has this impact.
const LEVELS: [(u64, Impact); 3] = [(250, Impact::Large), (100, Impact::Moderate), (50, Impact::Small)];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    if facts.virtualisation.is_metal() == Some(true) {
        return Err(Outcome::not_applicable("no hypervisor is below this machine"));
    }
    let steal = need(&facts.virtualisation.steal)?;
    if steal.wanted_ticks < ENOUGH_TICKS {
        return Err(Outcome::not_applicable("this machine has not worked for a minute since boot"));
    }
    let share = steal.steal_per_mille;
    let Some((_, impact)) = LEVELS.iter().find(|(least, _)| share >= *least) else { return Ok(None) };
    let source = facts.virtualisation.steal.source();
    let advice = "ask for dedicated CPUs, a larger or unthrottled instance, or fewer guests on this host";
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{} of the wanted CPU time was stolen since boot", per_cent(share)),
        )
        .with(
            Evidence::derived(source, format!("{} of {} ticks", steal.steal_ticks, steal.wanted_ticks))
                .expected("less than 5 %"),
        )
        .impact(*impact)
        .remedy(Remedy::Hypervisor(advice.to_owned()))
        .because("the hypervisor gives CPU time to others"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Impact, checks::testing::findings};

    fn impact(stat: &str) -> Option<Impact> {
        findings(&super::CHECK, &[("/proc/stat", stat)]).first().map(|finding| finding.impact.unwrap())
    }

    #[test]
    fn judged_by_what_was_wanted() {
        assert_eq!(impact("cpu  8000 0 0 90000 0 0 0 2000 0 0\n"), Some(Impact::Moderate));
        assert_eq!(impact("cpu  5000 0 0 0 0 0 0 5000 0 0\n"), Some(Impact::Large));
        assert_eq!(impact("cpu  9900 0 0 0 0 0 0 100 0 0\n"), None);
        assert_eq!(impact("cpu  10 0 0 900000 0 0 0 90 0 0\n"), None, "an idle guest wanted next to nothing");
    }
}
