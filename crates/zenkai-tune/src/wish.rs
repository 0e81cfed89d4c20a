//! What a plugin wants, before anybody looked whether it is so already.

use serde::{Deserialize, Serialize};
use zenkai_host::{Act, Knob, Value};

use crate::profile::Origin;

/// One thing that a profile, a remedy or the user wants of the machine, with where that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Where it comes from.
    pub origin: Origin,
    /// The unit of the profile, or empty.
    pub unit: String,
    /// The plugin, or empty.
    pub plugin: String,
    /// The plugin's option, or empty.
    pub option: String,
    /// The device it is for, when the plugin has devices.
    pub device: Option<String>,
    /// The value as the profile has it, expanded.
    pub asked: String,
    /// What is wanted.
    pub want: Want,
    /// What it may cost or break, in a few words.
    pub risk: Option<String>,
}

impl Wish {
    /// What no profile but a command asks for.
    pub fn by_hand(want: Want, asked: &str) -> Self {
        Self {
            origin: Origin::CommandLine,
            unit: String::new(),
            plugin: String::new(),
            option: String::new(),
            device: None,
            asked: asked.to_owned(),
            want,
            risk: None,
        }
    }
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// A value on a knob.
    Set {
        /// The knob.
        knob: Knob,
        /// The value; nothing is written when the knob shows it already.
        to: Value,
        /// When it acts.
        when: When,
    },
    /// One of several values on a knob is good enough (`a|b` in a profile): the first that the kernel takes is set,
    /// and any of them counts as right.
    SetFirst {
        /// The knob.
        knob: Knob,
        /// The values, best first.
        choices: Vec<String>,
    },
    /// Something that is run.
    Run {
        /// What is run to apply.
        act: Act,
        /// What is run to undo; `None` when nothing needs to be.
        undo: Option<Act>,
        /// What is run to verify; it exits with 0 when all is as wanted.
        verify: Option<Act>,
    },
    /// Something that only a living process can hold.
    Hold(Hold),
    /// It is right as it is; there is nothing to write, and the reason why is worth showing.
    Leave(String),
    /// It cannot act here.
    Cannot {
        /// Why, in a few words.
        why: String,
        /// Whose fault that is.
        fault: Fault,
    },
}

/// When a change acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At once.
    Now,
    /// After the next boot.
    AfterReboot,
}

/// Why a wish cannot act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// This machine does not have it; nothing is wrong.
    Machine,
    /// The profile is wrong: an unknown plugin or option, a value that makes no sense.
    Profile,
    /// We may not look, or the answer could not be understood.
    Reading,
}

/// What only a living process can hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// `/dev/cpu_dma_latency` kept open with this latency in microseconds (Documentation/power/pm_qos_interface).
    CpuDmaLatency {
        /// Largest wake-up latency allowed.
        latency_us: u32,
    },
    /// A socket with `SO_TIMESTAMPING` kept open, so that the kernel does not patch itself when another is opened.
    Timestamping,
    /// New tasks are given policy and affinity as they appear.
    Scheduler,
    /// The option changes with the load.
    Dynamic,
    /// Devices that appear later are tuned too.
    HotPlug,
}
