//! Default routes (proc(5): `/proc/net/route`, `/proc/net/ipv6_route`).

use std::collections::BTreeSet;

use crate::{Observed, Reader};

/// `RTF_UP` and `RTF_REJECT` (`linux/route.h`).
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

pub(super) fn ipv4(reader: &Reader<'_>) -> Observed<Vec<String>> {
    reader.text("/proc/net/route").map(|text| best_first(text.lines().skip(1).filter_map(ipv4_line)))
}

pub(super) fn ipv6(reader: &Reader<'_>) -> Observed<Vec<String>> {
    reader.text("/proc/net/ipv6_route").map(|text| best_first(text.lines().filter_map(ipv6_line)))
}

/// Metric and interface of a default route.
fn ipv4_line(line: &str) -> Option<(u32, &str)> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let [interface, destination, _, flags, _, _, metric, mask] = words.try_into().ok()?;
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let default = is_zero(destination) && is_zero(mask) && flags & UP != 0 && flags & REJECT == 0;
    default.then_some((metric.parse().ok()?, interface))
}

fn ipv6_line(line: &str) -> Option<(u32, &str)> {
    let words: Vec<&str> = line.split_whitespace().take(10).collect();
    let [destination, length, _, _, _, metric, _, _, flags, interface] = words.try_into().ok()?;
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let default = is_zero(destination) && is_zero(length) && flags & UP != 0 && flags & REJECT == 0;
    // The loopback device holds the "unreachable" entry.
    (default && interface != "lo").then_some((u32::from_str_radix(metric, 16).ok()?, interface))
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

fn best_first<'t>(routes: impl Iterator<Item = (u32, &'t str)>) -> Vec<String> {
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by_key(|(metric, _)| *metric);
    let mut seen = BTreeSet::new();
    let fresh = routes.into_iter().filter(|(_, name)| seen.insert(*name));
    fresh.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn the_lower_metric_comes_first() {
        let zero = "0".repeat(32);
        let v6 = format!(
            "fe8000000000000000fc00fffe000001 80 {zero} 00 {zero} 00000000 00000002 00000000 80200001 eth0\n\
             {zero} 00 {zero} 00 {zero} 00000400 00000001 00000000 00000003 eth1\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n"
        );
        let host = FakeHost::new(&[
            (
                "/proc/net/route",
                "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                 eth1\t00000000\t010200C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n\
                 eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                 eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
            ),
            ("/proc/net/ipv6_route", &v6),
        ]);
        assert_eq!(ipv4(&Reader::new(&host)).get().unwrap(), &["eth0", "eth1"]);
        assert_eq!(ipv6(&Reader::new(&host)).get().unwrap(), &["eth1"]);
    }

    proptest! {
        #[test]
        fn never_panics(line in "\\PC*") {
            let _ = (ipv4_line(&line), ipv6_line(&line));
        }
    }
}
