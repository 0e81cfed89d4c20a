//! Re-randomisation: what the statistic would have been had the coins fallen otherwise.
//!
//! If the arms do not differ, every trial would have given the same number whichever arm ran in it. Then only the
//! order was random, its law is known, and the share of orders with a statistic at least as large as the observed one
//! is a p-value that holds whatever the noise is (Fisher's sharp null hypothesis; Edgington and Onghena,
//! "Randomization Tests").

use super::design::{Block, Law};
use super::real;
use super::rng::{Purpose, Rng};

/// Re-randomisations behind a p-value unless said otherwise.
pub const DRAWS: usize = 9_999;
/// The most there are: each takes memory and time.
pub const MOST_DRAWS: usize = 99_999;

/// Re-randomisations for tests of these levels: the least p-value of a sample is one in so many and one, so that a
/// strict level needs more of them, or nothing would ever pass it.
pub fn draws_for(levels: &[f64]) -> usize {
    let least = levels.iter().copied().filter(|level| *level > 0.0).fold(1.0, f64::min);
    let mut draws = DRAWS;
    while least * real(draws + 1) < 10.0 && draws < MOST_DRAWS {
        draws = MOST_DRAWS.min(2 * draws + 1);
    }
    draws
}

/// A set of orders drawn from the law of the experiment, or all of them when they are few.
#[derive(Debug, Clone)]
pub struct Redraws {
    blocks: Vec<Block>,
    /// Which of its patterns each block takes; one row of `blocks.len()` entries per order.
    choices: Vec<u8>,
    all: bool,
}

impl Redraws {
    /// All orders of `slots` trials if there are at most `draws` + 1 of them, else `draws` orders drawn from `seed`.
    pub fn new(law: Law, slots: usize, draws: usize, seed: u64) -> Self {
        let blocks = law.blocks(slots);
        let count = law.arrangements(slots).and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count) if count <= draws.saturating_add(1) => {
                Self { choices: every_order(&blocks, count), blocks, all: true }
            }
            _ => {
                let index = u64::try_from(slots).unwrap_or(u64::MAX);
                let mut rng = Rng::stream(seed, Purpose::Redraw, index);
                Self { choices: drawn_orders(&blocks, draws, &mut rng), blocks, all: false }
            }
        }
    }

    /// Whether these are all orders there are, so that the p-value is exact and not sampled.
    pub fn is_complete(&self) -> bool {
        self.all
    }

    /// How many orders are compared with the observed one.
    pub fn len(&self) -> usize {
        self.choices.len().checked_div(self.blocks.len()).unwrap_or(0)
    }

    /// Whether there is nothing to compare with: no complete block has run.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The two-sided p-value of the sum of `scores` over the trials of B, minus that over the trials of A.
    pub fn p_of_sum(&self, scores: &[i64], is_b: &[bool]) -> f64 {
        let signed = |slot: usize, b: bool| if b { scores[slot] } else { -scores[slot] };
        let observed: i64 = is_b.iter().enumerate().map(|(slot, b)| signed(slot, *b)).sum();
        // One look-up per block instead of one addition per trial: a block has at most six orders.
        let mut sums = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let mut of_pattern = [0_i64; 8];
            for (sum, pattern) in of_pattern.iter_mut().zip(block.patterns) {
                *sum = (0..block.len).map(|slot| signed(block.start + slot, pattern >> slot & 1 == 1)).sum();
            }
            sums.push(of_pattern);
        }
        let reached = self.rows().filter(|row| {
            let sum: i64 = row.iter().zip(&sums).map(|(choice, sums)| sums[usize::from(*choice & 7)]).sum();
            sum.abs() >= observed.abs()
        });
        self.p(reached.count())
    }

    /// The p-value of any statistic for which large means evidence: `statistic` is called with the observed order and
    /// with every other. Values that differ only by rounding count as equal.
    pub fn p_of(&self, is_b: &[bool], mut statistic: impl FnMut(&[bool]) -> f64) -> f64 {
        let observed = statistic(is_b);
        let least = if observed.is_finite() { observed - observed.abs() * 1e-12 } else { observed };
        let mut order = vec![false; is_b.len()];
        let mut reached = 0;
        for row in self.rows() {
            for (block, choice) in self.blocks.iter().zip(row) {
                let pattern = block.patterns.get(usize::from(*choice)).copied().unwrap_or(0);
                for slot in 0..block.len {
                    order[block.start + slot] = pattern >> slot & 1 == 1;
                }
            }
            if statistic(&order) >= least {
                reached += 1;
            }
        }
        self.p(reached)
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.choices.chunks_exact(self.blocks.len().max(1))
    }

    /// The observed order counts as one of the drawn ones, which makes the sampled p-value valid and never zero
    /// (Phipson and Smyth, 2010); among all orders it is already there.
    fn p(&self, reached: usize) -> f64 {
        if self.is_empty() {
            return 1.0;
        }
        let itself = usize::from(!self.all);
        real(reached + itself) / real(self.len() + itself)
    }
}

