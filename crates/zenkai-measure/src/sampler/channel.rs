//! One quantity over time.

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Channel {
    /// `cpu.usr`, `block.vda.read_bytes`: the group first.
    pub name: String,
    /// SI: `1` (a share), `1/s`, `B`, `B/s`, `s`, `Hz`, `W`, `K`.
    pub unit: String,
    /// For people: "user time".
    pub words: String,
    /// What it belongs to: `cpu`, `memory`, `block` …
    pub group: String,
}

/// A channel over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is measured.
    pub channel: Channel,
    /// Seconds since the first sample, at the end of each interval, and the value over that interval; `None` where
    /// it could not be measured.
    pub points: Vec<(f64, Option<f64>)>,
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
