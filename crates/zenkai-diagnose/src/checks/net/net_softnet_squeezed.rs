//! The budget of a receive round runs out.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::{at_least, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-softnet-squeezed",
    subsystem: Subsystem::Net,
    summary: "receive work is cut short again and again",
    impact: Impact::Small,
    effect: "packets wait for the next round (estimate)",
    risk: "other work on these CPUs waits longer",
    source: "https://docs.kernel.org/admin-guide/sysctl/net.html",
    explanation: include_str!("net_softnet_squeezed.md"),
    run,
};

/// Fewer than this since boot are noise.
const LEAST: u64 = 10_000;
/// One round in a hundred.
const SHARE: u64 = 10_000;
/// A budget that is already this large is not what is missing.
const LARGE: u64 = 1_200;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let softnet = need(&facts.net.softnet)?;
    let squeezed = softnet.iter().fold(0_u64, |sum, row| sum.saturating_add(row.squeezed));
    if squeezed < LEAST {
        return Ok(None);
    }
    let softirqs = need(&facts.irq.softirqs)?;
    let Some(rounds) = softirqs.lines.iter().find(|line| line.name == "NET_RX").map(|line| line.total) else {
        return Ok(None);
    };
    if !at_least(squeezed, rounds, SHARE) {
        return Ok(None);
    }
    // Both counts have 32 bits for each CPU and start again at 0; a part larger than the whole shows it.
    if squeezed > rounds {
        return Err(Outcome::not_applicable("the kernel's counts have wrapped, so they tell no share"));
    }
    let budget = &facts.net.settings.netdev_budget;
    let remedy = match (budget.value(), facts.net.settings.netdev_budget_us.value()) {
        (Some(packets), time) if packets < LARGE => {
            let mut settings = vec![Setting::sysctl("net.core.netdev_budget", (packets * 2).to_string())];
            settings.extend(
                time.filter(|time| *time < 32_000)
                    .map(|time| Setting::sysctl("net.core.netdev_budget_usecs", (time * 2).to_string())),
            );
            Remedy::Set(settings)
        }
        (Some(_), _) => Remedy::Do("spread the receive work over more CPUs".into()),
        (None, _) => Remedy::Do("raise net.core.netdev_budget on the host".into()),
    };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{squeezed} receive rounds ({}) ended with packets left", percent(squeezed, rounds)),
        )
        .with(Evidence::derived(facts.net.softnet.source(), squeezed))
        .with(Evidence::derived(format!("{} NET_RX", facts.irq.softirqs.source()), rounds))
        .with(Evidence::of(budget))
        .remedy(remedy),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn measured_against_the_rounds() {
        let with =
            |squeezed: &str| healthy().file("/proc/net/softnet_stat", &format!("02000000 0 {squeezed}\n"));
        assert_eq!(
            found(&super::CHECK, with("00200000"))[0].what,
            "2097152 receive rounds (2.0 %) ended with packets left"
        );
        assert_eq!(found(&super::CHECK, with("00008000")), [], "32768 of a hundred million rounds");
        assert_eq!(
            found(&super::CHECK, with("f0000000")),
            [],
            "more than all rounds: the counts have wrapped"
        );
    }
}
