//! Times on the command line.

use std::time::Duration;

/// `250ms`, `30s`, `5m`, `2h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time such as 250ms, 30s, 5m or 2h".to_owned()),
    };
    let number: f64 = digits.parse().map_err(|_| "a time such as 250ms, 30s, 5m or 2h")?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "a time that can be waited for".to_owned())
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times() {
        let ms = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(
            (ms("250ms"), ms("1.5"), ms("5m"), ms("2h")),
            (Ok(250), Ok(1500), Ok(300_000), Ok(7_200_000))
        );
        for text in ["", "s", "-1s", "1d", "NaN", "inf", "1e300h", "1 2s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
