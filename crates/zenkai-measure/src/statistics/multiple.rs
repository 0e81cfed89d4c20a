//! Several tests at once: corrected p-values.

use super::real;

/// Holm's corrected p-values, in the order given: those at most alpha are declared, and the chance that any of them
/// is wrong is at most alpha (Holm 1979). For the declared secondary metrics.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut corrected = vec![1.0; p.len()];
    let mut so_far = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        so_far = so_far.max((p[*index] * real(p.len() - rank)).min(1.0));
        corrected[*index] = so_far;
    }
    corrected
}

/// Benjamini and Hochberg's corrected p-values, in the order given: among those at most q, at most the share q is
/// wrong on average (Benjamini and Hochberg 1995). For explanations, where many channels are looked at.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut corrected = vec![1.0; p.len()];
    let mut so_far = 1.0_f64;
    for (rank, index) in order.iter().enumerate().rev() {
        so_far = so_far.min(p[*index] * real(p.len()) / real(rank + 1));
        corrected[*index] = so_far;
    }
    corrected
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|left, right| p[*left].total_cmp(&p[*right]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: &[f64], right: &[f64]) {
        assert_eq!(left.len(), right.len());
        assert!(left.iter().zip(right).all(|(l, r)| (l - r).abs() < 1e-9), "{left:?} {right:?}");
    }

    #[test]
    fn corrections_equal_worked_examples() {
        // statsmodels.stats.multitest.multipletests gives the same numbers.
        near(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        near(&benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]), &[0.02, 0.04, 0.04, 0.02]);
        near(&holm(&[0.6, 0.7]), &[1.0, 1.0]);
        near(&benjamini_hochberg(&[0.6, 0.7]), &[0.7, 0.7]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    }
}
