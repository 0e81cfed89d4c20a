//! The backlog between devices and protocols overflows.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::{at_least, cards, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-softnet-drops",
    subsystem: Subsystem::Net,
    summary: "packets are dropped because a CPU's backlog is full",
    impact: Impact::Moderate,
    effect: "each dropped packet is sent again; TCP slows down each time (estimate)",
    risk: "more memory, and packets may wait longer in the queue",
    source: "https://docs.kernel.org/admin-guide/sysctl/net.html",
    explanation: include_str!("net_softnet_drops.md"),
    run,
};

/// Fewer drops than this since boot are noise.
const LEAST: u64 = 1_000;
/// The same as a share of all packets, in millionths.
const SHARE: u64 = 10;
/// A backlog that is already this long is not what is missing.
const LONG: u64 = 30_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let softnet = need(&facts.net.softnet)?;
    let sum = |pick: fn(&zenkai_facts::net::Softnet) -> u64| {
        softnet.iter().fold(0_u64, |sum, row| sum.saturating_add(pick(row)))
    };
    // The counts have 32 bits for each CPU and start again at 0 (`softnet_seq_show`), within hours on a busy machine.
    // What the cards counted in 64 bits and the drops themselves were packets too.
    let cards = cards(facts).unwrap_or_default();
    let received = cards.iter().filter_map(|card| card.interface.statistics.as_ref()?.rx_packets.value());
    let received = received.fold(0_u64, u64::saturating_add);
    let dropped = sum(|row| row.dropped);
    let processed = sum(|row| row.processed).saturating_add(dropped).max(received);
    if dropped < LEAST || !at_least(dropped, processed, SHARE) {
        return Ok(None);
    }
    let backlog = &facts.net.settings.netdev_max_backlog;
    let remedy = match backlog.value() {
        Some(now) if now < LONG => {
            let wanted = now.saturating_mul(4).max(4_000).to_string();
            Remedy::Set(vec![Setting::sysctl("net.core.netdev_max_backlog", wanted)])
        }
        Some(_) => {
            Remedy::Do("spread the work over more CPUs: more queues, or another set in rps_cpus".into())
        }
        None => Remedy::Do("raise net.core.netdev_max_backlog on the host".into()),
    };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{dropped} packets ({}) dropped at a full backlog", percent(dropped, processed)),
        )
        .with(Evidence::derived(facts.net.softnet.source(), dropped).expected(0))
        .with(Evidence::of(backlog))
        .remedy(remedy)
        .because("the packet backlog overflows"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Remedy,
        checks::net::shared_testing::{ETH0, found, healthy},
    };

    #[test]
    fn only_in_numbers() {
        let with = |dropped: &str| {
            healthy().file("/proc/net/softnet_stat", &format!("02000000 {dropped} 0\n02000000 0 0\n"))
        };
        let finding = &found(&super::CHECK, with("00010000"))[0];
        assert!(matches!(&finding.remedy, Remedy::Set(settings) if settings[0].value == "4000"));
        assert_eq!(found(&super::CHECK, with("00000100")), []);
        let long_running = with("00010000").file(&format!("{ETH0}/statistics/rx_packets"), "900000000000\n");
        assert_eq!(
            found(&super::CHECK, long_running),
            [],
            "the 32 bits of the counts have wrapped many times"
        );
        let wrapped = healthy().file("/proc/net/softnet_stat", "00000001 ffffffff 0\n");
        assert!(found(&super::CHECK, wrapped)[0].what.contains("(99 %)"), "a part is never more than all");
        let long = with("00010000").file("/proc/sys/net/core/netdev_max_backlog", "50000\n");
        assert!(matches!(&found(&super::CHECK, long)[0].remedy, Remedy::Do(_)));
    }
}
