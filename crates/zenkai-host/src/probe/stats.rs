//! Order statistics and the conversions between integers and floats that they need.

/// The value at `share` (0 to 1) of an ascending list by the nearest-rank method: the least value that at least
/// that share of all values does not exceed. Always one of the values, so p100 is the maximum and never an
/// extrapolation. `None` for an empty list.
pub(super) fn percentile(ascending: &[u64], share: f64) -> Option<u64> {
    let rank = (to_f64(ascending.len() as u64) * share.clamp(0.0, 1.0)).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= rank <= len")]
    let rank = rank as usize;
    ascending.get(rank.max(1) - 1).copied()
}

/// The middle of the values (the lower one of two).
pub(super) fn median(values: &[u64]) -> Option<u64> {
    let mut ascending = values.to_vec();
    ascending.sort_unstable();
    percentile(&ascending, 0.5)
}

/// Durations, counts and bytes of one probe stay far below 2^53, where the conversion is exact.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(super) fn to_f64(value: u64) -> f64 {
    value as f64
}

/// Saturating, for counts and kHz that cannot reach the limit.
pub(super) fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// kHz from a count of events (cycles, ticks) over a time, rounded. `None` for no time.
pub(super) fn khz(events: u64, ns: u64) -> Option<u32> {
    let scaled = u128::from(events) * 1_000_000 + u128::from(ns / 2);
    scaled.checked_div(u128::from(ns)).and_then(|khz| u32::try_from(khz).ok())
}

/// `part / whole` as a share between 0 and 1, to four places; 0 for no whole.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { round((to_f64(part) / to_f64(whole)).min(1.0), 4) }
}

/// Rounded to so many decimal places. No measurement here is better than that, and the short numbers survive
/// being written as JSON and read back, which 17 digits do not with serde_json's default parser.
pub(super) fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}
