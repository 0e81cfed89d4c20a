//! Memory errors.

use zenkai_facts::{
    Facts,
    memory::{EdacController, EdacModule},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-ecc-errors",
    subsystem: Subsystem::Memory,
    summary: "memory modules show errors",
    impact: Impact::Moderate,
    effect: "each error stops the CPU for the firmware's handler, up to milliseconds on some platforms (estimate); data is at risk",
    risk: "replacing a module needs downtime",
    source: "https://docs.kernel.org/admin-guide/RAS/main.html",
    explanation: include_str!("memory_ecc_errors.md"),
    run,
};

/// Corrected errors a day from which a module is worth replacing; a stray one now and then is normal.
const A_DAY: u64 = 24;
/// The same in all, where the driver does not tell for how long it has counted.
const IN_ALL: u64 = 100;
const SECONDS_A_DAY: u64 = 86_400;

fn run(facts: &Facts, _context: Context) -> Judgement {
    let edac = &facts.memory.edac;
    need_or_not_applicable(edac, "no driver reports memory errors (no ECC, or a guest)")
        .map(|controllers| Judgement::each(controllers, judge))
        .into()
}

fn judge(controller: &EdacController) -> Result<Option<Finding>, Outcome> {
    let corrected = *need(&controller.corrected)?;
    let uncorrected = *need(&controller.uncorrected)?;
    let many = match controller.counted_for_seconds.value() {
        Some(seconds) => corrected / seconds.div_ceil(SECONDS_A_DAY).max(1) >= A_DAY,
        None => corrected >= IN_ALL,
    };
    if uncorrected == 0 && !many {
        return Ok(None);
    }
    let what = format!("{corrected} corrected and {uncorrected} uncorrected memory errors");
    let names: Vec<&str> = controller.modules_with_errors.iter().map(name).collect();
    let subject = format!("memory controller {}", controller.number);
    Ok(Some(
        Finding::new(Subject::device(subject), what)
            .with(Evidence::of(&controller.corrected).expected(format!("less than {A_DAY} a day")))
            .with(Evidence::of(&controller.uncorrected).expected("0"))
            .with(Evidence::derived("modules with errors", names.join(", ")))
            .impact(if uncorrected > 0 { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Hardware(
                "replace the module that shows the errors, after reseating it once".to_owned(),
            )),
    ))
}

fn name(module: &EdacModule) -> &str {
    module.label.text().filter(|label| !label.is_empty()).unwrap_or(&module.name)
}

#[cfg(test)]
mod tests {
    use crate::{Impact, checks::testing::findings};

    fn impact(corrected: &str, uncorrected: &str, seconds: &str) -> Option<Impact> {
        let files = [("ce_count", corrected), ("ue_count", uncorrected), ("seconds_since_reset", seconds)];
        let files = files.map(|(name, value)| (format!("/sys/devices/system/edac/mc/mc0/{name}"), value));
        findings(&super::CHECK, &files).first().map(|finding| finding.impact.unwrap())
    }

    #[test]
    fn many_a_day_or_any_uncorrected() {
        assert_eq!(impact("5000", "0", "864000"), Some(Impact::Moderate));
        assert_eq!(impact("5", "0", "864000"), None, "a stray one is normal");
        assert_eq!(impact("30", "0", "8640000"), None);
        assert_eq!(impact("0", "1", "864000"), Some(Impact::Large));
    }
}
