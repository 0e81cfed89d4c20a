//! What a running sampler shows at the moment.

use std::collections::BTreeMap;

use super::{
    channel::{Derived, Part},
    replay::{Listener, Replay, Span},
    sources::SOURCES,
};

/// Follows a sampler that is still running.
#[derive(Default)]
pub struct Live {
    replay: Replay,
    now: Now,
}

/// The newest values.
#[derive(Default)]
struct Now {
    names: Vec<String>,
    values: Vec<Option<f64>>,
}

impl Live {
    /// Takes in what [`super::Sampler::take`] gave.
    pub fn feed(&mut self, mut records: &[u8]) {
        // These records come from our own sampler.
        let _ = self.replay.follow(&mut records, &SOURCES, &mut self.now);
    }

    /// The newest value of each channel that has one.
    pub fn values(&self) -> BTreeMap<&str, f64> {
        let both = self.now.names.iter().zip(&self.now.values);
        both.filter_map(|(name, value)| Some((name.as_str(), (*value)?))).collect()
    }

    /// Samples so far.
    pub fn samples(&self) -> usize {
        self.replay.samples
    }

    /// The sampling thread's CPU time so far, in seconds.
    pub fn own_cpu_s(&self) -> f64 {
        super::replay::seconds(self.replay.own_cpu_ns)
    }
}

impl Listener for Now {
    fn channel(&mut self, derived: &Derived) {
        self.names.push(derived.channel.name.clone());
        self.values.push(None);
    }

    fn part(&mut self, channel: usize, _: Span, part: Option<Part>) {
        if let Some(value) = self.values.get_mut(channel) {
            *value = part.and_then(Part::value);
        }
    }
}
