//! `/proc/pressure/*` (`Documentation/accounting/psi.rst`): the share of time in which somebody had to wait.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Part, Source},
    template::{Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "pressure",
    // The kernel adds up all CPUs for each of the files.
    cadence: Cadence::Odd,
    digits: Digits::Decimal,
    open: |_| {
        let part = |what: &str| Part::file(what, &format!("/proc/pressure/{what}"));
        // The last is there since Linux 6.1 and with CONFIG_IRQ_TIME_ACCOUNTING only.
        let mut parts = vec![part("cpu")?, part("io")?, part("memory")?];
        parts.extend(part("irq"));
        Ok(parts)
    },
    channels: |lines, channels| channels_of(lines, "pressure", "threads", channels),
};

/// The channels of pressure files whose section is what was waited for. `whose` names those who waited.
pub(super) fn channels_of(lines: &Lines, group: &str, whose: &str, channels: &mut Channels) {
    for line in &lines.lines {
        let what = line.section.trim_end_matches(".pressure");
        let (Some(kind), Some(total)) = (line.label(), line.named("total")) else { continue };
        let who = match kind {
            "some" => format!("some {whose}"),
            // For the whole machine that is always zero: somebody else runs then.
            "full" if what == "cpu" && group == "pressure" => continue,
            "full" => format!("all {whose} at once"),
            _ => continue,
        };
        let words = format!("share of time in which {who} waited for {what}");
        channels.rate(format!("{group}.{what}.{kind}"), "1", words, vec![total], 1e-6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn only_the_total_counts() {
        let text = |total: u32, average: &str| {
            format!(
                "@cpu\nsome avg10={average} avg60=0.00 avg300=0.00 total={total}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n\
                 @io\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"
            )
        };
        let values = between(&SOURCE, &text(1_000_000, "0.00"), &text(2_000_000, "12.25"), 4.0);
        assert_eq!(values["pressure.cpu.some"], Some(0.25));
        assert_eq!(values["pressure.io.full"], Some(0.25));
        assert!(!values.contains_key("pressure.cpu.full"));
    }
}
