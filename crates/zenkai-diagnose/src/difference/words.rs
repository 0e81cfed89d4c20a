//! Facts as people say them.

use std::collections::BTreeSet;

use serde_json::Value;
use zenkai_facts::Node;

/// More words than this of a list are counted.
const WORDS: usize = 8;

/// Steps of paths that say nothing to people.
const SILENT: &[&str] = &["entries", "ethtool", "hardware", "info", "settings", "text"];

/// Endings of names that are units, and how the unit is written.
const UNITS: &[(&str, &str)] = &[
    ("_kb_per_s", "kB/s"),
    ("_bytes", "bytes"),
    ("_mib", "MiB"),
    ("_kb", "kB"),
    ("_khz", "kHz"),
    ("_mhz", "MHz"),
    ("_mtps", "MT/s"),
    ("_mbps", "Mbit/s"),
    ("_usec", "µs"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_ns", "ns"),
    ("_uw", "µW"),
    ("_centisecs", "cs"),
    ("_percent", "%"),
];

/// The name of a fact in words: `queue read ahead` for `block.disks.*.queue.read_ahead_kb`.
pub(super) fn name(segments: &[String]) -> String {
    let mut words: Vec<String> = Vec::new();
    let inner = segments.get(1..).unwrap_or_default();
    for (index, segment) in inner.iter().enumerate() {
        let is_list = inner.get(index + 1).is_some_and(|next| next == "*");
        let ends = index + 1 == inner.len();
        let silent = SILENT.contains(&segment.as_str()) && inner.len() > 1;
        if segment == "*" || is_list || silent || (ends && segment == "current" && index > 0) {
            continue;
        }
        let plain = bare(segment);
        words.push(if segment.contains('.') { plain.to_owned() } else { plain.replace('_', " ") });
    }
    if words.is_empty() { "only on one side".to_owned() } else { words.join(" ") }
}

/// A name without its unit.
fn bare(segment: &str) -> &str {
    UNITS.iter().find_map(|(ending, _)| segment.strip_suffix(ending)).unwrap_or(segment)
}

/// A scalar with the unit that its name ends in.
pub(super) fn scalar(value: &Value, segment: &str) -> String {
    let plain = match value {
        Value::Null => return "none".to_owned(),
        Value::Bool(flag) => return if *flag { "yes" } else { "no" }.to_owned(),
        Value::String(text) if text.is_empty() => return "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let unit = UNITS.iter().find(|(ending, _)| segment.ends_with(ending)).map(|(_, unit)| *unit);
    match unit {
        Some("kHz") => plain.parse().map_or(plain, |khz: u64| format!("{} MHz", khz / 1000)),
        Some("bytes") => plain.parse().map_or(plain, bytes),
        Some("kB") => plain.parse().map_or(plain, |kb: u64| bytes(kb.saturating_mul(1024))),
        Some("µW") => plain.parse().map_or(plain, |microwatts: u64| format!("{} W", microwatts / 1_000_000)),
        Some("%") => format!("{plain} %"),
        Some(unit) if value.is_number() => format!("{plain} {unit}"),
        _ => plain,
    }
}

/// Bytes in the largest unit that needs no rounding, or with one decimal from a mebibyte on.
fn bytes(count: u64) -> String {
    const STEPS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in STEPS {
        let whole = count >> shift;
        if whole > 0 && (whole << shift) == count {
            return format!("{whole} {unit}");
        }
        if whole > 0 && shift > 10 {
            // The part below the unit, in tenths.
            let tenths = ((count - (whole << shift)) >> (shift - 10)).saturating_mul(10) >> 10;
            return format!("{whole}.{tenths} {unit}");
        }
    }
    format!("{count} bytes")
}

/// A list of scalars. Numbers have their place; of words, each side is shown those that the other has not.
pub(super) fn lists(a: &[Node], b: &[Node], segment: &str) -> (String, String) {
    let words = |items: &[Node]| -> Vec<String> { items.iter().map(|item| summary(item, segment)).collect() };
    let (a, b) = (words(a), words(b));
    let plain = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(" ") };
    let numbers = a.iter().chain(&b).all(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    if numbers || (a.len() <= 3 && b.len() <= 3) {
        return (plain(&a), plain(&b));
    }
    sets(a.iter().map(String::as_str), b.iter().map(String::as_str))
}

/// Of two sets of words, those that the other has not.
pub(super) fn sets<'w>(
    a: impl Iterator<Item = &'w str>,
    b: impl Iterator<Item = &'w str>,
) -> (String, String) {
    let (a, b): (BTreeSet<&str>, BTreeSet<&str>) = (a.collect(), b.collect());
    let only = |mine: &BTreeSet<&str>, other: &BTreeSet<&str>| {
        let only: Vec<&str> = mine.difference(other).copied().collect();
        let more = only.len().saturating_sub(WORDS);
        let shown = only.iter().take(WORDS).copied().collect::<Vec<_>>().join(" ");
        match (only.len(), more) {
            (0, _) => "nothing more".to_owned(),
            (_, 0) => format!("also {shown}"),
            _ => format!("also {shown} and {more} more"),
        }
    };
    (only(&a, &b), only(&b, &a))
}

/// Anything in a few words.
pub(super) fn summary(node: &Node, segment: &str) -> String {
    match node {
        Node::Scalar(value) => scalar(value, segment),
        Node::Read { value, .. } => summary(value, segment),
        Node::Missing { reason, .. } => reason.to_string(),
        Node::List(items) if items.is_empty() => "none".to_owned(),
        Node::List(items) => match items.first() {
            Some(Node::Scalar(_)) => {
                items.iter().take(WORDS).map(|item| summary(item, segment)).collect::<Vec<_>>().join(" ")
            }
            _ => format!("{} of them", items.len()),
        },
        Node::Map(parts) => {
            let told = parts.iter().filter_map(|(name, node)| {
                let Node::Scalar(value) = opened(node) else { return None };
                (!value.is_null())
                    .then(|| format!("{} {}", bare(name).replace('_', " "), scalar(value, name)))
            });
            let told: Vec<String> = told.take(4).collect();
            if told.is_empty() { "there".to_owned() } else { told.join(", ") }
        }
    }
}

/// The value behind a reading.
pub(super) fn opened(node: &Node) -> &Node {
    match node {
        Node::Read { value, .. } => opened(value),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn facts_read_as_words() {
        assert_eq!(name(&segments("block.disks.*.queue.read_ahead_kb")), "queue read ahead");
        assert_eq!(
            name(&segments("memory.transparent_huge_pages.enabled.current")),
            "transparent huge pages enabled"
        );
        assert_eq!(name(&segments("cpu.frequency.policies.*.governor")), "frequency governor");
        assert_eq!(scalar(&2_701_000.into(), "max_khz"), "2701 MHz");
        assert_eq!(scalar(&128.into(), "read_ahead_kb"), "128 KiB");
        assert_eq!(scalar(&1_610_612_736_u64.into(), "size_bytes"), "1.5 GiB");
        assert_eq!(scalar(&1_500.into(), "mtu_bytes"), "1500 bytes");
        assert_eq!(scalar(&true.into(), "boost"), "yes");
    }

    #[test]
    fn of_long_lists_only_the_difference_is_told() {
        let list =
            |text: &str| -> Vec<Node> { text.split(' ').map(|word| Node::Scalar(word.into())).collect() };
        let (a, b) = lists(&list("fpu vme de pse avx2"), &list("fpu vme de pse"), "flags");
        assert_eq!((a.as_str(), b.as_str()), ("also avx2", "nothing more"));
        let (a, _) = lists(&list("4096 131072 6291456 1"), &list("4096 1 1 1"), "tcp_rmem_bytes");
        assert!(a.contains("KiB"), "{a}");
    }
}
