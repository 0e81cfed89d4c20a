//! cpufreq: one policy per set of CPUs that share a clock (`Documentation/admin-guide/pm/cpufreq.rst`,
//! `intel_pstate.rst`, `amd-pstate.rst`, `intel_epb.rst`).
//!
//! The clock of this moment (`scaling_cur_freq`) is left out: asking for it wakes idle CPUs, and an idle CPU's clock
//! says nothing. The probe measures the clock under load.

use serde::Serialize;

use super::{CPU_DIR, Group, UncoreDomain, per_cpu, uncore};
use crate::{CpuSet, Observed, Reader, Reason, reader::join};

/// The clock and who steers it.
#[derive(Debug, Clone, Serialize)]
pub struct Frequency {
    /// All policies, by number. Empty when cpufreq is there but no driver took the CPUs.
    pub policies: Observed<Vec<Policy>>,
    /// `cpufreq/boost`: clocks above nominal allowed for all policies.
    pub boost: Observed<bool>,
    /// Intel's own driver.
    pub intel_pstate: IntelPstate,
    /// AMD's own driver.
    pub amd_pstate: AmdPstate,
    /// Intel's performance-energy bias, 0 (performance) to 15 (energy), by CPU.
    pub energy_perf_bias: Observed<Vec<Group<u32>>>,
    /// ACPI collaborative performance control of the first online CPU.
    pub cppc: Cppc,
    /// Uncore clock domains.
    pub uncore: Observed<Vec<UncoreDomain>>,
}

/// One frequency domain.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    /// N of `policyN`.
    pub number: u32,
    /// The online CPUs it covers.
    pub cpus: Observed<CpuSet>,
    /// `acpi-cpufreq`, `intel_pstate`, `amd-pstate-epp` …
    pub driver: Observed<String>,
    /// The governor in force.
    pub governor: Observed<String>,
    /// The governors that could be chosen.
    pub available_governors: Observed<Vec<String>>,
    /// The lowest clock the policy allows (`scaling_min_freq`), in kHz.
    pub min_khz: Observed<u64>,
    /// The highest clock the policy allows (`scaling_max_freq`), in kHz.
    pub max_khz: Observed<u64>,
    /// The lowest clock the driver knows (`cpuinfo_min_freq`), in kHz.
    pub hardware_min_khz: Observed<u64>,
    /// The highest clock the driver knows (`cpuinfo_max_freq`), in kHz. Whether it counts turbo depends on the driver.
    pub hardware_max_khz: Observed<u64>,
    /// The highest clock in the driver's table (`scaling_available_frequencies`), in kHz; turbo above it is not counted
    /// on AMD and shows as 1 MHz more on Intel (`drivers/cpufreq/acpi-cpufreq.c`). Only drivers with a table have it.
    pub table_max_khz: Observed<u64>,
    /// The clock that a person fixed (`scaling_setspeed`, only under the governor `userspace`), in kHz.
    pub fixed_khz: Observed<u64>,
    /// The guaranteed clock (`base_frequency`, only under intel_pstate with HWP), in kHz.
    pub base_khz: Observed<u64>,
    /// The clock the firmware allows now (ACPI `_PPC`, `bios_limit`, only under acpi-cpufreq), in kHz.
    pub bios_limit_khz: Observed<u64>,
    /// `energy_performance_preference`: a word, or a raw number.
    pub energy_performance_preference: Observed<String>,
    /// The words that could be chosen.
    pub available_preferences: Observed<Vec<String>>,
    /// Whether this policy may go above nominal (`boost`, formerly `cpb` of acpi-cpufreq on AMD).
    pub boost: Observed<bool>,
}