fn every_order(blocks: &[Block], count: usize) -> Vec<u8> {
    let mut choices = Vec::with_capacity(count * blocks.len());
    let mut row = vec![0_u8; blocks.len()];
    for _ in 0..count {
        choices.extend_from_slice(&row);
        for (choice, block) in row.iter_mut().zip(blocks) {
            *choice += 1;
            if usize::from(*choice) < block.patterns.len() {
                break;
            }
            *choice = 0;
        }
    }
    choices
}

fn drawn_orders(blocks: &[Block], draws: usize, rng: &mut Rng) -> Vec<u8> {
    let mut choices = Vec::with_capacity(draws * blocks.len());
    for _ in 0..draws {
        for block in blocks {
            let limit = u32::try_from(block.patterns.len()).unwrap_or(u32::MAX);
            choices.push(u8::try_from(rng.below(limit)).unwrap_or(0));
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::rank;

    #[test]
    fn enumerates_six_pairs_and_agrees_with_sampling() {
        let values: Vec<Option<f64>> = (0..12).map(|slot| Some(f64::from(slot * 7 % 12))).collect();
        let scores = rank::scores(&values);
        let is_b = Law::BlocksOfFour.order(5, 6);
        let exact = Redraws::new(Law::BlocksOfFour, 12, DRAWS, 1);
        assert!(exact.is_complete());
        assert_eq!(exact.len(), 216);
        let sampled = Redraws {
            choices: drawn_orders(&exact.blocks, 40_000, &mut Rng::new(9)),
            all: false,
            ..exact.clone()
        };
        let (p, q) = (exact.p_of_sum(&scores, &is_b), sampled.p_of_sum(&scores, &is_b));
        assert!((p - q).abs() < 0.01, "{p} {q}");
    }

    #[test]
    fn the_two_ways_to_a_p_value_agree() {
        let values: Vec<Option<f64>> = (0..20).map(|slot| Some(f64::from(slot * 11 % 20))).collect();
        let scores = rank::scores(&values);
        let is_b = Law::BlocksOfFour.order(2, 10);
        let redraws = Redraws::new(Law::BlocksOfFour, 20, 999, 1);
        assert!(!redraws.is_complete());
        let sum = |order: &[bool]| {
            let sum: i64 = order.iter().zip(&scores).map(|(b, score)| if *b { *score } else { -score }).sum();
            f64::from(i32::try_from(sum.abs()).unwrap())
        };
        let difference = redraws.p_of_sum(&scores, &is_b) - redraws.p_of(&is_b, sum);
        assert!(difference.abs() < 1e-15);
    }

    #[test]
    fn the_strongest_evidence_of_six_pairs_is_two_in_216() {
        // Only AABB AABB AABB and its mirror put the two best trials of every block under the same arm.
        let is_b: Vec<bool> = [false, false, true, true].repeat(3);
        let values: Vec<Option<f64>> = is_b.iter().map(|b| Some(f64::from(u8::from(*b)))).collect();
        let p = Redraws::new(Law::BlocksOfFour, 12, DRAWS, 1).p_of_sum(&rank::scores(&values), &is_b);
        assert!((p - 2.0 / 216.0).abs() < 1e-15, "{p}");
        let nothing = Redraws::new(Law::BlocksOfFour, 0, DRAWS, 1);
        assert!((nothing.p_of_sum(&[], &[]) - 1.0).abs() < 1e-15);
    }
}
