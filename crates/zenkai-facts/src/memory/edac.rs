//! Error counts of memory controllers with ECC.

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

/// One memory controller (`Documentation/ABI/testing/sysfs-devices-edac`).
#[derive(Debug, Clone, Serialize)]
pub struct EdacController {
    /// N of `mcN`.
    pub number: u32,
    /// What the driver calls it.
    pub name: Observed<String>,
    /// Errors that ECC corrected, since the counters were reset.
    pub corrected: Observed<u64>,
    /// Errors it could not correct.
    pub uncorrected: Observed<u64>,
    /// How long ago the counters were reset, in seconds.
    pub counted_for_seconds: Observed<u64>,
    /// Modules that show errors.
    pub modules_with_errors: Vec<EdacModule>,
}

/// One memory module with errors.
#[derive(Debug, Clone, Serialize)]
pub struct EdacModule {
    /// `dimmN`, or `rankN` where the driver cannot tell modules apart.
    pub name: String,
    /// The slot, if somebody told the driver the board's labels.
    pub label: Observed<String>,
    /// Corrected errors.
    pub corrected: Observed<u64>,
    /// Errors it could not correct.
    pub uncorrected: Observed<u64>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Vec<EdacController>> {
    const DIR: &str = "/sys/devices/system/edac/mc";
    reader.numbered(DIR, "mc").map(|numbers| {
        numbers
            .into_iter()
            .map(|number| controller(reader, &join(DIR, format_args!("mc{number}")), number))
            .collect()
    })
}

fn controller(reader: &Reader<'_>, dir: &str, number: u32) -> EdacController {
    let path = |name: &str| join(dir, name);
    let corrected = reader.number::<u64>(&path("ce_count"));
    let uncorrected = reader.number::<u64>(&path("ue_count"));
    let clean = |count: &Observed<u64>| count.value() == Some(0);
    // A machine may have a hundred modules; they are only of interest when something happened.
    let modules_with_errors =
        if clean(&corrected) && clean(&uncorrected) { Vec::new() } else { modules(reader, dir) };
    EdacController {
        number,
        name: reader.text(&path("mc_name")),
        corrected,
        uncorrected,
        counted_for_seconds: reader.number(&path("seconds_since_reset")),
        modules_with_errors,
    }
}

fn modules(reader: &Reader<'_>, dir: &str) -> Vec<EdacModule> {
    let names = reader.names(dir);
    let is_module = |name: &&String| name.starts_with("dimm") || name.starts_with("rank");
    let modules = names.get().into_iter().flatten().filter(is_module).map(|name| {
        let path = |file: &str| join(dir, format_args!("{name}/{file}"));
        EdacModule {
            name: name.clone(),
            corrected: reader.number(&path("dimm_ce_count")),
            uncorrected: reader.number(&path("dimm_ue_count")),
            label: reader.text(&path("dimm_label")),
        }
    });
    let failing = |count: &Observed<u64>| count.value().is_some_and(|count| count > 0);
    modules.filter(|module| failing(&module.corrected) || failing(&module.uncorrected)).collect()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn only_failing_modules_are_named() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/edac/mc/mc0/ce_count", "7\n"),
            ("/sys/devices/system/edac/mc/mc0/ue_count", "0\n"),
            ("/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count", "0\n"),
            ("/sys/devices/system/edac/mc/mc0/dimm1/dimm_ce_count", "7\n"),
            ("/sys/devices/system/edac/mc/mc0/dimm1/dimm_label", "CPU_SrcID#0_MC#0_Chan#0_DIMM#0\n"),
            ("/sys/devices/system/edac/mc/mc1/ce_count", "0\n"),
            ("/sys/devices/system/edac/mc/mc1/ue_count", "0\n"),
        ]);
        let controllers = observe(&Reader::new(&host));
        let controllers = controllers.get().unwrap();
        let names: Vec<_> =
            controllers[0].modules_with_errors.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["dimm1"]);
        assert!(controllers[1].modules_with_errors.is_empty());
    }
}
