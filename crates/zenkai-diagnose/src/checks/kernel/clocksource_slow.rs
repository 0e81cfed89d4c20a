//! Time is read from a device instead of from the CPU.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "clocksource-slow",
    subsystem: Subsystem::Kernel,
    summary: "time is read from a slow clock",
    impact: Impact::Moderate,
    effect: "reading the time took 5 times as long and a database 30 % more CPU time with `xen` instead of `tsc` (B. Gregg, 2021); hpet and acpi_pm are slower still (estimate)",
    risk: "a TSC that really is unstable lets time jump",
    source: "https://www.brendangregg.com/blog/2021-09-26/the-speed-of-time.html",
    explanation: include_str!("clocksource_slow.md"),
    run,
};

/// Clocks that are read over a bus, by an interrupt count or by leaving the guest (`drivers/clocksource/`).
const SLOW: [&str; 6] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"];

/// Clocks that are read without entering the kernel, the best first.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let clock = &facts.kernel.clock_source;
    let current = need(&clock.current)?;
    let available = need(&clock.available)?;
    let better = FAST.into_iter().find(|name| available.iter().any(|one| one == name));
    // Some guests have nothing but the Xen clock, and it can be read without entering the kernel on newer hosts.
    let slow = SLOW.contains(&current.as_str()) || (current == "xen" && better.is_some());
    if !slow {
        return Ok(None);
    }
    let asked_for = facts.kernel.command_line.get().and_then(|line| line.value("clocksource"));
    let remedy = match better {
        Some(name) => {
            let mut settings = vec![Setting::attribute(clock.current.source(), name)];
            if asked_for.is_some_and(|asked| asked == current) {
                settings.push(Setting::kernel_argument("clocksource", ""));
            }
            Remedy::Set(settings)
        }
        None if in_guest(facts) => {
            Remedy::Hypervisor("give the guest an invariant TSC or the hypervisor's own clock".to_owned())
        }
        None => Remedy::Do(
            "look in the kernel log for why the TSC was given up (`dmesg | grep -i tsc`); newer firmware often cures it"
                .to_owned(),
        ),
    };
    let available = clock.available.clone().map(|names| names.join(" "));
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("reads the time from {current}, each time through the kernel"),
        )
        .with(Evidence::of(&clock.current).expected(better.unwrap_or("tsc")))
        .with(Evidence::of(&available))
        .remedy(remedy)
        .because(format!("the clock source is {current}")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    const DIR: &str = "/sys/devices/system/clocksource/clocksource0";

    fn remedies(current: &str, available: &str) -> Vec<crate::Remedy> {
        let files = [("current_clocksource", current), ("available_clocksource", available)];
        let files = files.map(|(name, value)| (format!("{DIR}/{name}"), format!("{value} \n")));
        findings(&super::CHECK, &files).into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn fires_on_slow_clocks_only() {
        assert!(matches!(remedies("hpet", "tsc hpet acpi_pm")[..], [crate::Remedy::Set(_)]));
        assert!(matches!(remedies("hpet", "hpet acpi_pm")[..], [crate::Remedy::Do(_)]));
        assert_eq!(remedies("xen", "xen tsc hpet").len(), 1);
        assert!(remedies("xen", "xen").is_empty());
        for fast in ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"] {
            assert!(remedies(fast, "tsc hpet").is_empty(), "{fast}");
        }
    }
}
