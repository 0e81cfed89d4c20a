//! The clock the maker promises under any load: what "full speed" is measured against.

use crate::{Facts, Observed, Reason};

impl Facts {
    /// The nominal (base, non-turbo) clock, kHz, from the best place that tells it: the cpufreq driver, ACPI's CPPC,
    /// the platform-information register, the model name, or the rate of the time-stamp counter, which counts at
    /// the nominal clock on every x86-64 server CPU of the last decade (Intel SDM vol. 3, "Invariant TSC"; AMD APM
    /// vol. 2, "Time-Stamp Counter") and is known only after a probe.
    pub fn nominal_khz(&self) -> Observed<u64> {
        let policies = self.cpu.frequency.policies.get().map(Vec::as_slice).unwrap_or_default();
        let driver = policies.iter().map(|policy| policy.base_khz.clone()).find(|base| base.get().is_some());
        let cppc = self.cpu.frequency.cppc.nominal_mhz.clone().parse(|mhz| match mhz {
            0 => Err("0 MHz".to_owned()),
            mhz => mhz.checked_mul(1000).ok_or_else(|| format!("{mhz} MHz")),
        });
        driver
            .unwrap_or(cppc)
            .or_else(|| self.register_nominal_khz())
            .or_else(|| self.cpu.model_name.clone().parse(|name| from_model_name(&name)))
            .or_else(|| self.tsc_khz())
    }

    fn register_nominal_khz(&self) -> Observed<u64> {
        const SOURCE: &str = "msr 0xce";
        let packages = self.msr.intel.get().map(Vec::as_slice).unwrap_or_default();
        match packages.iter().find_map(|package| package.base_mhz().filter(|mhz| *mhz > 0)) {
            Some(mhz) => Observed::known(SOURCE, mhz * 1000),
            None => Observed::unavailable(SOURCE, Reason::Absent),
        }
    }

    fn tsc_khz(&self) -> Observed<u64> {
        self.probe.clone().parse(|probe| match probe.tsc_khz.value() {
            Some(khz) => Ok(u64::from(*khz)),
            None => Err("the time-stamp counter's rate was not measured".to_owned()),
        })
    }
}

/// Intel wrote the clock into the name until 2020: `Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz`.
fn from_model_name(name: &str) -> Result<u64, String> {
    let ghz = name.rsplit_once("@ ").and_then(|(_, tail)| tail.trim().strip_suffix("GHz"));
    let (whole, part) = ghz.and_then(|ghz| ghz.split_once('.')).ok_or("the model name tells no clock")?;
    let bad = |_| "the model name tells no clock".to_owned();
    let (whole, hundredths): (u64, u64) = (whole.parse().map_err(bad)?, part.parse().map_err(bad)?);
    if part.len() != 2 || part.starts_with('+') || whole > 10 {
        return Err("the model name tells no clock".to_owned());
    }
    Ok(whole * 1_000_000 + hundredths * 10_000)
}

#[cfg(test)]
mod tests {
    use super::from_model_name;

    #[test]
    fn some_names_tell_the_clock() {
        assert_eq!(from_model_name("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz"), Ok(3_000_000));
        for other in ["AMD EPYC 7763 64-Core Processor", "x @ 2GHz", "x @ 99.00GHz", "x @ 2.+1GHz"] {
            assert!(from_model_name(other).is_err(), "{other}");
        }
    }
}
