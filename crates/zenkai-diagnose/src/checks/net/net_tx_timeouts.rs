//! The watchdog had to step in.

use zenkai_facts::Facts;

use super::shared::{Card, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-tx-timeouts",
    subsystem: Subsystem::Net,
    summary: "a transmit queue stood still",
    impact: Impact::Moderate,
    effect: "seconds without any packet each time (the watchdog's period)",
    risk: "a new firmware or driver needs a restart",
    source: "https://docs.kernel.org/networking/netdevices.html",
    explanation: include_str!("net_tx_timeouts.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.queues.tx_timeouts;
    let timeouts = *need(reading)?;
    if timeouts == 0 {
        return Ok(None);
    }
    let times = if timeouts == 1 { "once".to_owned() } else { format!("{timeouts} times") };
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!("a transmit queue stood still until the watchdog stepped in, {times}"),
        )
        .with(Evidence::of(reading).expected(0))
        .with(Evidence::of(&card.hardware.driver))
        .remedy(Remedy::Do(
            "look for the watchdog's message in the kernel log, then update the card's firmware and driver"
                .into(),
        )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, found, healthy};

    #[test]
    fn counts_all_queues() {
        let host = healthy()
            .file(&format!("{ETH0}/queues/tx-1/tx_timeout"), "2\n")
            .file(&format!("{ETH0}/queues/tx-7/tx_timeout"), "1\n");
        assert!(found(&super::CHECK, host)[0].what.ends_with("3 times"));
    }
}
