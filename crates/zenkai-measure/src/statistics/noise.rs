//! Noise of machines, simulated: the eight models of the calibration, as log of the metric over the trials.

use super::rng::Rng;

pub(crate) const MODELS: [Model; 8] = [
    Model { name: "iid", make: independent },
    Model { name: "drift", make: drift },
    Model { name: "ar1", make: ar1 },
    Model { name: "bimodal", make: bimodal },
    Model { name: "heavy", make: heavy },
    Model { name: "periodic", make: periodic },
    Model { name: "warmup", make: warmup },
    Model { name: "order", make: second_faster },
];

pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&mut Rng, usize) -> Vec<f64>,
}

/// Evenly in (0, 1).
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (f64::from(u32::try_from(rng.bits() >> 32).unwrap()) + 0.5) / 4_294_967_296.0
}

/// Standard normal (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * libm::log(uniform(rng))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * uniform(rng))
}

fn coin(rng: &mut Rng) -> bool {
    rng.below(2) == 1
}

fn each(slots: usize, mut value: impl FnMut(f64) -> f64) -> Vec<f64> {
    (0..slots).map(|slot| value(super::real(slot))).collect()
}

/// Lognormal, 3 %.
fn independent(rng: &mut Rng, slots: usize) -> Vec<f64> {
    each(slots, |_| 0.03 * normal(rng))
}

/// 2 % and a straight drift of 0.1 % per trial, up or down.
fn drift(rng: &mut Rng, slots: usize) -> Vec<f64> {
    let sign = if coin(rng) { 1.0 } else { -1.0 };
    each(slots, |slot| 0.02 * normal(rng) + sign * 0.001 * slot)
}

/// A first-order autoregression of 3 % with a memory of 0.9, and 1 %.
fn ar1(rng: &mut Rng, slots: usize) -> Vec<f64> {
    let mut state = 0.03 * normal(rng);
    each(slots, |slot| {
        if slot > 0.0 {
            state = 0.9 * state + 0.03 * (1.0_f64 - 0.81).sqrt() * normal(rng);
        }
        state + 0.01 * normal(rng)
    })
}

/// Two states 8 % apart that change every ten trials on average, and 1 %.
fn bimodal(rng: &mut Rng, slots: usize) -> Vec<f64> {
    let mut slow = coin(rng);
    each(slots, |slot| {
        if slot > 0.0 && uniform(rng) < 0.1 {
            slow = !slow;
        }
        if slow { 0.08 + 0.01 * normal(rng) } else { 0.01 * normal(rng) }
    })
}

/// 1.5 %, and one trial in ten delayed by 15 % on average.
fn heavy(rng: &mut Rng, slots: usize) -> Vec<f64> {
    each(slots, |_| {
        let delay = if uniform(rng) < 0.1 { -0.15 * libm::log(uniform(rng)) } else { 0.0 };
        0.015 * normal(rng) + delay
    })
}

/// 1.5 %, and every fourth trial 5 % slower.
fn periodic(rng: &mut Rng, slots: usize) -> Vec<f64> {
    let phase = f64::from(rng.below(4));
    each(slots, |slot| 0.015 * normal(rng) + if (slot + phase) % 4.0 < 0.5 { 0.05 } else { 0.0 })
}

/// 2 %, and a cold start of 10 % that fades with a time constant of five trials.
fn warmup(rng: &mut Rng, slots: usize) -> Vec<f64> {
    each(slots, |slot| 0.02 * normal(rng) + 0.10 * libm::exp(-slot / 5.0))
}

/// 1.5 %, and every second trial 2 % faster whatever runs.
fn second_faster(rng: &mut Rng, slots: usize) -> Vec<f64> {
    each(slots, |slot| 0.015 * normal(rng) - if slot % 2.0 > 0.5 { 0.02 } else { 0.0 })
}