/// `intel_pstate`, absent elsewhere.
#[derive(Debug, Clone, Serialize)]
pub struct IntelPstate {
    /// `active`, `passive` or `off`.
    pub status: Observed<String>,
    /// Turbo switched off by hand, or by the firmware.
    pub no_turbo: Observed<bool>,
    /// Cap on the performance level, in per cent of the highest.
    pub max_perf_percent: Observed<u32>,
    /// Floor of the performance level, in per cent of the highest.
    pub min_perf_percent: Observed<u32>,
    /// Whether the kernel raises the HWP floor for tasks that wake from I/O.
    pub hwp_dynamic_boost: Observed<bool>,
}

/// `amd-pstate`, absent elsewhere.
#[derive(Debug, Clone, Serialize)]
pub struct AmdPstate {
    /// `active`, `passive`, `guided` or `disable`.
    pub status: Observed<String>,
    /// Whether the scheduler knows which cores are the fastest.
    pub preferred_cores: Observed<bool>,
}

/// What the firmware tells through the ACPI `_CPC` object; abstract performance units. Read of one CPU only, because
/// some ARM firmware answers each such read in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Cppc {
    /// The best this core ever does.
    pub highest_perf: Observed<u64>,
    /// What it holds under sustained load.
    pub nominal_perf: Observed<u64>,
    /// The clock at nominal performance, in MHz.
    pub nominal_mhz: Observed<u64>,
}

pub(super) fn observe(reader: &Reader<'_>, online: &CpuSet) -> Frequency {
    let dir = join(CPU_DIR, "cpufreq");
    let policies = reader
        .numbered(&dir, "policy")
        .map(|numbers| numbers.into_iter().filter_map(|number| policy(reader, &dir, number)).collect());
    Frequency {
        policies,
        boost: reader.flag(&join(&dir, "boost")),
        intel_pstate: intel_pstate(reader),
        amd_pstate: amd_pstate(reader),
        energy_perf_bias: per_cpu(online, |cpu| energy_perf_bias(reader, cpu)),
        cppc: cppc(reader, online.first().unwrap_or(0)),
        uncore: uncore::observe(reader),
    }
}

/// One policy; none when all its CPUs are offline: then it steers nothing, and every file says `EBUSY`
/// (`drivers/cpufreq/cpufreq.c`, `show`).
fn policy(reader: &Reader<'_>, dir: &str, number: u32) -> Option<Policy> {
    let dir = join(dir, format_args!("policy{number}"));
    let file = |name: &str| join(&dir, name);
    let khz =
        |name: &str| reader.number(&file(name)).unless(|khz: &u64| *khz == 0, "the driver does not know it");
    let cpus = reader.text(&file("affected_cpus"));
    if cpus.reason() == Some(&Reason::Failed("EBUSY".to_owned())) {
        return None;
    }
    let governor = reader.text(&file("scaling_governor"));
    Some(Policy {
        number,
        cpus: cpus.parse(|text| text.replace(' ', ",").parse()),
        driver: reader.text(&file("scaling_driver")),
        fixed_khz: fixed(reader, &file("scaling_setspeed"), governor.text()),
        governor,
        available_governors: reader.words(&file("scaling_available_governors")),
        min_khz: khz("scaling_min_freq"),
        max_khz: khz("scaling_max_freq"),
        hardware_min_khz: khz("cpuinfo_min_freq"),
        hardware_max_khz: khz("cpuinfo_max_freq"),
        table_max_khz: reader.text(&file("scaling_available_frequencies")).parse(|text| highest(&text)),
        base_khz: khz("base_frequency"),
        bios_limit_khz: khz("bios_limit"),
        energy_performance_preference: reader.text(&file("energy_performance_preference")),
        available_preferences: reader.words(&file("energy_performance_available_preferences")),
        boost: reader.flag(&file("boost")).or_else(|| reader.flag(&file("cpb"))),
    })
}

/// The highest of the numbers.
fn highest(text: &str) -> Result<u64, String> {
    let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    numbers.max().ok_or_else(|| "no frequency".to_owned())
}

/// Under any other governor the file says `<unsupported>`.
fn fixed(reader: &Reader<'_>, path: &str, governor: Option<&str>) -> Observed<u64> {
    match governor {
        Some("userspace") => reader.number(path),
        _ => Observed::unavailable(path, Reason::NotApplicable("the governor chooses the clock".into())),
    }
}

