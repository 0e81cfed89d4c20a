//! What is laid down before the first trial, and what is written down after each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::statistics::design::{Law, block_of_all, switches_per_run, two_arm_block};
use crate::statistics::real;
use crate::statistics::verdict::{Better, Rule};

/// Version of `experiment.json` and `trials.jsonl` written by this program.
pub const PLAN_VERSION: u32 = 1;

/// The most pairs that [`Plan::fill`] plans: they find a difference of 0.31 times the spread of the runs.
pub const MOST_PAIRS_OF_SHORT_RUNS: usize = 200;

/// One of the things compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name in reports, unique in the experiment.
    pub name: String,
    /// How to enter it, as the user wrote it (`profile:balanced`, `set:vm.swappiness=10`, `now`).
    pub spec: String,
    /// The words that make it, as a later run of the experiment reads them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// What entering it changes on the machine, beside what is there when the experiment begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Its own command, when the arms are themselves commands; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// One thing that an arm sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The knob, for people: a sysctl's name, a file, or what is run.
    pub what: String,
    /// What it shows when the experiment begins; `None` when it is absent or an act.
    pub from: Option<String>,
    /// What the arm sets it to; `None` when the arm takes it away or it is an act.
    pub to: Option<String>,
}

/// How long to wait between entering an arm and the workload. The same for every arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// Wait at least this long after a switch, in seconds.
    pub at_least_s: f64,
    /// And until the machine is quiet, but at most this long, in seconds.
    pub at_most_s: f64,
}

/// The number that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name, for example `time`.
    pub name: String,
    /// SI unit, for example `s`.
    pub unit: String,
    /// How the user asked for it: a name, a regular expression with one group on the workload's output, or `json:` and
    /// a path; `None` for the tool's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// One setting of an arm that made a difference: the first arm of the experiment goes without it, the second is the arm
/// as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirms {
    /// The directory of the earlier experiment, as the user named it.
    pub dir: String,
    /// The setting, as the user named it.
    pub knob: String,
    /// The settings that this name stands for, as in [`Setting::what`]; several when devices have one each.
    pub what: Vec<String>,
    /// What the earlier experiment compared the arm with.
    pub a: String,
    /// The arm that made the difference.
    pub b: String,
    /// The difference, in per cent of the metric; `None` where only failures told the arms apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Its interval, in per cent.
    #[serde(default)]
    pub interval: [Option<f64>; 2],
    /// How many settings were put to the proof together. They share the error rate: this experiment has its part.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub among: usize,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_one(number: &usize) -> bool {
    *number == 1
}

/// `experiment.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// What is compared; the others are each compared with the first.
    pub arms: Vec<Arm>,
    /// Command of the workload; empty when the arms are themselves commands.
    pub workload: Vec<String>,
    /// The primary metric.
    pub metric: Metric,
    /// Seed of the order of the arms.
    pub order_seed: u64,
    /// How the trials are judged.
    pub rule: Rule,
    /// The wait after a switch.
    pub settle: Settle,
    /// A run that takes longer has failed, in seconds; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// Seconds between two samples while the workload runs; `None` when nothing is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_s: Option<f64>,
    /// Where the most pairs were left open: when the runs that do not count show that more pairs than planned fit into
    /// so many seconds, these are planned, up to [`MOST_PAIRS_OF_SHORT_RUNS`]. See [`Plan::fill`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_s: Option<f64>,
    /// Whether both arms are the same on purpose, to see how this machine behaves under the test itself.
    #[serde(default)]
    pub aa: bool,
    /// What an earlier experiment found and this one puts to the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirms: Option<Confirms>,
    /// When it was laid down, in seconds since 1970.
    #[serde(default)]
    pub created_unix_s: u64,
    /// What a later version wrote; kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Plan {
    /// Whether some arm was to change the machine and none does, so that all are one and the same state.
    pub fn is_one_state(&self) -> bool {
        let acts = |arm: &Arm| {
            let words = || arm.parts.iter().flat_map(|word| word.split(" + "));
            !arm.settings.is_empty()
                || !arm.command.is_empty()
                || words().any(|part| part.starts_with("cpu-max:") || part.starts_with("enter="))
        };
        self.arms.iter().any(Arm::is_idle) && !self.arms.iter().any(acts)
    }

    /// The recommended plan for `arms`: at most `cap` pairs, the error rate shared equally among the comparisons with
    /// the first arm (Bonferroni).
    pub fn new(
        arms: Vec<Arm>,
        workload: Vec<String>,
        metric: Metric,
        better: Better,
        seed: u64,
        cap: usize,
    ) -> Self {
        let mut rule = Rule::new(better, seed, cap);
        if arms.len() > 2 {
            rule.law = Law::Pairs;
            rule.share(arms.len() - 1);
        }
        Self {
            version: PLAN_VERSION,
            arms,
            workload,
            metric,
            order_seed: seed,
            rule,
            settle: Settle { at_least_s: 2.0, at_most_s: 30.0 },
            timeout_s: None,
            sample_s: None,
            fill_s: None,
            aa: false,
            confirms: None,
            created_unix_s: 0,
            other: Map::new(),
        }
    }

    /// A plan to run `workload` `runs` times as the machine is, to be put beside another recording later. It gives no
    /// verdict.
    pub fn recording(workload: Vec<String>, metric: Metric, better: Better, seed: u64, runs: usize) -> Self {
        let mut plan = Self::new(vec![Arm::new("now", "now")], workload, metric, better, seed, runs);
        plan.rule.judge_at(vec![runs], plan.rule.alpha);
        plan.settle = Settle { at_least_s: 0.0, at_most_s: 0.0 };
        plan
    }

    /// Seconds that so many runs cost when one takes `run_s`, and each switch `settle_s`.
    pub fn cost_s(&self, many: usize, run_s: f64, settle_s: f64) -> f64 {
        real(many) * (run_s + switches_per_run(self.arms.len()) * settle_s)
    }

    /// Plans as many pairs as [`Plan::fill_s`] allows when a run takes `run_s`, if they are more than now. Tells whether
    /// they are. Noise is largest where runs are short, and there more of them cost little.
    ///
    /// Runs that do not count decide, and they do so before the first trial, so the error rate stays what it was.
    pub fn fill(&mut self, run_s: f64) -> bool {
        let Some(within_s) = self.fill_s.filter(|_| run_s > 0.0) else { return false };
        let now = self.rule.looks.last().copied().unwrap_or_default();
        let fits =
            |pairs: &usize| self.cost_s(pairs * self.arms.len(), run_s, self.settle.at_least_s) <= within_s;
        let most = (now + 1..=MOST_PAIRS_OF_SHORT_RUNS).rev().filter(|pairs| pairs % 2 == 0).find(fits);
        if let Some(most) = most {
            self.rule.cap(most);
        }
        most.is_some()
    }

    /// The arms of block `index` in the order in which they run. See [`two_arm_block`] for `attempt`.
    pub fn block(&self, index: u32, attempt: u32) -> Vec<usize> {
        match self.arms.len() {
            2 => two_arm_block(self.rule.law, self.order_seed, index, attempt)
                .into_iter()
                .map(usize::from)
                .collect(),
            arms => block_of_all(arms, self.order_seed, index, attempt),
        }
    }
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It gave a number.
    Ok,
    /// The workload failed or gave no usable number: counts as the worst of all.
    Failed,
    /// The workload took longer than allowed: counts as the worst of all.
    Timeout,
    /// Something outside the experiment spoilt it (a reboot, a suspend): its block is drawn again.
    Discarded,
}

