//! Swap devices, and compressed swap in memory.

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

/// Swap.
#[derive(Debug, Clone, Serialize)]
pub struct Swap {
    /// The devices and files in use; empty when there is no swap.
    pub devices: Observed<Vec<SwapDevice>>,
    /// A compressed cache in front of them.
    pub zswap: Zswap,
}

/// One swap device or file (`/proc/swaps`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwapDevice {
    /// Its path, as the kernel names it.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Whether it is compressed memory (zram).
    pub compressed_memory: bool,
    /// Size in kB.
    pub size_kb: u64,
    /// Used, in kB.
    pub used_kb: u64,
    /// The one with the highest priority is used first.
    pub priority: i32,
}

/// A compressed cache in front of swap (`Documentation/admin-guide/mm/zswap.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct Zswap {
    /// Whether it is on.
    pub enabled: Observed<bool>,
    /// Most per cent of memory it may take.
    pub max_pool_percent: Observed<u64>,
    /// The compressor.
    pub compressor: Observed<String>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Swap {
    let zswap = |name: &str| join("/sys/module/zswap/parameters", name);
    Swap {
        devices: reader.text("/proc/swaps").parse(|text| parse_swaps(&text)),
        zswap: Zswap {
            enabled: reader.flag(&zswap("enabled")),
            max_pool_percent: reader.number(&zswap("max_pool_percent")),
            compressor: reader.text(&zswap("compressor")),
        },
    }
}

/// Below a heading: name (blanks written as `\040`), type, size, used and priority. A kernel without swap may give
/// nothing at all.
fn parse_swaps(text: &str) -> Result<Vec<SwapDevice>, String> {
    text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<SwapDevice, String> {
    let bad = || format!("`{}`", line.chars().take(40).collect::<String>());
    // A deleted file carries a remark after its name, so the last four words count from the end.
    let words: Vec<&str> = line.split_whitespace().collect();
    let [path @ .., kind, size, used, priority] = words.as_slice() else { return Err(bad()) };
    let path = path.join(" ");
    Ok(SwapDevice {
        compressed_memory: path.starts_with("/dev/zram"),
        path,
        kind: (*kind).to_owned(),
        size_kb: size.parse().map_err(|_| bad())?,
        used_kb: used.parse().map_err(|_| bad())?,
        priority: priority.parse().map_err(|_| bad())?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_table() {
        let text = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                    /dev/zram0                              partition\t100\t\t7\t\t100\n\
                    /swap\\040file (deleted)                file\t\t200\t\t0\t\t-2\n";
        let devices = parse_swaps(text).unwrap();
        assert!(devices[0].compressed_memory && !devices[1].compressed_memory);
        assert_eq!((devices[0].used_kb, devices[1].priority), (7, -2));
        assert!(parse_swaps("Filename Type Size Used Priority").unwrap().is_empty());
        assert!(parse_swaps("Filename\n/dev/sda partition x y z\n").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "Filename\n([ -~]{0,40}\n){0,4}") {
            let _ = parse_swaps(&text);
        }
    }
}
