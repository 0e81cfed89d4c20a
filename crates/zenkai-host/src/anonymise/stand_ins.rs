//! Stand-ins: the same for the same original, with a shape that no original has.

use std::collections::HashMap;

/// What kind of identity it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Host,
    Serial,
    Hexadecimal,
    Mac,
    Uuid,
    ShortUuid,
    DiskId,
    User,
    Address,
    Address6,
    Server,
    Lvm,
    ArrayUuid,
}

#[derive(Debug, Default)]
pub(super) struct StandIns {
    numbers: HashMap<(Kind, String), usize>,
    counts: HashMap<Kind, usize>,
}

/// The start of every stand-in for a UUID: version 4, variant 1, otherwise zeros.
const UUID_START: &str = "00000000-0000-4000-8000-";
const MAC_START: [&str; 3] = ["02", "00", "5e"];

impl StandIns {
    fn number(&mut self, kind: Kind, original: &str) -> usize {
        if let Some(number) = self.numbers.get(&(kind, original.to_owned())) {
            return *number;
        }
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        self.numbers.insert((kind, original.to_owned()), *count);
        *count
    }

    /// A stand-in of the form `prefix-N`.
    pub(super) fn named(&mut self, kind: Kind, prefix: &str, original: &str) -> String {
        let done = original.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
        if done.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) {
            return original.to_owned();
        }
        format!("{prefix}-{}", self.number(kind, original))
    }

    pub(super) fn uuid(&mut self, original: &str) -> String {
        let original = original.to_ascii_lowercase();
        if original.starts_with(UUID_START) {
            return original;
        }
        format!("{UUID_START}{:012x}", self.number(Kind::Uuid, &original))
    }

    /// `pairs` of lower-case hexadecimal digits, joined again by the caller.
    pub(super) fn mac(&mut self, pairs: &[&str]) -> Vec<String> {
        let lower: Vec<String> = pairs.iter().map(|pair| pair.to_ascii_lowercase()).collect();
        let idle = lower.iter().all(|pair| pair == "00") || lower.iter().all(|pair| pair == "ff");
        if idle || lower.iter().map(String::as_str).take(3).eq(MAC_START) {
            return lower;
        }
        let number = self.number(Kind::Mac, &lower.concat());
        let low = number.to_be_bytes();
        let start = MAC_START.iter().map(|pair| (*pair).to_owned());
        let middle = std::iter::repeat_n("00".to_owned(), pairs.len().saturating_sub(6));
        let end = low[low.len() - 3..].iter().map(|byte| format!("{byte:02x}"));
        start.chain(middle).chain(end).collect()
    }

    /// A run of hexadecimal digits of the same length.
    pub(super) fn hexadecimal(&mut self, original: &str) -> String {
        let length = original.len();
        let head = length.saturating_sub(6);
        if original.as_bytes()[..head].iter().all(|digit| *digit == b'0') {
            return original.to_owned();
        }
        let number = self.number(Kind::Hexadecimal, &original.to_ascii_lowercase());
        format!("{number:0length$x}")
    }

    /// A serial number of the same length, so that it fits where the original stood: `ID000007`. Those of fewer
    /// than six bytes only become zeros.
    pub(super) fn serial(&mut self, original: &str) -> String {
        let length = original.len();
        let digits = length.saturating_sub(2);
        if is_serial_stand_in(original) {
            return original.to_owned();
        }
        if length < 6 {
            return "0".repeat(length);
        }
        let number =
            self.number(Kind::Serial, original) % 10_usize.pow(u32::try_from(digits.min(9)).unwrap_or(4));
        format!("ID{number:0digits$}")
    }

    /// Volume identifiers of LVM: 32 letters and digits, once or twice.
    pub(super) fn lvm(&mut self, original: &str) -> String {
        if original.starts_with("00000000") {
            return original.to_owned();
        }
        let length = original.len();
        format!("{:0length$}", self.number(Kind::Lvm, original))
    }

    /// An address of the range that is reserved for examples (RFC 5737), then of the one for benchmarks (RFC 2544).
    pub(super) fn address(&mut self, original: &str) -> String {
        let kept = ["0.", "127.", "255.", "192.0.2.", "198.18.", "198.19."];
        if kept.iter().any(|start| original.starts_with(start)) {
            return original.to_owned();
        }
        match self.number(Kind::Address, original) {
            number @ 0..=254 => format!("192.0.2.{number}"),
            number => format!("198.18.{}.{}", (number / 256) % 256, number % 256),
        }
    }

    /// An address of the range that is reserved for examples (RFC 3849).
    pub(super) fn address6(&mut self, original: &str) -> String {
        if original.starts_with("2001:db8::") || original == "::1" || original == "::" {
            return original.to_owned();
        }
        format!("2001:db8::{:x}", self.number(Kind::Address6, original))
    }

    /// The short identifiers of FAT and of partition tables.
    pub(super) fn short_uuid(&mut self, original: &str) -> String {
        if original.starts_with("0000-") {
            return original.to_owned();
        }
        format!("0000-{:04X}", self.number(Kind::ShortUuid, &original.to_ascii_lowercase()))
    }

    /// `xxxxxxxx:xxxxxxxx:xxxxxxxx:xxxxxxxx` of Linux' arrays.
    pub(super) fn array_uuid(&mut self, original: &str) -> String {
        if original.starts_with("00000000:00000000:00000000:") {
            return original.to_owned();
        }
        format!(
            "00000000:00000000:00000000:{:08x}",
            self.number(Kind::ArrayUuid, &original.to_ascii_lowercase())
        )
    }
}

fn is_serial_stand_in(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix("ID").is_some_and(|rest| rest.len() >= 4 && digits(rest))
        || text.bytes().all(|byte| byte == b'0')
}
