//! Scales with round numbers on them.

use super::super::words::{prefix, unit_with};
use super::page::{Page, n};

/// Values on a line of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// Value at `from`.
    pub(super) low: f64,
    /// Value at `to`.
    pub(super) high: f64,
    /// Where the lowest value lies.
    pub(super) from: f64,
    /// Where the highest value lies.
    pub(super) to: f64,
}

impl Scale {
    /// A scale over `values` with `margin` (a share of their range) on both sides, on the page between `from` and
    /// `to`.
    pub(super) fn over(values: impl IntoIterator<Item = f64>, margin: f64, (from, to): (f64, f64)) -> Self {
        // Numbers that add up to infinity have no place on a page.
        let finite = values.into_iter().filter(|value| value.abs() < 1e300);
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high || (low == 0.0 && high == 0.0) {
            return Self { low: 0.0, high: 1.0, from, to };
        }
        let room = (high - low).max(high.abs().max(low.abs()) * 1e-3).max(1e-9) * margin.max(1e-3);
        Self { low: low - room, high: high + room, from, to }
    }

    /// Where `value` lies.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(-0.5, 1.5);
        self.from + share * (self.to - self.from)
    }

    /// Round values on the scale, about `count` of them and rather more than fewer, and the step between them (1, 2 or 5
    /// times a power of ten).
    pub(super) fn ticks(&self, count: f64) -> (Vec<f64>, f64) {
        let rough = (self.high - self.low) / count.max(1.0);
        if !rough.is_finite() || rough <= 0.0 {
            return (vec![self.low], 1.0);
        }
        let power = 10_f64.powf(rough.log10().floor());
        // Not more than 1.6 times what was asked for: then no scale is left with one number.
        let mut steps = [10.0, 5.0, 2.0, 1.0].into_iter().map(|unit| unit * power);
        let step = steps.find(|step| *step <= rough * 1.6).unwrap_or(power);
        let first = (self.low / step).ceil();
        let values = (0_u32..50).map(|index| (first + f64::from(index)) * step + 0.0);
        (values.take_while(|value| *value <= self.high + step * 1e-9).collect(), step)
    }
}

/// Labels for ticks `step` apart, the unit with the prefix that all of them share, and that prefix's power.
pub(super) fn labels(ticks: &[f64], step: f64, unit: &str) -> (Vec<String>, String, f64) {
    let largest = ticks.iter().fold(0.0_f64, |most, tick| most.max(tick.abs()));
    let (name, power) = prefix(largest, unit);
    let step = (step / power).abs();
    let decimals = [1.0, 0.1, 0.01, 0.001, 0.0001].iter().position(|size| step >= size * 0.999).unwrap_or(5);
    let label = |tick: &f64| {
        let text = tick / power + 0.0;
        let text = if text.abs() < 1e7 { format!("{text:.decimals$}") } else { format!("{text:.2e}") };
        let text = text.replace('-', "−");
        if text.trim_start_matches('−').chars().all(|letter| matches!(letter, '0' | '.')) {
            "0".to_owned()
        } else {
            text
        }
    };
    (ticks.iter().map(label).collect(), unit_with(name, unit), power)
}

/// A horizontal axis at `y` with grid lines up to `top`, and `title` below.
pub(super) fn horizontal(page: &mut Page, scale: &Scale, (top, y): (f64, f64), unit: &str, title: &str) {
    let (ticks, step) = scale.ticks(7.0);
    let (labels, unit, _) = labels(&ticks, step, unit);
    page.el("g", &[("class", "axis"), ("aria-hidden", "true")], |page| {
        for (tick, label) in ticks.iter().zip(&labels) {
            let x = n(scale.at(*tick));
            page.void("path", &[("class", "grid"), ("d", &format!("M{x} {}V{}", n(top), n(y)))]);
            page.leaf("text", &[("x", &x), ("y", &n(y + 15.0)), ("class", "mid")], label);
        }
        let line = format!("M{} {}H{}", n(scale.from), n(y), n(scale.to));
        page.void("path", &[("class", "line"), ("d", &line)]);
        let middle = n(f64::midpoint(scale.from, scale.to));
        let title = if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") };
        page.leaf("text", &[("x", &middle), ("y", &n(y + 32.0)), ("class", "mid name")], &title);
    });
}

/// A vertical axis at `x` with grid lines to `right`; `title` and unit above. Gives the unit with its prefix, and the
/// prefix's power.
pub(super) fn vertical(
    page: &mut Page,
    scale: &Scale,
    (x, right): (f64, f64),
    unit: &str,
    title: &str,
) -> (String, f64) {
    let (ticks, step) = scale.ticks(4.0);
    let (labels, unit, power) = labels(&ticks, step, unit);
    let above = if title.is_empty() || unit.is_empty() {
        format!("{title}{unit}")
    } else {
        format!("{title} ({unit})")
    };
    page.el("g", &[("class", "axis"), ("aria-hidden", "true")], |page| {
        for (tick, label) in ticks.iter().zip(&labels) {
            let y = scale.at(*tick);
            page.void("path", &[("class", "grid"), ("d", &format!("M{} {}H{}", n(x), n(y), n(right)))]);
            page.leaf("text", &[("x", &n(x - 6.0)), ("y", &n(y + 4.0)), ("class", "end")], label);
        }
        page.leaf("text", &[("x", "4"), ("y", "14"), ("class", "name")], &above);
    });
    (unit, power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        for (low, high) in [(0.97, 1.13), (-6.3, 2.0), (0.0, 5e9), (1e-9, 2e-9), (99.999, 100.001)] {
            let scale = Scale { low, high, from: 0.0, to: 100.0 };
            let (ticks, step) = scale.ticks(6.0);
            assert!((3..=14).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.iter().all(|tick| *tick >= low - step * 1e-6 && *tick <= high + step * 1e-6));
            let (labels, ..) = labels(&ticks, step, "s");
            let mut distinct = labels.clone();
            distinct.dedup();
            assert_eq!(labels, distinct, "{ticks:?}");
        }
    }

    #[test]
    fn strange_values_give_a_scale() {
        for values in [vec![], vec![f64::NAN], vec![3.0], vec![0.0, 0.0], vec![f64::MIN, 1.0, f64::MAX]] {
            let scale = Scale::over(values, 0.05, (0.0, 100.0));
            assert!(scale.at(0.5).is_finite() && !scale.ticks(5.0).0.is_empty(), "{scale:?}");
            let (ticks, step) = scale.ticks(4.0);
            let (mut labels, ..) = labels(&ticks, step, "1/s");
            assert!(labels.iter().all(|label| label.len() < 16), "{labels:?}");
            labels.dedup();
            assert!(
                labels.len() == ticks.len() && ticks.len() > 1,
                "every line has its own number: {labels:?}"
            );
        }
    }

    #[test]
    fn no_scale_is_left_with_one_number() {
        for high in (100..1000).map(f64::from) {
            let scale = Scale { low: 0.3, high: 0.3 + high, from: 0.0, to: 100.0 };
            assert!((2..=8).contains(&scale.ticks(4.0).0.len()), "{high}: {:?}", scale.ticks(4.0));
        }
    }
}
