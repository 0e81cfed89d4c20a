//! Old advice that makes TCP slow.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-tcp-features-off",
    subsystem: Subsystem::Net,
    summary: "TCP works without window scaling, selective acknowledgement or growing buffers",
    impact: Impact::Large,
    effect: "without scaling a connection gets at most 64 KiB for each round trip: 50 Mbit/s at 10 ms (arithmetic)",
    risk: "very old network equipment may not cope",
    source: "https://docs.kernel.org/networking/ip-sysctl.html",
    explanation: include_str!("net_tcp_features_off.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let settings = &facts.net.settings;
    let switches = [
        (&settings.tcp_window_scaling, "window scaling", "net.ipv4.tcp_window_scaling", Impact::Large),
        (
            &settings.tcp_moderate_rcvbuf,
            "growing of receive buffers",
            "net.ipv4.tcp_moderate_rcvbuf",
            Impact::Moderate,
        ),
        (&settings.tcp_sack, "selective acknowledgement", "net.ipv4.tcp_sack", Impact::Moderate),
    ];
    need(&settings.tcp_window_scaling)?;
    let off: Vec<_> = switches.into_iter().filter(|(reading, ..)| reading.value() == Some(false)).collect();
    let Some(impact) = off.iter().map(|(.., impact)| *impact).max() else { return Ok(None) };
    let names: Vec<&str> = off.iter().map(|(_, name, ..)| *name).collect();
    let mut finding = Finding::new(Subject::Machine, format!("switched off: {}", names.join(", ")));
    for (reading, ..) in &off {
        finding = finding.with(Evidence::of(reading).expected(true));
    }
    let wanted = off.iter().map(|(_, _, sysctl, _)| Setting::sysctl(*sysctl, "1")).collect();
    Ok(Some(finding.impact(impact).remedy(Remedy::Set(wanted)).because("TCP features are switched off")))
}

#[cfg(test)]
mod tests {
    use crate::{
        Impact,
        checks::net::shared_testing::{found, healthy},
    };

    #[test]
    fn each_of_them() {
        let dir = "/proc/sys/net/ipv4";
        let scaling = &found(&super::CHECK, healthy().file(&format!("{dir}/tcp_window_scaling"), "0\n"))[0];
        assert_eq!(
            (scaling.what.as_str(), scaling.impact),
            ("switched off: window scaling", Some(Impact::Large))
        );
        let two = healthy()
            .file(&format!("{dir}/tcp_sack"), "0\n")
            .file(&format!("{dir}/tcp_moderate_rcvbuf"), "0\n");
        assert_eq!(
            found(&super::CHECK, two)[0].what,
            "switched off: growing of receive buffers, selective acknowledgement"
        );
    }
}
