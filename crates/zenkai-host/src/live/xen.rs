//! What only the Xen hypervisor has, through `xenpm` of xen-utils: the hypercalls behind it change with each version of
//! Xen, the program does not.

use std::io;

use rustix::io::Errno;

use super::run::output_of;
use crate::{Reply, Value};

/// The value of `governor`, `min-frequency` (kHz) or `max-cstate`.
///
/// The first two are one word when all processors agree and `0:WORD 1:WORD …` otherwise, so that each gets its own value
/// back. `max-cstate` is a number, or `unlimited`.
pub(super) fn value(name: &str) -> io::Result<Reply> {
    let text = match name {
        "governor" => per_cpu(&output_of(&["xenpm", "get-cpufreq-para"])?, governor),
        "min-frequency" => per_cpu(&output_of(&["xenpm", "get-cpufreq-para"])?, min_frequency),
        "max-cstate" => max_cstate(&output_of(&["xenpm", "get-cpuidle-states"])?),
        _ => return Err(Errno::INVAL.into()),
    };
    text.map(Reply::Text).ok_or_else(|| Errno::OPNOTSUPP.into())
}

/// Sets what [`value`] shows.
pub(super) fn set(name: &str, value: &Value) -> io::Result<()> {
    let command = match name {
        "governor" => "set-scaling-governor",
        "min-frequency" => "set-scaling-minfreq",
        "max-cstate" => "set-max-cstate",
        _ => return Err(Errno::INVAL.into()),
    };
    for (cpu, word) in assignments(value.text().ok_or(Errno::INVAL)?)? {
        match cpu {
            Some(cpu) => output_of(&["xenpm", command, cpu, word])?,
            None => output_of(&["xenpm", command, word])?,
        };
    }
    Ok(())
}

/// `WORD` for all processors, or `CPU:WORD` for each.
fn assignments(text: &str) -> io::Result<Vec<(Option<&str>, &str)>> {
    let plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut list = Vec::new();
    for word in text.split_whitespace() {
        let (cpu, word) = word.split_once(':').map_or((None, word), |(cpu, word)| (Some(cpu), word));
        if !plain(word) || cpu.is_some_and(|cpu| cpu.parse::<u32>().is_err()) {
            return Err(Errno::INVAL.into());
        }
        list.push((cpu, word));
    }
    if list.is_empty() || (list.len() > 1 && list.iter().any(|(cpu, _)| cpu.is_none())) {
        return Err(Errno::INVAL.into());
    }
    Ok(list)
}

/// One value for each `cpu id` block of `xenpm get-cpufreq-para`; `None` when a block lacks it, as with a driver that
/// leaves the frequency to the hardware.
fn per_cpu(text: &str, value: fn(&str) -> Option<&str>) -> Option<String> {
    let mut cpus: Vec<(&str, Option<&str>)> = Vec::new();
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        if key.trim() == "cpu id" {
            cpus.push((rest.trim(), None));
        } else if let (Some(found), Some((_, slot))) = (value(line), cpus.last_mut()) {
            *slot = Some(found);
        }
    }
    let cpus: Vec<(&str, &str)> =
        cpus.into_iter().map(|(cpu, found)| Some((cpu, found?))).collect::<Option<_>>()?;
    let (_, first) = cpus.first()?;
    if cpus.iter().all(|(_, found)| found == first) {
        return Some((*first).to_owned());
    }
    Some(cpus.iter().map(|(cpu, found)| format!("{cpu}:{found}")).collect::<Vec<_>>().join(" "))
}

fn governor(line: &str) -> Option<&str> {
    field(line, "current_governor")
}

/// Of `max [3000000] min [1200000] cur [1200000]`.
fn min_frequency(line: &str) -> Option<&str> {
    let (_, rest) = field(line, "scaling frequency")?.split_once("min [")?;
    rest.split_once(']').map(|(number, _)| number)
}

fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (key, rest) = line.split_once(':')?;
    (key.trim() == name).then(|| rest.trim())
}

/// Older versions of Xen call it `Max possible C-state`.
fn max_cstate(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        if line.starts_with("All C-states allowed") {
            return Some("unlimited".to_owned());
        }
        let number = field(line, "Max C-state").or_else(|| field(line, "Max possible C-state"))?;
        let number: u32 = number.strip_prefix('C')?.parse().ok()?;
        Some(number.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xenpm_prints() {
        let block = |cpu: u32, governor: &str| {
            format!(
                "cpu id               : {cpu}\nscaling_avail_gov    : userspace performance\n\
                 current_governor     : {governor}\n\
                 scaling frequency    : max [3000000] min [1200000] cur [2000000]\n\n"
            )
        };
        let same = block(0, "performance") + &block(1, "performance");
        assert_eq!(per_cpu(&same, governor).unwrap(), "performance");
        assert_eq!(per_cpu(&same, min_frequency).unwrap(), "1200000");
        let mixed = block(0, "performance") + &block(2, "ondemand");
        assert_eq!(per_cpu(&mixed, governor).unwrap(), "0:performance 2:ondemand");
        assert_eq!(per_cpu("cpu id               : 0\nscaling_driver : hwp\n", governor), None);
        assert_eq!(per_cpu("", governor), None);
        assert_eq!(max_cstate("Max C-state: C1\nMax C-substate: 0\n").unwrap(), "1");
        assert_eq!(max_cstate("Max possible C-state: C7\n\n").unwrap(), "7");
        assert_eq!(max_cstate("All C-states allowed\n").unwrap(), "unlimited");
        assert_eq!(max_cstate("xenpm: no\n"), None);
    }

    #[test]
    fn only_plain_words_reach_xenpm() {
        assert_eq!(assignments("performance").unwrap(), [(None, "performance")]);
        assert_eq!(assignments("0:a 1:b").unwrap(), [(Some("0"), "a"), (Some("1"), "b")]);
        for text in ["", "a b", "x:a", "-h", "0:"] {
            assert!(assignments(text).is_err(), "{text}");
        }
    }
}
