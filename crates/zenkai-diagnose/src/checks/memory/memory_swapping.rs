//! Swap is in use and tasks wait for memory.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-swapping",
    subsystem: Subsystem::Memory,
    summary: "work waits for memory that is being swapped",
    impact: Impact::Large,
    effect: "the share of time that pressure stall information shows (by its definition)",
    risk: "stopping programs loses their work",
    source: "https://docs.kernel.org/accounting/psi.html",
    explanation: include_str!("memory_swapping.md"),
    run,
};

/// Hundredths of a per cent of the last five minutes in which some task waited for memory.
const WORTH_TELLING: u64 = 500;
/// The same in which no task could go on.
const GRAVE: u64 = 500;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let memory = &facts.memory;
    let devices = need(&memory.swap.devices)?;
    // Compressed memory is no disk: its use is meant and cheap.
    let used_kb: u64 =
        devices.iter().filter(|device| !device.compressed_memory).map(|device| device.used_kb).sum();
    if used_kb == 0 {
        return Ok(None);
    }
    let pressure = need(&memory.pressure)?;
    if pressure.some_300s_per_myriad < WORTH_TELLING {
        return Ok(None);
    }
    let share = |per_myriad: u64| format!("{}.{:02} %", per_myriad / 100, per_myriad % 100);
    let what =
        format!("tasks waited for memory {} of the last five minutes", share(pressure.some_300s_per_myriad));
    let grave = pressure.full_300s_per_myriad >= GRAVE;
    let advice =
        "find what uses the memory (`ps aux --sort -rss`), give it less work or the machine more memory";
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(
                Evidence::derived(
                    memory.pressure.source(),
                    format!("full {}", share(pressure.full_300s_per_myriad)),
                )
                .expected("near 0"),
            )
            .with(Evidence::derived(memory.swap.devices.source(), format!("{} MiB in use", used_kb / 1024)))
            .impact(if grave { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Do(advice.to_owned()))
            .because("memory is short and work waits for swap"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Impact, checks::testing::findings};

    fn impact(device: &str, used: u32, some: &str, full: &str) -> Option<Impact> {
        let line = |word: &str, share: &str| format!("{word} avg10=0.00 avg60=0.00 avg300={share} total=1\n");
        let files = [
            ("/proc/swaps", format!("Filename Type Size Used Priority\n{device} partition 9999 {used} -2\n")),
            ("/proc/pressure/memory", line("some", some) + &line("full", full)),
        ];
        findings(&super::CHECK, &files).first().map(|finding| finding.impact.unwrap())
    }

    #[test]
    fn needs_pressure_and_swap_on_disk() {
        assert_eq!(impact("/dev/sda2", 5000, "12.00", "7.00"), Some(Impact::Large));
        assert_eq!(impact("/dev/sda2", 5000, "12.00", "1.00"), Some(Impact::Moderate));
        assert_eq!(impact("/dev/sda2", 5000, "0.10", "0.00"), None, "old swap that nobody misses");
        assert_eq!(impact("/dev/sda2", 0, "12.00", "7.00"), None);
        assert_eq!(impact("/dev/zram0", 5000, "12.00", "7.00"), None);
    }
}
