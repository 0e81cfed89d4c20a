//! A small stable hash (FNV-1a, 64 bits) that names builds and snapshots after what they were made from. It guards
//! against mistakes, not against attack.

/// A hash under construction.
#[derive(Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    /// The hash of nothing.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a piece; the pieces' borders count.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Twelve hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)[..12].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Hash;

    #[test]
    fn the_borders_of_the_pieces_count() {
        let of = |pieces: &[&str]| {
            let mut hash = Hash::new();
            for piece in pieces {
                hash.add(piece.as_bytes());
            }
            hash.hex()
        };
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&[]).len(), 12);
    }
}
