//! In which order the arms run: blocks, each in an order drawn at random from a stated law.
//!
//! Two arms run in permuted blocks of four trials (two A and two B). Any number of arms runs in blocks that contain
//! every arm once. Never all of A and then all of B, and never strict alternation: both let drift of the machine, or
//! something with a period, pass for an effect.

use serde::{Deserialize, Serialize};

use super::real;
use super::rng::{Purpose, Rng};

/// AABB ABAB ABBA BBAA BABA BAAB; bit t is set where trial t of the block is B.
const FOURS: [u8; 6] = [0b1100, 0b1010, 0b0110, 0b0011, 0b0101, 0b1001];
/// AB BA.
const TWOS: [u8; 2] = [0b10, 0b01];

/// The law by which two arms are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Blocks of four trials, two of each arm, in one of their six orders. An odd pair at the end is a block of two.
    BlocksOfFour,
    /// Blocks of two trials: one of each arm, in random order. What is left of a block of many arms when two of them
    /// are compared.
    Pairs,
}

/// A block as a place and the orders it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// Equally likely; bit t is set where trial t is B.
    pub(crate) patterns: &'static [u8],
}

impl Law {
    fn trials_per_block(self) -> usize {
        match self {
            Law::BlocksOfFour => 4,
            Law::Pairs => 2,
        }
    }

    /// The blocks of `slots` trials. A single trial left at the end belongs to no block.
    pub(crate) fn blocks(self, slots: usize) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(slots / self.trials_per_block() + 1);
        let mut start = 0;
        while slots - start >= 2 {
            let len = if slots - start >= self.trials_per_block() { self.trials_per_block() } else { 2 };
            let patterns: &'static [u8] = if len == 4 { &FOURS } else { &TWOS };
            blocks.push(Block { start, len, patterns });
            start += len;
        }
        blocks
    }

    /// Whether this law can have drawn `is_b`.
    pub fn admits(self, is_b: &[bool]) -> bool {
        is_b.len().is_multiple_of(2)
            && self.blocks(is_b.len()).iter().all(|block| {
                let slice = &is_b[block.start..block.start + block.len];
                slice.iter().filter(|b| **b).count() * 2 == block.len
            })
    }

    /// In how many equally likely orders `slots` trials can run; `None` beyond 2⁶⁴.
    pub fn arrangements(self, slots: usize) -> Option<u64> {
        self.blocks(slots)
            .iter()
            .try_fold(1_u64, |product, block| product.checked_mul(u64::try_from(block.patterns.len()).ok()?))
    }

    /// The order of `pairs` pairs of trials, `true` for B: the blocks of [`two_arm_block`] one after the other.
    pub fn order(self, seed: u64, pairs: usize) -> Vec<bool> {
        let blocks = self.blocks(pairs * 2);
        let draws = blocks.iter().zip(0_u32..).flat_map(|(block, index)| draw(*block, seed, index, 0));
        draws.collect()
    }
}

fn draw(block: Block, seed: u64, index: u32, attempt: u32) -> Vec<bool> {
    let mut rng = block_rng(seed, index, attempt);
    let pattern = pick(block.patterns, &mut rng);
    (0..block.len).map(|slot| pattern >> slot & 1 == 1).collect()
}

fn pick(patterns: &[u8], rng: &mut Rng) -> u8 {
    let limit = u32::try_from(patterns.len()).unwrap_or(u32::MAX);
    let choice = usize::try_from(rng.below(limit)).unwrap_or(0);
    patterns.get(choice).copied().unwrap_or(0)
}

fn block_rng(seed: u64, index: u32, attempt: u32) -> Rng {
    Rng::stream(seed, Purpose::Order, u64::from(attempt) << 32 | u64::from(index))
}

/// Block `index` of a two-arm experiment, `true` for B. A block that something outside the experiment destroyed (a
/// reboot, a suspend) is discarded whole and drawn again with the next `attempt`.
pub fn two_arm_block(law: Law, seed: u64, index: u32, attempt: u32) -> Vec<bool> {
    let len = law.trials_per_block();
    let patterns: &'static [u8] = if len == 4 { &FOURS } else { &TWOS };
    draw(Block { start: 0, len, patterns }, seed, index, attempt)
}

/// How often a run is another arm's than the one before, on average: five times in eight in blocks of four, and in
/// blocks of each arm once, k - 1 times within a block and all but one time in k between two.
pub fn switches_per_run(arms: usize) -> f64 {
    match arms {
        0 | 1 => 0.0,
        2 => 0.625,
        many => 1.0 - 1.0 / (real(many) * real(many)),
    }
}

/// Block `index` of an experiment with `arms` arms: every arm once, in random order (Fisher and Yates). `attempt` as
/// in [`two_arm_block`].
pub fn block_of_all(arms: usize, seed: u64, index: u32, attempt: u32) -> Vec<usize> {
    let mut rng = block_rng(seed, index, attempt);
    let mut order: Vec<usize> = (0..arms).collect();
    for last in (1..arms).rev() {
        let limit = u32::try_from(last + 1).unwrap_or(u32::MAX);
        order.swap(last, usize::try_from(rng.below(limit)).unwrap_or(0));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_balanced_and_repeatable() {
        for seed in 0..200 {
            let order = Law::BlocksOfFour.order(seed, 7);
            assert_eq!(order.len(), 14);
            assert!(Law::BlocksOfFour.admits(&order), "{order:?}");
            assert_eq!(order, Law::BlocksOfFour.order(seed, 7));
            let block = two_arm_block(Law::BlocksOfFour, seed, 2, 0);
            assert_eq!(order[8..12], block);
        }
        assert!(!Law::BlocksOfFour.admits(&[true, true, false, true]));
        assert!(!Law::BlocksOfFour.admits(&[true, false, true]));
        assert!(!Law::Pairs.admits(&[true, true, false, false]));
    }

    #[test]
    fn every_order_of_a_block_is_equally_likely() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..6_000 {
            *seen.entry(two_arm_block(Law::BlocksOfFour, seed, 0, 1)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (880..1_120).contains(count)), "{seen:?}");
    }

    #[test]
    fn switches_are_as_many_as_the_orders_have() {
        for arms in 1..6 {
            let order: Vec<usize> = (0..4_000)
                .flat_map(|index| match arms {
                    2 => two_arm_block(Law::BlocksOfFour, 7, index, 0).into_iter().map(usize::from).collect(),
                    _ => block_of_all(arms, 7, index, 0),
                })
                .collect();
            let switches = order.windows(2).filter(|two| two[0] != two[1]).count();
            let share = real(switches) / real(order.len());
            assert!((share - switches_per_run(arms)).abs() < 0.01, "{arms}: {share}");
        }
    }

    #[test]
    fn six_pairs_have_216_orders() {
        assert_eq!(Law::BlocksOfFour.arrangements(12), Some(216));
        assert_eq!(Law::BlocksOfFour.arrangements(14), Some(432));
        assert_eq!(Law::Pairs.arrangements(12), Some(64));
        assert_eq!(Law::BlocksOfFour.arrangements(200), None);
    }

    #[test]
    fn a_block_of_many_arms_holds_each_once() {
        let mut firsts = [0; 4];
        for seed in 0..4_000 {
            let mut block = block_of_all(4, seed, 3, 0);
            firsts[block[0]] += 1;
            block.sort_unstable();
            assert_eq!(block, [0, 1, 2, 3]);
        }
        assert!(firsts.iter().all(|count| (880..1_120).contains(count)), "{firsts:?}");
        assert!(block_of_all(0, 1, 0, 0).is_empty());
    }
}
