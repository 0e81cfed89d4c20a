//! The clock at which the CPUs really ran.
//!
//! Best from APERF and MPERF, which count while a CPU is not idle, at the actual and at a fixed clock (Intel SDM
//! vol. 3, "Hardware Feedback"; AMD APM vol. 2, "Effective Frequency"). MPERF advances as the time stamp counter does,
//! so that counter's advance per second makes hertz of the quotient. Else what cpufreq says of the moment.

use crate::sampler::{
    Options,
    channel::{Channels, Rule},
    source::{Cadence, Part, Source},
    template::{Column, Digits, Lines},
};

use super::{CPUS, cpus};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "clock",
    // Reading registers interrupts every CPU.
    cadence: Cadence::Second,
    digits: Digits::Decimal,
    open,
    channels,
};

/// `arch/x86/include/asm/msr-index.h`.
const REGISTERS: [(&str, u32); 3] = [("aperf", 0xe8), ("mperf", 0xe7), ("tsc", 0x10)];

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let cpus = cpus()?;
    let registers: Result<Vec<Part>, String> =
        cpus.iter().map(|&cpu| Part::registers(cpu, &REGISTERS)).collect();
    let reason = match registers {
        Ok(parts) if !parts.is_empty() => return Ok(parts),
        Ok(_) => "no CPU".to_owned(),
        Err(reason) => reason,
    };
    let path = |cpu: usize| format!("{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq");
    // One that cannot be read now will not be later.
    let first = cpus.first().copied().unwrap_or(0);
    Part::file("", &path(first)).map_err(|other| format!("{reason}; {other}"))?;
    Ok(Part::files(cpus.iter().map(|&cpu| (format!("cpu{cpu}"), path(cpu))).collect()))
}

fn channels(lines: &Lines, channels: &mut Channels) {
    let mut now: Vec<(&str, Column)> = Vec::new();
    for line in &lines.lines {
        now.extend(line.only().map(|column| (line.section, column)));
    }
    for &(cpu, column) in &now {
        channels.level(
            format!("clock.{cpu}"),
            "Hz",
            format!("clock of {cpu}, as cpufreq says"),
            column,
            1000.0,
        );
    }
    if !now.is_empty() {
        let plus: Vec<Column> = now.iter().map(|&(_, column)| column).collect();
        let factor = 1000.0 / crate::to_f64(u64::try_from(plus.len()).unwrap_or(1));
        let rule = Rule::Level { plus, minus: Vec::new() };
        channels.by("clock.mean", "Hz", "clock, mean of the CPUs as cpufreq says", rule, factor);
    }
    registers(lines, channels);
}

/// Three lines a CPU.
fn registers(lines: &Lines, channels: &mut Channels) {
    let find = |cpu: &str, name: &str| {
        lines.lines.iter().find(|line| line.section == cpu && line.label() == Some(name))?.named(name)
    };
    for line in lines.lines.iter().filter(|line| line.label() == Some("aperf")) {
        let cpu = line.section;
        let (Some(busy), Some(fixed), Some(ticks)) =
            (find(cpu, "aperf"), find(cpu, "mperf"), find(cpu, "tsc"))
        else {
            continue;
        };
        let rule = Rule::Clock { busy, fixed, ticks };
        channels.by(format!("clock.{cpu}"), "Hz", format!("clock of {cpu} while not idle"), rule, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn from_registers() {
        let values = between(
            &SOURCE,
            "@cpu0\naperf 0\nmperf 0\ntsc 0\n",
            "@cpu0\naperf 3000000000\nmperf 2000000000\ntsc 4000000000\n",
            2.0,
        );
        assert_eq!(values["clock.cpu0"], Some(3e9));
    }

    #[test]
    fn from_cpufreq() {
        let text = "@cpu0\n2000000\n@cpu1\n1000000\n@cpu2\n!No such device (os error 19)\n";
        let values = between(&SOURCE, text, text, 1.0);
        assert_eq!((values["clock.cpu0"], values["clock.mean"]), (Some(2e9), Some(1.5e9)));
        assert!(!values.contains_key("clock.cpu2"));
    }
}
