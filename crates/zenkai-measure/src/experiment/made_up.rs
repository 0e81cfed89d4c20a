//! Experiments that never ran: plans and trials out of a seeded generator, for tests of what shows and explains them.
//! Their first arm is called "made up" wherever they are shown, so that nobody takes them for a measurement.

use std::collections::BTreeMap;

use super::plan::{Arm, Measure, Metric, Plan, Setting, Status, Trial};
use crate::statistics::real;
use crate::statistics::rng::Rng;
use crate::statistics::verdict::{Better, Rule};

/// What is made up.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Seed of plan and noise.
    pub seed: u64,
    /// Arms, the first included.
    pub arms: usize,
    /// Pairs of trials with each arm.
    pub pairs: usize,
    /// Relative change of the time under the last arm (-0.08: eight per cent faster).
    pub effect: f64,
    /// Whether the effect comes from the clock; else from the work to be done.
    pub by_clock: bool,
    /// Standard deviation of the noise, about, as a share.
    pub noise: f64,
    /// Every how many trials one fails; 0 for none.
    pub fail_every: usize,
    /// Channels that nothing changes, beside those with a meaning.
    pub idle_channels: usize,
    /// Whether the trials are judged once, after all pairs; else look after look.
    pub fixed: bool,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seed: 7,
            arms: 2,
            pairs: 20,
            effect: -0.08,
            by_clock: true,
            noise: 0.01,
            fail_every: 0,
            idle_channels: 4,
            fixed: false,
        }
    }
}

impl Recipe {
    /// The plan of the experiment that never ran.
    pub fn plan(&self) -> Plan {
        let arm = |index: usize| {
            let mut arm = match index {
                0 => Arm::new("balanced (made up)", "profile:balanced"),
                1 => Arm::new("performance", "profile:throughput-performance"),
                more => Arm::new(format!("arm {more}"), "set:vm.swappiness=10"),
            };
            if index > 0 {
                arm.settings.push(Setting {
                    what: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".into(),
                    from: Some("powersave".into()),
                    to: Some("performance".into()),
                });
            }
            arm
        };
        let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
        let command = vec!["made-up-workload".to_owned(), "--size".to_owned(), "big one".to_owned()];
        let mut plan = Plan::new(
            (0..self.arms).map(arm).collect(),
            command,
            metric,
            Better::Lower,
            self.seed,
            self.pairs.max(6),
        );
        if self.fixed {
            plan.rule = Rule::fixed(Better::Lower, self.seed, self.pairs);
        }
        plan.created_unix_s = 1_700_000_000;
        plan.sample_s = Some(1.0);
        plan
    }

    /// The trials of `plan`, as many blocks as the recipe's pairs take.
    pub fn trials(&self, plan: &Plan) -> Vec<Trial> {
        let mut noise = Noise(Rng::new(self.seed ^ 0x6d61_6465));
        let mut trials: Vec<Trial> = Vec::new();
        let mut started = 1_700_000_100.0;
        for index in 0.. {
            let block = plan.block(index, 0);
            if trials.len() / plan.arms.len().max(1) >= self.pairs || block.is_empty() {
                break;
            }
            for (place, arm) in block.into_iter().enumerate() {
                let mut trial = Trial::new(index, 0, place, arm, Status::Ok, None);
                trial.started_unix_s = started;
                self.run(&mut trial, trials.len(), arm + 1 == plan.arms.len(), &mut noise);
                started += trial.elapsed_s + 2.5;
                trials.push(trial);
            }
        }
        trials
    }

    fn run(&self, trial: &mut Trial, slot: usize, changed: bool, noise: &mut Noise) {
        let effect = if changed { 1.0 + self.effect } else { 1.0 };
        let drift = 1.0 + 0.0005 * real(slot);
        let jitter = 1.0 + self.noise * noise.next();
        let clock = 2.4e9 * (1.0 + 0.3 * self.noise * noise.next());
        let (clock, work) = if self.by_clock { (clock / effect, 1.0) } else { (clock, effect) };
        let share = 0.97 * (1.0 + 0.1 * self.noise * noise.next());
        let time = 2.4e10 * work * drift * jitter / (clock * share);
        trial.elapsed_s = time;
        trial.settled_s = 2.0 + noise.next().abs();
        trial.exit_code = Some(0);
        trial.metrics = numbers(time, share);
        trial.channels = BTreeMap::from([
            ("clock.mean".to_owned(), clock),
            ("cpu.usr".to_owned(), 100.0 * share),
            ("context.switches".to_owned(), 1_000.0 * (1.0 + 0.2 * noise.next().abs())),
            ("cpu.steal".to_owned(), 0.0),
        ]);
        for channel in 0..self.idle_channels {
            trial.channels.insert(format!("idle.{channel:03}"), 50.0 + 5.0 * noise.next());
        }
        if self.fail_every > 0 && slot % self.fail_every == self.fail_every - 1 {
            trial.status = Status::Failed;
            trial.exit_code = Some(1);
            trial.reason = Some("made up: exit code 1".to_owned());
            trial.metrics.clear();
        } else {
            trial.value = Some(time);
        }
    }

    /// What a sampler would have seen of one channel during `trial`, a point each second: its mean and some noise.
    pub fn points(&self, trial: &Trial, channel: &str, seconds: u32) -> Vec<(f64, Option<f64>)> {
        let mean = trial.channels.get(channel).copied();
        let slot = u64::from(trial.block) << 16 | u64::try_from(trial.place).unwrap_or(0);
        let name: u64 = channel.bytes().map(u64::from).sum();
        let mut noise = Noise(Rng::new(self.seed ^ slot << 20 ^ name));
        (0..seconds).map(|t| (f64::from(t), mean.map(|mean| mean * (1.0 + 0.05 * noise.next())))).collect()
    }
}

fn numbers(time: f64, share: f64) -> BTreeMap<String, Measure> {
    let lower = |value: f64, unit: &str| Measure { value, unit: unit.into(), better: Some(Better::Lower) };
    BTreeMap::from([
        ("time".to_owned(), lower(time, "s")),
        ("user".to_owned(), lower(time * share * 0.9, "s")),
        ("sys".to_owned(), lower(time * share * 0.1, "s")),
        ("maxrss".to_owned(), Measure { value: 5.0e7, unit: "B".into(), better: None }),
    ])
}

/// Bell-shaped noise of standard deviation 1 (the sum of twelve even draws).
struct Noise(Rng);

impl Noise {
    fn next(&mut self) -> f64 {
        let draw = |rng: &mut Rng| f64::from(rng.below(1 << 20)) / f64::from(1 << 20);
        (0..12).map(|_| draw(&mut self.0)).sum::<f64>() - 6.0
    }
}
