//! One quantity over time, and how it is computed from counters.

use serde::{Deserialize, Serialize};

use super::template::Column;
use crate::to_f64;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Channel {
    /// `cpu.usr`, `block.vda.read_bytes`: the group first.
    pub name: String,
    /// SI: `1` (a share or a number of things), `1/s`, `B`, `B/s`, `s`, `Hz`, `W`.
    pub unit: String,
    /// For people: "user time".
    pub words: String,
    /// What it belongs to: `cpu`, `memory`, `block` …
    pub group: String,
}

/// A channel in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What is measured.
    pub channel: Channel,
    /// Over the whole recording; for counters from the first and the last sample.
    pub mean: f64,
    /// The least value over one interval.
    pub min: f64,
    /// The greatest value over one interval.
    pub max: f64,
    /// What was counted in all, where the channel is a rate: bytes, joules, events. `None` for levels and shares.
    pub total: Option<f64>,
    /// Intervals with a value.
    pub intervals: usize,
}

/// What a counter does at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wrap {
    /// It does not come there; falling back means that it was reset.
    Never,
    /// It starts again at 0 after 2^32 - 1.
    Bits32,
    /// It starts again after the value of this column.
    After(Column),
}

/// How a channel is computed from the columns of its source. Every form gives a numerator and a denominator per
/// interval, so that the mean over many intervals is the quotient of the sums.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rule {
    /// What the columns show at the end of the interval: `plus` less `minus`.
    Level { plus: Vec<Column>, minus: Vec<Column> },
    /// The advance of the columns a second.
    Rate { columns: Vec<Column>, wrap: Wrap },
    /// The advance a second of the sum of the columns. There may be more of them later: those were at 0 before.
    Sum { columns: Vec<Column> },
    /// The advance a second of a performance counter, where it had its register all the time.
    Undivided { value: Column, enabled: Column, running: Column },
    /// The advance of a column a second of its own time, which another column counts in microseconds.
    Timed { amount: Column, micros: Column },
    /// The advance of some columns for each of the advance of others.
    Share {
        of: Vec<Column>,
        per: Vec<Column>,
        /// Whether columns may fall a little, as `iowait` does (proc(5)); that counts as standing still.
        falls: bool,
    },
    /// The advance of `busy` for each of `fixed`, times the advance of `ticks` a second: the clock while not idle.
    Clock { busy: Column, fixed: Column, ticks: Column },
}

/// A channel and where its values come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Derived {
    pub(super) channel: Channel,
    pub(super) rule: Rule,
    /// What one of the columns is worth in the channel's unit.
    pub(super) factor: f64,
    /// Left out when nothing was counted in the whole recording: one of very many.
    pub(super) quiet: bool,
}

/// One interval, or several put together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Part {
    pub(super) numerator: f64,
    pub(super) denominator: f64,
}

impl Part {
    pub(super) fn value(self) -> Option<f64> {
        (self.denominator > 0.0).then(|| self.numerator / self.denominator)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.numerator += other.numerator;
        self.denominator += other.denominator;
    }
}

impl Rule {
    /// The columns, in the order in which [`Rule::part`] wants their values.
    pub(super) fn columns(&self) -> Vec<Column> {
        match self {
            Self::Level { plus, minus } => [plus.as_slice(), minus].concat(),
            Self::Rate { columns, wrap: Wrap::After(limit) } => [columns.as_slice(), &[*limit]].concat(),
            Self::Rate { columns, .. } | Self::Sum { columns } => columns.clone(),
            Self::Undivided { value, enabled, running } => vec![*value, *enabled, *running],
            Self::Timed { amount, micros } => vec![*amount, *micros],
            Self::Share { of, per, .. } => [of.as_slice(), per].concat(),
            Self::Clock { busy, fixed, ticks } => vec![*busy, *fixed, *ticks],
        }
    }

    /// Whether a value needs one sample only.
    pub(super) fn is_level(&self) -> bool {
        matches!(self, Self::Level { .. })
    }

