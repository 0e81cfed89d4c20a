//! What depends on which CPUs and packages the machine has.

use std::collections::BTreeMap;

use zenkai_facts::CpuSet;

use super::{Answer, Functions, Refusal, python_int, unexpanded};
use crate::profile::glob::fnmatch;

const CPUS: &str = "/sys/devices/system/cpu";
const UNCORES: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// The numbers of the CPUs the kernel has directories for, ascending.
fn cpus(on: &Functions<'_>) -> Result<CpuSet, Refusal> {
    let entries = on.host.list(CPUS).map_err(|error| Refusal::Unexpanded(format!("{CPUS}: {error}")))?;
    Ok(entries.iter().filter_map(|entry| entry.name.strip_prefix("cpu")?.parse::<u32>().ok()).collect())
}

/// The package of a CPU; none for a CPU that is offline.
fn package(on: &Functions<'_>, cpu: u32) -> Option<i64> {
    python_int(&on.text(&format!("{CPUS}/cpu{cpu}/topology/physical_package_id")).ok()?)
}

/// All but the first N CPUs of every package.
pub(super) fn calc_isolated_cores(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    let reserved = match arguments.first() {
        None => 1,
        Some(text) => match text.parse::<usize>() {
            Ok(number) => number,
            Err(_) => return unexpanded(format!("`{text}` is no number of cores")),
        },
    };
    let mut packages: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for cpu in cpus(on)?.iter() {
        // Some hypervisors show package -1.
        if let Some(package) = package(on, cpu).filter(|package| *package >= 0) {
            packages.entry(package).or_default().push(cpu);
        }
    }
    let isolated: CpuSet = packages.into_values().flat_map(|cpus| cpus.into_iter().skip(reserved)).collect();
    Ok(isolated.to_string())
}

/// The number itself, or the number of CPUs when it is none.
pub(super) fn check_net_queue_count(
    on: &Functions<'_>,
    arguments: &[String],
    notes: &mut Vec<String>,
) -> Answer {
    let text = arguments.concat();
    if !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit()) {
        return Ok(text);
    }
    let online: CpuSet = on.text(&format!("{CPUS}/online"))?.parse().map_err(Refusal::Unexpanded)?;
    notes.push(format!("`{text}` is no number of queues; taken as {}, the CPUs online", online.len()));
    Ok(online.len().to_string())
}

pub(super) fn package2cpus(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    let mut found = Vec::new();
    for cpu in cpus(on)?.iter() {
        if let Some(package) = package(on, cpu)
            && arguments.iter().any(|wanted| is_package(wanted, package, &package.to_string()))
        {
            found.push(format!("cpu{cpu}"));
        }
    }
    join(&found)
}

/// Names under `intel_uncore_frequency`: `uncoreNN` with a file `package_id` where the TPMI driver is used, else
/// `package_NN_die_NN` (`Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst`).
pub(super) fn package2uncores(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    let entries =
        on.host.list(UNCORES).map_err(|error| Refusal::Unexpanded(format!("{UNCORES}: {error}")))?;
    let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    let by_file = names.iter().any(|name| name.starts_with("uncore"));
    let mut found = Vec::new();
    for name in names {
        let text = if by_file {
            on.text(&format!("{UNCORES}/{name}/package_id")).ok()
        } else {
            name.strip_prefix("package_").and_then(|rest| rest.split('_').next()).map(str::to_owned)
        };
        if let Some(text) = text
            && let Some(package) = python_int(&text)
            && arguments.iter().any(|wanted| is_package(wanted, package, &text))
        {
            found.push(name);
        }
    }
    join(&found)
}

/// A package is asked for by number or by pattern.
fn is_package(wanted: &str, package: i64, text: &str) -> bool {
    python_int(wanted).map_or_else(|| fnmatch(text, wanted), |number| number == package)
}

fn join(names: &[String]) -> Answer {
    if names.is_empty() { unexpanded("this machine has no such package") } else { Ok(names.join(",")) }
}

/// Generations before Ice Lake, where the active mode of `intel_pstate` brings jitter; the kernel's PMU driver names
/// the generation (`arch/x86/events/intel/core.c`).
pub(super) fn intel_recommended_pstate(on: &Functions<'_>, _: &[String], _: &mut Vec<String>) -> Answer {
    const OLDER: [&str; 5] = ["sandybridge", "ivybridge", "haswell", "broadwell", "skylake"];
    let name = on.text("/sys/devices/cpu/caps/pmu_name").unwrap_or_default();
    let older = name.is_empty() || OLDER.contains(&name.as_str());
    Ok(if older { "disable" } else { "active" }.to_owned())
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::profile::functions::testing::call;

    fn two_sockets() -> FakeHost {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-5\n"),
            ("/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz", "1\n"),
            ("/sys/devices/system/cpu/intel_uncore_frequency/package_01_die_00/max_freq_khz", "1\n"),
            ("/sys/devices/cpu/caps/pmu_name", "icelake\n"),
        ]);
        (0..6).fold(host, |host, cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            host.file(&path, &format!("{}\n", cpu / 3))
        })
    }

    #[test]
    fn cores_and_packages() {
        for (text, wanted) in [
            ("calc_isolated_cores", "1-2,4-5"),
            ("calc_isolated_cores:2", "2,5"),
            ("calc_isolated_cores:9", ""),
            ("calc_isolated_cores:-1", "!function `calc_isolated_cores`: `-1` is no number of cores"),
            ("check_net_queue_count:4", "4"),
            ("check_net_queue_count:${n}", "6"),
            ("package2cpus:1", "cpu3,cpu4,cpu5"),
            ("package2cpus:[01]", "cpu0,cpu1,cpu2,cpu3,cpu4,cpu5"),
            ("package2cpus:7", "!function `package2cpus`: this machine has no such package"),
            ("package2uncores:0", "package_00_die_00"),
            ("package2uncores:*", "package_00_die_00,package_01_die_00"),
            ("intel_recommended_pstate", "active"),
        ] {
            assert_eq!(call(&two_sockets(), None, text), wanted, "{text}");
        }
        assert_eq!(call(&FakeHost::new(&[]), None, "intel_recommended_pstate"), "disable");
    }
}
