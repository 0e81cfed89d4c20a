//! TCP's memory limit.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-tcp-memory-pressure",
    subsystem: Subsystem::Net,
    summary: "TCP runs short of memory",
    impact: Impact::Moderate,
    effect: "connections stall while buffers are cut down (estimate)",
    risk: "more of the memory may go to sockets",
    source: "https://docs.kernel.org/networking/ip-sysctl.html",
    explanation: include_str!("net_tcp_memory_pressure.md"),
    run,
};

/// Less time than this under pressure since boot is an accident.
const LEAST_MS: u64 = 1_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let protocols = &facts.net.protocols;
    let limits = &facts.net.settings.tcp_mem_pages;
    let [low, pressure, most] = *need(limits)?;
    let now = *need(&facts.net.socket_memory.tcp_pages)?;
    let times = *need(&protocols.tcp_memory_pressures)?;
    // Kernels before 4.15 do not measure the time.
    let long = protocols.tcp_memory_pressure_ms.value().is_some_and(|time| time >= LEAST_MS) && times > 0;
    if now < pressure && !long {
        return Ok(None);
    }
    let what = match protocols.tcp_memory_pressure_ms.value() {
        Some(time) if now < pressure => {
            format!("TCP was under memory pressure {times} times, for {} s in all", time / 1_000)
        }
        _ => format!("TCP holds {now} pages, and is under pressure from {pressure}"),
    };
    let doubled = [low, pressure, most].map(|pages| pages.saturating_mul(2).to_string()).join(" ");
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&facts.net.socket_memory.tcp_pages))
            .with(Evidence::derived(limits.source(), format!("{low} {pressure} {most}")))
            .with(Evidence::of(&protocols.tcp_memory_pressures).expected(0))
            .remedy(Remedy::Set(vec![Setting::sysctl("net.ipv4.tcp_mem", doubled)]))
            .because("TCP runs short of memory"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn now_or_for_long() {
        let full = healthy().file("/proc/net/sockstat", "TCP: inuse 9 orphan 0 tw 0 alloc 9 mem 260000\n");
        assert_eq!(
            found(&super::CHECK, full)[0].what,
            "TCP holds 260000 pages, and is under pressure from 251094"
        );
        let names = "TcpExt: TCPMemoryPressures TCPMemoryPressuresChrono";
        let past = |time: u64| healthy().file("/proc/net/netstat", &format!("{names}\nTcpExt: 4 {time}\n"));
        assert!(found(&super::CHECK, past(90_000))[0].what.ends_with("4 times, for 90 s in all"));
        assert_eq!(found(&super::CHECK, past(20)), []);
    }
}