    /// Whether what was counted can be summed up.
    pub(super) fn has_total(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Sum { .. } | Self::Undivided { .. } | Self::Timed { .. })
    }

    /// Whether an interval may have more columns at its end than at its start.
    pub(super) fn may_grow(&self) -> bool {
        matches!(self, Self::Sum { .. })
    }

    /// Why a channel with this rule has no value in any interval.
    pub(super) fn why_none(&self) -> &'static str {
        match self {
            Self::Level { .. } | Self::Rate { .. } | Self::Sum { .. } => {
                "it was reset, or was there for less than two samples"
            }
            Self::Undivided { .. } => {
                "more counters were in use than the CPU has registers, so it counted only part of the time"
            }
            Self::Timed { .. } => "it told less than two values meanwhile",
            Self::Share { .. } => "nothing happened that it could be divided by",
            Self::Clock { .. } => "APERF, MPERF or the time stamp counter stood still",
        }
    }

    /// The interval from `before` to `now`, which took `seconds`. `None` where it cannot be told.
    pub(super) fn part(&self, before: &[u64], now: &[u64], seconds: f64) -> Option<Part> {
        match self {
            Self::Level { plus, minus } => {
                let (more, less) = now.split_at_checked(plus.len())?;
                let sum = |values: &[u64], columns: &[Column]| {
                    columns
                        .iter()
                        .zip(values)
                        .map(|(column, &value)| to_f64(value) * column.scale)
                        .sum::<f64>()
                };
                Some(Part { numerator: sum(more, plus) - sum(less, minus), denominator: 1.0 })
            }
            Self::Rate { columns, wrap } => {
                let limit = match wrap {
                    Wrap::Never => None,
                    Wrap::Bits32 => Some(1 << 32),
                    Wrap::After(_) => now.last().copied(),
                };
                let mut numerator = 0.0;
                for ((column, &before), &now) in columns.iter().zip(before).zip(now) {
                    numerator += to_f64(advance(before, now, limit)?) * column.scale;
                }
                Some(Part { numerator, denominator: seconds })
            }
            Self::Sum { columns } => {
                let sum = |values: &[u64]| values.iter().map(|&value| u128::from(value)).sum::<u128>();
                // One that went took what it had counted with it: then nothing can be told.
                let step = sum(now).checked_sub(sum(before))?;
                let scale = columns.first().map_or(1.0, |column| column.scale);
                let numerator = to_f64(u64::try_from(step).ok()?) * scale;
                Some(Part { numerator, denominator: seconds })
            }
            Self::Undivided { .. } => {
                let advance = |at: usize| now.get(at)?.checked_sub(*before.get(at)?);
                let (value, enabled, running) = (advance(0)?, advance(1)?, advance(2)?);
                (running >= enabled).then(|| Part { numerator: to_f64(value), denominator: seconds })
            }
            Self::Timed { .. } => {
                let advance = |at: usize| now.get(at)?.checked_sub(*before.get(at)?);
                let (amount, micros) = (advance(0)?, advance(1)?);
                (micros > 0).then(|| Part { numerator: to_f64(amount), denominator: to_f64(micros) * 1e-6 })
            }
            Self::Share { of, falls, .. } => {
                let (mut numerator, mut denominator) = (0.0, 0.0);
                for (at, (&before, &now)) in before.iter().zip(now).enumerate() {
                    let step = match now.checked_sub(before) {
                        Some(step) => to_f64(step),
                        None if *falls => 0.0,
                        None => return None,
                    };
                    let sum = if at < of.len() { &mut numerator } else { &mut denominator };
                    *sum += step;
                }
                (denominator > 0.0).then_some(Part { numerator, denominator })
            }
            Self::Clock { .. } => {
                let advance = |at: usize| now.get(at)?.checked_sub(*before.get(at)?).filter(|&step| step > 0);
                let (busy, fixed, ticks) = (advance(0)?, advance(1)?, advance(2)?);
                let numerator = to_f64(busy) * to_f64(ticks) / seconds;
                Some(Part { numerator, denominator: to_f64(fixed) })
            }
        }
    }
}

/// How far a counter came. One that fell came round if it can have: from the upper half to the lower.
fn advance(before: u64, now: u64, limit: Option<u64>) -> Option<u64> {
    if let Some(step) = now.checked_sub(before) {
        return Some(step);
    }
    let limit = limit?;
    (before <= limit && before >= limit / 2 && now < limit / 2).then(|| limit - before + now)
}

/// Collects the channels of a source.
#[derive(Debug, Default)]
pub(super) struct Channels {
    pub(super) list: Vec<Derived>,
}

impl Channels {
    fn push(&mut self, name: String, unit: &str, words: String, rule: Rule, factor: f64) -> &mut Derived {
        let group = name.split('.').next().unwrap_or_default().to_owned();
        let at = self.list.len();
        let channel = Channel { name, unit: unit.to_owned(), words, group };
        self.list.push(Derived { channel, rule, factor, quiet: false });
        &mut self.list[at]
    }