fn intel_pstate(reader: &Reader<'_>) -> IntelPstate {
    let file = |name: &str| join(CPU_DIR, format_args!("intel_pstate/{name}"));
    IntelPstate {
        status: reader.text(&file("status")),
        no_turbo: reader.flag(&file("no_turbo")),
        max_perf_percent: reader.number(&file("max_perf_pct")),
        min_perf_percent: reader.number(&file("min_perf_pct")),
        hwp_dynamic_boost: reader.flag(&file("hwp_dynamic_boost")),
    }
}

fn amd_pstate(reader: &Reader<'_>) -> AmdPstate {
    let file = |name: &str| join(CPU_DIR, format_args!("amd_pstate/{name}"));
    AmdPstate { status: reader.text(&file("status")), preferred_cores: reader.flag(&file("prefcore")) }
}

/// The file takes words and shows a number (`arch/x86/kernel/cpu/intel_epb.c`).
fn energy_perf_bias(reader: &Reader<'_>, cpu: u32) -> Observed<u32> {
    reader
        .number(&join(CPU_DIR, format_args!("cpu{cpu}/power/energy_perf_bias")))
        .parse(|bias| if bias <= 15 { Ok(bias) } else { Err(format!("{bias} is above 15")) })
}

fn cppc(reader: &Reader<'_>, cpu: u32) -> Cppc {
    let number = |name: &str| {
        let path = join(CPU_DIR, format_args!("cpu{cpu}/acpi_cppc/{name}"));
        reader.number(&path).unless(|value: &u64| *value == 0, "the firmware does not tell")
    };
    Cppc {
        highest_perf: number("highest_perf"),
        nominal_perf: number("nominal_perf"),
        nominal_mhz: number("nominal_freq"),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn a_policy_and_the_global_files() {
        let policy = "/sys/devices/system/cpu/cpufreq/policy4";
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            ("/sys/devices/system/cpu/cpu4/power/energy_perf_bias", "6\n"),
            ("/sys/devices/system/cpu/cpu5/power/energy_perf_bias", "99\n"),
            ("/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz", "2400000\n"),
        ])
        .file(&format!("{policy}/affected_cpus"), "4 5\n")
        .file(&format!("{policy}/scaling_max_freq"), "3700000\n")
        .file(&format!("{policy}/base_frequency"), "0\n")
        .file(&format!("{policy}/scaling_available_frequencies"), "800000 2700000 \n")
        .file(&format!("{policy}/scaling_governor"), "userspace\n")
        .file(&format!("{policy}/scaling_setspeed"), "800000\n")
        .file(&format!("{policy}/cpb"), "0\n")
        .file(&format!("{policy}/energy_performance_available_preferences"), "default performance \n");
        let host = host.unreadable("/sys/devices/system/cpu/cpufreq/policy6/affected_cpus", 16);
        let frequency = observe(&Reader::new(&host), &CpuSet::range(4..=5));
        assert_eq!(frequency.policies.get().unwrap().len(), 1, "CPU 6 is offline");
        let found = &frequency.policies.get().unwrap()[0];
        assert_eq!(found.cpus.get().unwrap().to_string(), "4-5");
        assert_eq!(found.max_khz.value(), Some(3_700_000));
        assert!(found.base_khz.get().is_none() && !found.base_khz.is_absent());
        assert_eq!((found.table_max_khz.value(), found.fixed_khz.value()), (Some(2_700_000), Some(800_000)));
        assert_eq!(found.boost.value(), Some(false));
        assert_eq!(found.available_preferences.get().unwrap().len(), 2);
        assert_eq!(frequency.energy_perf_bias.get().unwrap().len(), 2);
        assert_eq!(frequency.uncore.get().unwrap()[0].max_khz.value(), Some(2_400_000));
        assert!(frequency.amd_pstate.status.is_absent());
    }
}
