//! The content of one register.

use std::fmt;

use serde::{Serialize, Serializer};

/// 64 bits, written in hexadecimal as the manuals do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Register(pub u64);

impl Register {
    /// Whether bit `number` is set; bits beyond 63 are not.
    pub fn bit(self, number: u32) -> bool {
        self.bits(number, number) == 1
    }

    /// The bits from `low` to `high`, both included, as a number.
    pub fn bits(self, high: u32, low: u32) -> u64 {
        let width = high.saturating_sub(low).saturating_add(1);
        let mask = 1_u64.checked_shl(width).map_or(u64::MAX, |end| end - 1);
        self.0.checked_shr(low).unwrap_or(0) & mask
    }
}

impl fmt::Display for Register {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.0)
    }
}

impl Serialize for Register {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Register;

    #[test]
    fn fields() {
        let register = Register(0x80_0000_1b00);
        assert_eq!(register.bits(15, 8), 0x1b);
        assert_eq!(register.bits(63, 0), 0x80_0000_1b00);
        assert!(register.bit(39) && !register.bit(38) && !register.bit(64));
        assert_eq!(register.to_string(), "0x8000001b00");
    }

    proptest! {
        #[test]
        fn never_panics(value: u64, high: u32, low: u32) {
            let _ = Register(value).bits(high, low);
        }
    }
}
