//! `rtentsk`: keeps the kernel from patching itself when time stamping of packets is switched on.

use super::{OptionSpec, Plugin, Wishes};
use crate::{Hold, Instance, OptionText, Scene, profile::Origin};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "rtentsk",
    summary: "Keeps a time-stamping socket open, so that no CPU is stopped when the first one is opened",
    options: NONE,
    devices: None,
    plan,
};

const NONE: &[OptionSpec] = &[];

/// `net_enable_timestamp()` flips a static key, which interrupts every CPU once: the socket keeps it flipped.
fn plan(_: &Scene, instance: &Instance, wishes: &mut Wishes) {
    // A unit without options has no line of its own that we could name.
    let unit = OptionText {
        name: String::new(),
        value: String::new(),
        origin: Origin::Line { file: format!("[{}]", instance.name), line: 1 },
    };
    wishes.hold(instance.options.first().unwrap_or(&unit), "", Hold::Timestamping);
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn it_is_held() {
        assert_eq!(Bench::new("rtentsk", &[("/x", "")]).plan(&[]).lines(), "hold: Timestamping\n");
    }
}
