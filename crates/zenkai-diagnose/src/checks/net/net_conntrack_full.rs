//! A table that drops packets when it is full.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::percent;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-conntrack-full",
    subsystem: Subsystem::Net,
    summary: "the table of tracked connections is nearly full",
    impact: Impact::Large,
    effect: "new connections are refused when it is full",
    risk: "each tracked connection takes some hundred bytes of memory",
    source: "https://docs.kernel.org/networking/nf_conntrack-sysctl.html",
    explanation: include_str!("net_conntrack_full.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let table = &facts.net.conntrack;
    let max = *need_or_not_applicable(&table.max, "connections are not tracked")?;
    let count = *need(&table.count)?;
    // 0 means that there is no limit.
    if max == 0 || count < max / 10 * 9 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{count} of {max} connections ({}) are tracked", percent(count, max)),
        )
        .with(Evidence::of(&table.count).expected(format!("well below {max}")))
        .with(Evidence::of(&table.max))
        .with(Evidence::of(&table.buckets))
        .remedy(Remedy::Set(vec![Setting::sysctl(
            "net.netfilter.nf_conntrack_max",
            max.saturating_mul(2).to_string(),
        )]))
        .because("the connection tracking table is full"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn from_nine_tenths() {
        let with = |count: &str| healthy().file("/proc/sys/net/netfilter/nf_conntrack_count", count);
        assert_eq!(
            found(&super::CHECK, with("262000\n"))[0].what,
            "262000 of 262144 connections (99 %) are tracked"
        );
        assert_eq!(found(&super::CHECK, with("200000\n")), []);
    }
}
