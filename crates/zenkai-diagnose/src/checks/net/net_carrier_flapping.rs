//! A link that comes and goes.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-carrier-flapping",
    subsystem: Subsystem::Net,
    summary: "a network link goes away again and again",
    impact: Impact::Moderate,
    effect: "seconds without network each time",
    risk: "the link goes down while the cable is changed",
    source: "https://docs.kernel.org/admin-guide/abi-testing.html",
    explanation: include_str!("net_carrier_flapping.md"),
    run,
};

/// Links go down when switches restart and cables are moved; ten times is no accident.
const LEAST: u64 = 10;
const DAY_S: u64 = 86_400;

fn run(facts: &Facts, _context: Context) -> Judgement {
    let judge = |cards: Vec<Card<'_>>| Judgement::each(&cards, |card| judge(facts, card));
    wired(facts).map(judge).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    // Every loss is two changes.
    let losses = *need(&card.interface.carrier_changes)? / 2;
    let days = *need(&facts.kernel.uptime_s)? / DAY_S + 1;
    if losses < LEAST || losses < days {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!("the link was lost {losses} times in at most {days} days"),
        )
        .with(Evidence::of(&card.interface.carrier_changes))
        .with(Evidence::of(&facts.kernel.uptime_s))
        .remedy(work_on_device(
            facts,
            "check cable, module and switch port, and whether something restarts the interface",
        ))
        .because("the network link comes and goes"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, found, healthy};

    #[test]
    fn measured_against_the_uptime() {
        let with = |changes: u64| healthy().file(&format!("{ETH0}/carrier_changes"), &format!("{changes}\n"));
        assert_eq!(found(&super::CHECK, with(60))[0].what, "the link was lost 30 times in at most 11 days");
        let year = with(60).file("/proc/uptime", "31536000.0 1.0\n");
        assert_eq!(found(&super::CHECK, year), [], "switches are updated now and then");
        assert_eq!(found(&super::CHECK, with(12)), []);
    }
}
