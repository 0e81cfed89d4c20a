//! Ranks as whole numbers, so that sums of them are exact and ties are ties.

/// Twice the mid-rank of each value minus its mean: whole numbers that add up to zero.
///
/// With `n` values of mid-ranks r, the score is 2 r - (n + 1). `None` is a trial that failed: it ranks above every
/// number, and all failures tie. The order of equal values does not matter.
pub fn scores(values: &[Option<f64>]) -> Vec<i64> {
    let key = |index: usize| values[index].unwrap_or(f64::INFINITY);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|left, right| key(*left).total_cmp(&key(*right)));
    let mut scores = vec![0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let mut last = first;
        while last + 1 < order.len() && key(order[last + 1]).total_cmp(&key(order[first])).is_eq() {
            last += 1;
        }
        let doubled = whole(first + last + 1) - whole(values.len());
        for index in &order[first..=last] {
            scores[*index] = doubled;
        }
        first = last + 1;
    }
    scores
}

/// A count as a signed number; counts here are far below the 2⁶³ where this saturates.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_and_failures_are_worst() {
        assert_eq!(scores(&[Some(3.0), Some(1.0), Some(2.0)]), [2, -2, 0]);
        assert_eq!(scores(&[Some(1.0), Some(1.0), Some(2.0)]), [-1, -1, 2]);
        assert_eq!(scores(&[None, Some(9.0), None, Some(8.0)]), [2, -1, 2, -3]);
        assert!(scores(&[]).is_empty());
    }
}
