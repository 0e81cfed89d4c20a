//! A bad wire.

use zenkai_facts::Facts;

use super::shared::{Card, at_least, percent, wired};
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-crc-errors",
    subsystem: Subsystem::Net,
    summary: "packets arrive damaged",
    impact: Impact::Moderate,
    effect: "each damaged packet is lost and sent again",
    risk: "the link goes down while the cable is changed",
    source: "https://docs.kernel.org/networking/statistics.html",
    explanation: include_str!("net_crc_errors.md"),
    run,
};

/// Fewer damaged packets than this are noise: links make some when they come up.
const LEAST: u64 = 100;
/// One packet in a million; a good wire is a hundred times better.
const SHARE: u64 = 1;

fn run(facts: &Facts, _context: Context) -> Judgement {
    wired(facts).map(|cards| Judgement::each(&cards, |card| judge(facts, card))).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let Some(statistics) = &card.interface.statistics else { return Ok(None) };
    let damaged = *need(&statistics.rx_crc_errors)?;
    let received = *need(&statistics.rx_packets)?;
    if damaged < LEAST || !at_least(damaged, received, SHARE) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!(
                "{damaged} packets ({}) arrived damaged",
                percent(damaged, received.saturating_add(damaged))
            ),
        )
        .with(Evidence::of(&statistics.rx_crc_errors).expected(0))
        .with(Evidence::of(&statistics.rx_packets))
        .remedy(work_on_device(
            facts,
            "change the cable or the module, clean the fibre, try another switch port",
        ))
        .because("the wire damages packets"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, found, healthy};

    #[test]
    fn a_few_are_forgiven() {
        let with =
            |count: u64| healthy().file(&format!("{ETH0}/statistics/rx_crc_errors"), &format!("{count}\n"));
        assert_eq!(found(&super::CHECK, with(4_000)).len(), 1);
        assert_eq!(found(&super::CHECK, with(99)), []);
    }
}
