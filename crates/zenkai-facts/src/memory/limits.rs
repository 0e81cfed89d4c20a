//! What memory speed a CPU model can use, from `data/memory_limits.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// What a CPU model can do with one module per channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedLimit {
    /// Highest speed in mega-transfers per second; for a line of models that differ, the lowest among them.
    pub mtps: u32,
    /// Memory channels of one socket.
    pub channels: u32,
}

#[derive(Deserialize)]
struct Table {
    cpu: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    model: Vec<String>,
    mtps: u32,
    channels: u32,
}

/// Empty if the table were broken, which a test rules out.
static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let table = toml::from_str::<Table>(include_str!("../../data/memory_limits.toml"));
    table.map(|table| table.cpu).unwrap_or_default()
});

/// The limit of the CPU with this name (`Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz`), when it is known.
pub fn speed_limit(cpu_name: &str) -> Option<SpeedLimit> {
    let name = cpu_name.replace("(R)", "").replace("(TM)", "").replace("(tm)", "");
    let entry = TABLE.iter().find(|entry| entry.model.iter().any(|model| holds(&name, model)))?;
    Some(SpeedLimit { mtps: entry.mtps, channels: entry.channels })
}

/// Whether a pattern stands somewhere in a name, between blanks or ends on its left side. What follows may be a
/// suffix (`6248R`), but not another digit.
fn holds(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let fits = |(letter, wanted): (&u8, &u8)| match wanted {
        b'?' => letter.is_ascii_alphanumeric(),
        // Emerald Rapids writes its name in capitals.
        _ => letter.eq_ignore_ascii_case(wanted),
    };
    name.windows(pattern.len().max(1)).enumerate().any(|(at, window)| {
        let starts =
            at.checked_sub(1).and_then(|before| name.get(before)).is_none_or(|letter| *letter == b' ');
        let ends = name.get(at.saturating_add(pattern.len())).is_none_or(|letter| !letter.is_ascii_digit());
        starts && ends && window.iter().zip(pattern).all(fits)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_models() {
        let cases = [
            ("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz", 1866),
            ("Intel(R) Xeon(R) CPU E5-2640 v4 @ 2.40GHz", 2133),
            ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", 2400),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 1600),
            ("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 2933),
            ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 3200),
            ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", 2666),
            ("Intel(R) Xeon(R) Gold 6262V CPU @ 1.90GHz", 2400),
            ("Intel(R) Xeon(R) Platinum 8352V CPU @ 2.10GHz", 2933),
            ("Intel(R) Xeon(R) Gold 6430", 4400),
            ("INTEL(R) XEON(R) PLATINUM 8592V", 4800),
            ("AMD EPYC 7251 8-Core Processor", 2400),
            ("AMD EPYC 7773X 64-Core Processor", 3200),
            ("AMD EPYC 7763 64-Core Processor", 3200),
            ("AMD EPYC 9654 96-Core Processor", 4800),
        ];
        for (name, mtps) in cases {
            assert_eq!(speed_limit(name).map(|limit| limit.mtps), Some(mtps), "{name}");
        }
        for name in
            ["Intel(R) Core(TM) i7-8700", "Intel Xeon Processor (Skylake)", "AMD EPYC-Rome Processor", ""]
        {
            assert_eq!(speed_limit(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(name in "\\PC{0,60}") {
            let _ = speed_limit(&name);
        }
    }
}
