//! What the kernel holds against itself (`Documentation/admin-guide/tainted-kernels.rst`).

use serde::Serialize;

/// One taint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// The letter that is shown in an oops.
    pub letter: char,
    /// What happened.
    pub meaning: &'static str,
}

/// By bit number.
const TAINTS: [(char, &str); 20] = [
    ('P', "a proprietary module was loaded"),
    ('F', "a module was loaded by force"),
    ('S', "the processor or firmware is out of specification"),
    ('R', "a module was unloaded by force"),
    ('M', "the processor reported a machine check"),
    ('B', "a bad page was referenced"),
    ('U', "asked for by a program"),
    ('D', "the kernel died (oops or bug)"),
    ('A', "an ACPI table was overridden"),
    ('W', "the kernel warned"),
    ('C', "a staging driver was loaded"),
    ('I', "a workaround for a firmware bug is in use"),
    ('O', "a module from outside the kernel tree was loaded"),
    ('E', "an unsigned module was loaded"),
    ('L', "a soft lockup happened"),
    ('K', "the kernel was live patched"),
    ('X', "set by the distribution"),
    ('T', "structures were randomised at build"),
    ('N', "an in-kernel test was run"),
    ('J', "a mutating debug operation was used through fwctl"),
];

/// The taints in a mask; a bit this program does not know is told as `?`.
pub(super) fn decode(mask: u64) -> Vec<Taint> {
    (0..64_usize)
        .filter(|bit| mask & (1 << bit) != 0)
        .map(|bit| {
            let (letter, meaning) = TAINTS.get(bit).copied().unwrap_or(('?', "unknown to this program"));
            Taint { letter, meaning }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn letters() {
        let letters = |mask| decode(mask).iter().map(|taint| taint.letter).collect::<String>();
        assert_eq!(letters(0), "");
        assert_eq!(letters(1 | 1 << 9 | 1 << 12), "PWO");
        assert_eq!(letters(1 << 63), "?");
    }
}