    /// What a column shows.
    pub(super) fn level(
        &mut self,
        name: impl ToString,
        unit: &str,
        words: impl ToString,
        column: Column,
        factor: f64,
    ) {
        let rule = Rule::Level { plus: vec![column], minus: Vec::new() };
        self.push(name.to_string(), unit, words.to_string(), rule, factor);
    }

    /// What columns advance a second, together; `unit` is that of the rate.
    pub(super) fn rate(
        &mut self,
        name: impl ToString,
        unit: &str,
        words: impl ToString,
        columns: Vec<Column>,
        factor: f64,
    ) -> &mut Derived {
        let rule = Rule::Rate { columns, wrap: Wrap::Never };
        self.push(name.to_string(), unit, words.to_string(), rule, factor)
    }

    /// What some columns advance for each that others do.
    pub(super) fn share(
        &mut self,
        name: impl ToString,
        unit: &str,
        words: impl ToString,
        (of, per): (Vec<Column>, Vec<Column>),
        factor: f64,
    ) -> &mut Derived {
        let rule = Rule::Share { of, per, falls: false };
        self.push(name.to_string(), unit, words.to_string(), rule, factor)
    }

    /// By any other rule.
    pub(super) fn by(
        &mut self,
        name: impl ToString,
        unit: &str,
        words: impl ToString,
        rule: Rule,
        factor: f64,
    ) {
        self.push(name.to_string(), unit, words.to_string(), rule, factor);
    }
}

impl Derived {
    /// A counter that starts again at its end.
    pub(super) fn wraps(&mut self, at: Wrap) -> &mut Self {
        if let Rule::Rate { wrap, .. } = &mut self.rule {
            *wrap = at;
        }
        self
    }

    /// One of very many, left out when nothing happened.
    pub(super) fn quiet(&mut self) {
        self.quiet = true;
    }

    /// Columns that may fall a little.
    pub(super) fn falling(&mut self) {
        if let Rule::Share { falls, .. } = &mut self.rule {
            *falls = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Column = Column { at: 0, scale: 1.0 };

    fn rate(wrap: Wrap, before: &[u64], now: &[u64]) -> Option<f64> {
        Rule::Rate { columns: vec![FIRST], wrap }.part(before, now, 2.0)?.value()
    }

    #[test]
    fn a_counter_that_fell_was_reset_unless_it_can_have_come_round() {
        assert_eq!(rate(Wrap::Never, &[10], &[16]), Some(3.0));
        assert_eq!(rate(Wrap::Never, &[10], &[4]), None);
        assert_eq!(rate(Wrap::Bits32, &[(1 << 32) - 2], &[4]), Some(3.0));
        assert_eq!(rate(Wrap::Bits32, &[1 << 20], &[4]), None, "far from its end: a reset");
        let range = Wrap::After(Column { at: 1, scale: 1.0 });
        assert_eq!(rate(range, &[990, 1000], &[20, 1000]), Some(15.0));
        assert_eq!(rate(range, &[2000, 1000], &[20, 1000]), None, "beyond its own range");
    }

    #[test]
    fn a_counter_that_shared_its_register_is_no_measurement() {
        let rule = Rule::Undivided { value: FIRST, enabled: FIRST, running: FIRST };
        assert_eq!(rule.part(&[0, 0, 0], &[50, 9, 9], 1.0).and_then(Part::value), Some(50.0));
        assert_eq!(rule.part(&[0, 0, 0], &[50, 9, 8], 1.0), None);
    }

    #[test]
    fn a_share_of_nothing_is_not_zero() {
        let rule = Rule::Share { of: vec![FIRST], per: vec![FIRST], falls: false };
        assert_eq!(rule.part(&[5, 5], &[5, 5], 1.0), None);
        assert_eq!(rule.part(&[5, 5], &[4, 6], 1.0), None);
        let falling = Rule::Share { of: vec![FIRST], per: vec![FIRST], falls: true };
        assert_eq!(falling.part(&[5, 5], &[4, 6], 1.0).and_then(Part::value), Some(0.0));
    }

    #[test]
    fn the_clock_while_busy() {
        let rule = Rule::Clock { busy: FIRST, fixed: FIRST, ticks: FIRST };
        // Half the time idle at 3 GHz on a CPU whose counter runs at 2 GHz.
        let value = rule.part(&[0, 0, 0], &[3_000, 2_000, 4_000], 2e-6).and_then(Part::value);
        assert_eq!(value, Some(3e9));
    }
}
