//! Link modes and their speeds (`enum ethtool_link_mode_bit_indices` in `linux/ethtool.h`).

use std::ops::RangeInclusive;

/// Speed in Mbit/s of each run of mode bits. Bits between the runs are no speeds (autonegotiation, port types,
/// pause, error correction). Modes that a newer kernel adds are not known here and count for nothing, so the
/// answer may be too low, never too high.
const SPEEDS: [(RangeInclusive<usize>, u32); 35] = [
    (0..=1, 10),
    (2..=3, 100),
    (4..=5, 1_000),
    (12..=12, 10_000),
    (15..=15, 2_500),
    (17..=17, 1_000),
    (18..=20, 10_000),
    (21..=22, 20_000),
    (23..=26, 40_000),
    (27..=30, 56_000),
    (31..=33, 25_000),
    (34..=35, 50_000),
    (36..=39, 100_000),
    (40..=40, 50_000),
    (41..=41, 1_000),
    (42..=46, 10_000),
    (47..=47, 2_500),
    (48..=48, 5_000),
    (52..=56, 50_000),
    (57..=61, 100_000),
    (62..=66, 200_000),
    (67..=67, 100),
    (68..=68, 1_000),
    (69..=73, 400_000),
    (75..=79, 100_000),
    (80..=84, 200_000),
    (85..=89, 400_000),
    (90..=91, 100),
    (92..=92, 10),
    (93..=98, 800_000),
    (99..=102, 10),
    (103..=108, 200_000),
    (109..=114, 400_000),
    (115..=120, 800_000),
    (121..=124, 1_600_000),
];

/// The highest speed in a mask of 32-bit words in native byte order, if it names any speed at all.
pub(super) fn fastest(mask: &[u8]) -> Option<u32> {
    let is_set = |bit: usize| {
        let word = mask.chunks_exact(4).nth(bit / 32).and_then(|bytes| bytes.try_into().ok());
        word.is_some_and(|bytes| u32::from_ne_bytes(bytes) >> (bit % 32) & 1 == 1)
    };
    let bits = mask.len().saturating_mul(8);
    let set =
        |(range, _): &&(RangeInclusive<usize>, u32)| range.clone().take_while(|bit| *bit < bits).any(is_set);
    SPEEDS.iter().filter(set).map(|(_, speed)| *speed).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(bits: &[usize]) -> Vec<u8> {
        let mut words = [0_u32; 4];
        for bit in bits {
            words[bit / 32] |= 1 << (bit % 32);
        }
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn the_fastest_counts() {
        assert_eq!(fastest(&mask(&[0, 1, 2, 3, 5, 6, 7])), Some(1_000));
        assert_eq!(fastest(&mask(&[5, 12, 31, 38])), Some(100_000));
        assert_eq!(fastest(&mask(&[97])), Some(800_000));
        assert_eq!(fastest(&mask(&[6, 10, 13, 14, 49, 50, 51, 74])), None);
        assert_eq!(fastest(&[]), None);
        assert_eq!(fastest(&[0xff; 3]), None);
    }
}