/// A number that a workload gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The number, in its unit.
    pub value: f64,
    /// SI unit: `s`, `B/s`, `1/s`, `J`; empty for a pure number.
    pub unit: String,
    /// Which direction is better; `None` where neither is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

/// A line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0.
    pub block: u32,
    /// How often this block had been drawn before.
    pub attempt: u32,
    /// Place in the block, from 0.
    pub place: usize,
    /// The arm that ran: its index in the plan.
    pub arm: usize,
    /// How it ended.
    pub status: Status,
    /// The primary metric in its unit; absent when it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Why it gave none, or was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the workload started, in seconds since 1970.
    #[serde(default)]
    pub started_unix_s: f64,
    /// How long it ran, in seconds.
    #[serde(default)]
    pub elapsed_s: f64,
    /// How long the machine was left alone before, in seconds.
    #[serde(default)]
    pub settled_s: f64,
    /// How the workload ended, as shells tell it (128 and the signal); `None` when it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// All numbers of the workload, the primary one too, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Measure>,
    /// What the machine did meanwhile: the mean of each channel over the trial, in the channel's unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, f64>,
    /// The samples, a file below the experiment's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<String>,
    /// What a later version wrote; kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Arm {
    /// Whether it was to change the machine (a profile, a setting) and yet changes nothing: all of it is so already, or
    /// is something that this machine does not have.
    pub fn is_idle(&self) -> bool {
        let asks = |part: &str| part.starts_with("profile:") || part.starts_with("set:");
        self.settings.is_empty() && self.parts.iter().any(|word| word.split(" + ").any(asks))
    }

    /// An arm that is entered as `spec` says, with nothing set and no command of its own yet.
    pub fn new(name: impl Into<String>, spec: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            spec: spec.into(),
            parts: Vec::new(),
            settings: Vec::new(),
            command: Vec::new(),
        }
    }
}

/// Where a trial keeps which domain its `joules` are of.
pub const ENERGY_DOMAIN: &str = "energy_domain";

impl Trial {
    /// The domain of the machine whose energy `joules` is: `psys`, `package-0 + package-0.dram`.
    pub fn energy_domain(&self) -> Option<&str> {
        self.other.get(ENERGY_DOMAIN)?.as_str()
    }

    /// A trial at its place in the order, of which nothing but its end is known yet.
    pub fn new(
        block: u32,
        attempt: u32,
        place: usize,
        arm: usize,
        status: Status,
        value: Option<f64>,
    ) -> Self {
        Self {
            block,
            attempt,
            place,
            arm,
            status,
            value,
            reason: None,
            started_unix_s: 0.0,
            elapsed_s: 0.0,
            settled_s: 0.0,
            exit_code: None,
            metrics: BTreeMap::new(),
            channels: BTreeMap::new(),
            samples: None,
            other: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_of_which_none_does_anything_are_one_state() {
        let arm = |words: &str| Arm { parts: vec![words.to_owned()], ..Arm::new(words, words) };
        let setting =
            Setting { what: "vm.swappiness".into(), from: Some("60".into()), to: Some("10".into()) };
        let (now, idle) = (arm("now"), arm("profile:balanced"));
        let sets = Arm { settings: vec![setting], ..arm("profile:database") };
        let is_one = |arms: &[&Arm]| {
            let arms = arms.iter().map(|arm| (*arm).clone()).collect();
            let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
            Plan::new(arms, vec!["true".into()], metric, Better::Lower, 1, 6).is_one_state()
        };
        assert!(is_one(&[&now, &idle]) && is_one(&[&idle, &idle]));
        assert!(!is_one(&[&idle, &sets]), "an idle arm beside one that acts is the machine as it is");
        assert!(!is_one(&[&idle, &arm("profile:balanced + cpu-max:95%")]));
        assert!(!is_one(&[&now, &now]), "nobody asked for a change: --aa");
    }
}
