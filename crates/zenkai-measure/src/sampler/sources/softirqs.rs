//! `/proc/softirqs` (`fs/proc/softirqs.c`): software interrupts by kind, and how they spread over the CPUs.

use crate::sampler::{
    source::{Cadence, Source, one_file},
    template::Digits,
};

use super::interrupts::by_line;

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "softirqs",
    cadence: Cadence::Slow,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/softirqs"),
    channels: |lines, channels| by_line(lines, "softirqs", "software interrupts", channels),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn by_kind() {
        let text =
            |count: u32| format!("          CPU0  CPU1\n  NET_RX:  {count}  5\n  TIMER:  {count}  {count}\n");
        let values = between(&SOURCE, &text(0), &text(8), 2.0);
        assert_eq!((values["softirqs.net_rx"], values["softirqs.cpu0"]), (Some(4.0), Some(8.0)));
    }
}
