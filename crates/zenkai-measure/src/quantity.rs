//! Numbers as people read them: four digits, and a prefix where the unit takes one.

/// Decimal prefixes and their powers of ten.
const PREFIXES: [(&str, f64); 9] = [
    ("n", 1e-9),
    ("µ", 1e-6),
    ("m", 1e-3),
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
];

/// Units that take a prefix; others (per cent, counts, °C) are written as they are.
fn takes_prefix(unit: &str) -> bool {
    matches!(unit, "s" | "B" | "B/s" | "Hz" | "J" | "W" | "1/s" | "bit/s" | "/s")
}

/// The prefix in which numbers of the size of `largest` read well.
pub fn prefix(largest: f64, unit: &str) -> (&'static str, f64) {
    let size = largest.abs();
    if !takes_prefix(unit) || size == 0.0 || !size.is_finite() {
        return ("", 1.0);
    }
    // Nobody says kiloseconds or millibytes.
    let (least, most) = match unit {
        "s" => (1e-9, 1.0),
        "J" | "W" => (1e-6, 1e15),
        _ => (1.0, 1e15),
    };
    let usable = || PREFIXES.iter().filter(|(_, power)| (least..=most).contains(power));
    let fits = usable().rev().find(|(_, power)| size >= power * 0.9995);
    fits.or_else(|| usable().next()).copied().unwrap_or(("", 1.0))
}

/// A unit with its prefix: `1/s` becomes `k/s`.
pub fn unit_with(prefix: &str, unit: &str) -> String {
    match unit.strip_prefix('1') {
        Some(rest) if unit == "1/s" => format!("{prefix}{rest}"),
        _ => format!("{prefix}{unit}"),
    }
}

/// A number with its unit, four digits: `1.234 s`, `56.78 MB/s`.
pub fn quantity(value: f64, unit: &str) -> String {
    let (name, power) = prefix(value, unit);
    let unit = if unit == "1" { String::new() } else { unit_with(name, unit) };
    let number = digits(value / power);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A number with four digits, and never an exponent for what people measure.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-6..1e12).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = [(1000.0, 0), (100.0, 1), (10.0, 2), (1.0, 3), (0.1, 4), (0.01, 5), (0.001, 6)];
    let decimals = decimals.iter().find(|(least, _)| size >= *least).map_or(9, |(_, decimals)| *decimals);
    format!("{value:.decimals$}")
}

/// Per cents from here on are written with an exponent: a line has no room for their digits.
const HUGE_PERCENT: f64 = 1e7;

/// A number of per cents with so many decimals.
pub fn percents(percent: f64, decimals: usize) -> String {
    let text =
        if percent.abs() < HUGE_PERCENT { format!("{percent:.decimals$}") } else { format!("{percent:.1e}") };
    text.replace('-', "−")
}

/// A change in per cent with its sign, `−5.2 %`.
pub fn signed(percent: f64) -> String {
    let decimals = if percent.abs() < 0.1 && percent != 0.0 { 2 } else { 1 };
    format!("{}{} %", plus(percent), percents(percent, decimals))
}

/// The plus sign of what is not negative.
pub fn plus(value: f64) -> &'static str {
    if value.is_sign_negative() { "" } else { "+" }
}

/// How the numbers of a channel are shown: what they are multiplied with, and their unit. Shares of time are shown in
/// per cent; other pure numbers are numbers of things.
pub fn shown_as<'a>(channel: &str, unit: &'a str) -> (f64, &'a str) {
    let is_share = channel.starts_with("cpu")
        || channel.contains("pressure.")
        || channel.rsplit('.').next() == Some("util");
    match unit {
        "1" if is_share => (100.0, "%"),
        "1" => (1.0, ""),
        unit => (1.0, unit),
    }
}

/// A number of a channel with its unit.
pub fn of_channel(channel: &str, unit: &str, value: f64) -> String {
    let (factor, unit) = shown_as(channel, unit);
    quantity(factor * value, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_people_read() {
        for (value, unit, wanted) in [
            (0.001_234_5, "s", "1.234 ms"),
            (0.000_25, "s", "250.0 µs"),
            (12_345.0, "s", "12345 s"),
            (2.4e9, "Hz", "2.400 GHz"),
            (2_500.0, "1/s", "2.500 k/s"),
            (0.25, "1/s", "0.2500 /s"),
            (42.0, "%", "42.00 %"),
            (0.5, "1", "0.5000"),
            (0.0, "B/s", "0 B/s"),
            (1e300, "", "1.000e300"),
        ] {
            assert_eq!(quantity(value, unit), wanted);
        }
    }

    #[test]
    fn shares_of_time_are_per_cent_and_numbers_of_things_are_not() {
        assert_eq!(of_channel("cpu.usr", "1", 0.5), "50.00 %");
        assert_eq!(of_channel("block.vda.util", "1", 0.25), "25.00 %");
        assert_eq!(of_channel("pressure.io.some", "1", 0.1), "10.00 %");
        assert_eq!(of_channel("cgroup.cpu", "1", 1.5), "1.500");
    }
}
