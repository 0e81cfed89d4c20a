//! Windows against bandwidth and delay.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::cards;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-tcp-buffers-small",
    subsystem: Subsystem::Net,
    summary: "TCP buffers are too small for the link",
    impact: Impact::Moderate,
    effect: "the largest window divided by the round-trip time is the most one connection gets (arithmetic)",
    risk: "more memory per connection that needs it",
    source: "https://docs.kernel.org/networking/ip-sysctl.html",
    explanation: include_str!("net_tcp_buffers_small.md"),
    run,
};

/// Round-trip times that a buffer should be enough for: within a site, and across a continent.
const SITE_US: u64 = 500;
const CONTINENT_US: u64 = 20_000;
/// Slower links are no challenge.
const LEAST_MBPS: u32 = 10_000;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let cards = cards(facts)?;
    let fastest = cards.iter().filter_map(|card| Some((card.speed_mbps()?, card.name()))).max();
    let Some((speed, name)) = fastest.filter(|(speed, _)| *speed >= LEAST_MBPS) else {
        return Err(Outcome::not_applicable("there is no link of 10 Gbit/s or more"));
    };
    // Too small for the site is wrong anywhere; too small for a continent only where the work goes that far.
    let near = judge_for(facts, speed, name, (SITE_US, "0.5 ms"))?;
    if near.is_some() || !context.works_as(&[Workload::Network]) {
        return Ok(near);
    }
    judge_for(facts, speed, name, (CONTINENT_US, "20 ms"))
}

fn judge_for(
    facts: &Facts,
    speed: u32,
    name: &str,
    (round_trip, words): (u64, &str),
) -> Result<Option<Finding>, Outcome> {
    // One connection cannot be expected to fill more than 40 Gbit/s. Mbit/s times µs are bits.
    let product = u64::from(speed.min(40_000)) * round_trip / 8;
    let settings = &facts.net.settings;
    let both =
        [(&settings.tcp_rmem_bytes, "net.ipv4.tcp_rmem"), (&settings.tcp_wmem_bytes, "net.ipv4.tcp_wmem")];
    let mut finding: Option<Finding> = None;
    let mut wanted = Vec::new();
    for (reading, sysctl) in both {
        let [least, first, most] = *need(reading)?;
        if most >= product {
            continue;
        }
        let what = format!(
            "a buffer of {most} bytes carries {} of {speed} Mbit/s at a round trip of {words}",
            most.saturating_mul(8) / round_trip
        );
        let shown = Evidence::derived(reading.source(), format!("{least} {first} {most}"));
        let shown = shown.expected(format!("the last at least {product}"));
        finding = Some(finding.unwrap_or_else(|| Finding::new(Subject::Machine, what)).with(shown));
        // Twice, for the kernel's own bookkeeping comes out of the same buffer.
        wanted.push(Setting::sysctl(sysctl, format!("{least} {first} {}", product.saturating_mul(2))));
    }
    Ok(finding.map(|finding| {
        finding
            .with(Evidence::derived(format!("/sys/class/net/{name}/speed"), speed))
            .impact(if round_trip == SITE_US { Impact::Moderate } else { Impact::Depends })
            .remedy(Remedy::Set(wanted))
    }))
}

#[cfg(test)]
mod tests {
    use crate::{
        Workload,
        checks::net::shared_testing::{ETH0, driver, found, found_as, healthy},
    };

    #[test]
    fn against_the_link() {
        let small = || healthy().file("/proc/sys/net/ipv4/tcp_rmem", "4096\t87380\t174760\n");
        let finding = &found(&super::CHECK, small())[0];
        assert_eq!(
            finding.what,
            "a buffer of 174760 bytes carries 2796 of 10000 Mbit/s at a round trip of 0.5 ms"
        );
        assert_eq!(found(&super::CHECK, small().file(&format!("{ETH0}/speed"), "1000\n")), []);
        let fast = || driver(healthy(), "mlx5_core").file(&format!("{ETH0}/speed"), "40000\n");
        assert_eq!(found(&super::CHECK, fast()), [], "the kernel's default is enough within a site");
        assert_eq!(found_as(&super::CHECK, fast(), Workload::Network).len(), 1);
    }
}
