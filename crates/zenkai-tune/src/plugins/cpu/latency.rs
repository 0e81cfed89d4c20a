//! `force_latency`: how slow the deepest idle state may be to wake up from.

use super::CPUS;
use crate::{Fault, Hold, OptionText, Scene, Want, plugins::Wishes};

/// One alternative of the option.
enum Asked {
    /// Microseconds.
    Latency(u32),
    /// Leave it alone.
    Nothing,
    /// The machine has no such idle state.
    NoState,
    /// It makes no sense.
    Nonsense,
}

pub(super) fn force(scene: &Scene, option: &OptionText, wishes: &mut Wishes) {
    let mut nonsense = None;
    for word in option.value.split('|').map(str::trim) {
        match understand(scene, word) {
            Asked::Latency(latency_us) => {
                wishes.hold(option, "", Hold::CpuDmaLatency { latency_us });
                return;
            }
            Asked::Nothing => {
                wishes.want(option, "", Want::Leave("the profile asks for no limit".into()));
                return;
            }
            Asked::NoState => {}
            Asked::Nonsense => nonsense = Some(word),
        }
    }
    match nonsense {
        Some(word) => wishes.cannot(option, "", Fault::Profile, format!("`{word}` is no latency")),
        None => wishes.cannot(option, "", Fault::Machine, "no such idle state"),
    };
}

fn understand(scene: &Scene, word: &str) -> Asked {
    // The kernel takes a signed number (kernel/power/qos.c).
    if let Ok(number) = word.parse::<i32>() {
        return u32::try_from(number).map_or(Asked::Nonsense, Asked::Latency);
    }
    if word == "none" || word == "None" {
        return Asked::Nothing;
    }
    let Some((kind, wanted)) = word.split_once(':') else { return Asked::Nonsense };
    let (kind, no_zero) = kind.strip_suffix("_no_zero").map_or((kind, false), |kind| (kind, true));
    let state = match kind {
        "cstate.id" => match wanted.trim().parse::<u32>() {
            Ok(number) => Some(format!("state{number}")),
            Err(_) => return Asked::Nonsense,
        },
        "cstate.name" => scene.names(&format!("{CPUS}/cpu0/cpuidle")).into_iter().find(|state| {
            scene.text(&format!("{CPUS}/cpu0/cpuidle/{state}/name")).as_deref() == Some(wanted)
        }),
        _ => return Asked::Nonsense,
    };
    let latency = state.and_then(|state| scene.text(&format!("{CPUS}/cpu0/cpuidle/{state}/latency")));
    match latency.and_then(|text| text.parse::<u32>().ok()) {
        Some(0) if no_zero => Asked::NoState,
        Some(latency) => Asked::Latency(latency),
        None => Asked::NoState,
    }
}
