//! `rtentsk`: keeps the kernel from patching itself when time stamping of packets is switched on.

use super::{OptionSpec, Plugin, Wishes};
use crate::{Hold, Instance, Scene};

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
    wishes.hold(&instance.unit_option(), "", Hold::Timestamping);
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn it_is_held() {
        assert_eq!(Bench::new("rtentsk", &[("/x", "")]).plan(&[]).lines(), "hold: Timestamping\n");
    }
}
