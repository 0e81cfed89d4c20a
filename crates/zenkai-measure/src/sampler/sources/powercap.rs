//! Energy from powercap (`Documentation/power/powercap/powercap.rst`): RAPL of Intel and AMD.
//!
//! Every domain has a channel of its own and they are never added up: a package contains its cores, and `psys` contains
//! the packages.

use crate::sampler::{
    Options,
    channel::{Channels, Wrap},
    source::{Cadence, Part, Source},
    template::{Digits, Line, Lines},
};

use super::{entries, word};

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "powercap", cadence: Cadence::Always, digits: Digits::Decimal, open, channels };

const DIR: &str = "/sys/class/powercap";

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let mut files = Vec::new();
    let zones = entries(DIR)?;
    for zone in &zones {
        // The same counters once more, by another way.
        if zone.starts_with("intel-rapl-mmio") {
            continue;
        }
        let Some(mut name) = word(&format!("{DIR}/{zone}/name")) else { continue };
        // `intel-rapl:0:1` lies inside `intel-rapl:0`.
        let inside = zone.rsplit_once(':').map(|(outer, _)| outer).filter(|outer| outer.contains(':'));
        if let Some(outer) = inside.and_then(|outer| word(&format!("{DIR}/{outer}/name"))) {
            name = format!("{outer}.{name}");
        }
        for file in ["energy_uj", "max_energy_range_uj"] {
            files.push((format!("{name}/{file}"), format!("{DIR}/{zone}/{file}")));
        }
    }
    if files.is_empty() {
        return Err(format!(
            "{DIR}: no energy counter; a hypervisor hides it, or a module (intel_rapl_msr) is missing"
        ));
    }
    Ok(Part::files(files))
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        let (Some(name), Some(energy)) = (line.section.strip_suffix("/energy_uj"), line.only()) else {
            continue;
        };
        let range = format!("{name}/max_energy_range_uj");
        let range = lines.lines.iter().find(|line| line.section == range).and_then(Line::only);
        let words = format!("power of {name}, as RAPL counts its energy");
        let rate = channels.rate(format!("energy.{name}"), "W", words, vec![energy], 1e-6);
        // A counter whose range nobody tells is not measured where it falls.
        if let Some(range) = range {
            rate.wraps(Wrap::After(range));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn a_counter_comes_round_at_its_range() {
        let text = |energy: u64| {
            format!("@package-0/energy_uj\n{energy}\n@package-0/max_energy_range_uj\n262143328850\n")
        };
        let values = between(&SOURCE, &text(262_093_328_850), &text(50_000_000), 2.0);
        assert_eq!(values["energy.package-0"], Some(50.0));
    }

    #[test]
    fn what_root_alone_may_read_is_missing_and_not_zero() {
        let text =
            "@package-0/energy_uj\n!Permission denied (os error 13)\n@package-0/max_energy_range_uj\n5\n";
        assert!(between(&SOURCE, text, text, 1.0).is_empty());
    }
}
