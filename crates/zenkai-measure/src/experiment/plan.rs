//! What is laid down before the first trial, and what is written down after each.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::statistics::design::{Law, block_of_all, two_arm_block};
use crate::statistics::sequential::local_levels;
use crate::statistics::verdict::{Better, Rule};

/// Version of `experiment.json` and `trials.jsonl` written by this program.
pub const PLAN_VERSION: u32 = 1;

/// One of the things compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name in reports, unique in the experiment.
    pub name: String,
    /// How to enter it, as the user wrote it (`profile:balanced`, `set:vm.swappiness=10`, `now`).
    pub spec: String,
}

/// The number that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name, for example `time`.
    pub name: String,
    /// SI unit, for example `s`.
    pub unit: String,
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
    /// What a later version wrote; kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Plan {
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
            rule.alpha /= crate::statistics::real(arms.len() - 1);
            rule.levels = local_levels(&rule.looks, rule.alpha);
        }
        Self { version: PLAN_VERSION, arms, workload, metric, order_seed: seed, rule, other: Map::new() }
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
    /// What else was written down (times, other metrics, exit code, samples); kept as it is.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
