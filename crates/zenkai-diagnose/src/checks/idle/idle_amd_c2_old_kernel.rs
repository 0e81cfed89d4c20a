//! An old kernel that waits needlessly in AMD idle states.

use zenkai_facts::{Facts, idle::State};

use super::shared::states;

use crate::checks::shared::needs_own_cpus;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-amd-c2-old-kernel",
    subsystem: Subsystem::Idle,
    summary: "the kernel waits needlessly when an AMD CPU goes idle",
    impact: Impact::Small,
    effect: "documented for the worst case only: lowest tbench throughput of a two-socket Zen 3 machine up to 14 times higher after the fix",
    risk: "a new kernel",
    source: "https://www.techspot.com/news/96119-amd-cpus-impacted-20-year-old-linux-workaround.html",
    explanation: include_str!("idle_amd_c2_old_kernel.md"),
    run,
};

/// Zen.
const ZEN: u32 = 0x17;

/// The first kernel with the fix (`e400ad8b7e6a`).
const FIXED: (u32, u32) = (6, 0);

const NOT_OURS: &str = "no AMD Zen CPU under our own control";

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_own_cpus(facts, NOT_OURS)?;
    if !facts.cpu.is_amd() || *need(&facts.cpu.family)? < ZEN {
        return Err(Outcome::not_applicable(NOT_OURS));
    }
    let states = states(facts)?;
    let release = need(&facts.kernel.release)?;
    let by_port = |state: &&State| {
        state.description.text().is_some_and(|text| text.contains("IOPORT")) && !state.enabled_on().is_empty()
    };
    let Some(state) = states.iter().find(by_port) else { return Ok(None) };
    if need(&facts.idle.driver)? != "acpi_idle" {
        return Ok(None);
    }
    match parse(release) {
        Some((major, minor, _)) if (major, minor) >= FIXED => return Ok(None),
        // Every stable series that lived in September 2022 got the fix, and all of them were beyond patch 11 by then.
        Some((.., Some(0..=11))) => {}
        _ => {
            return Err(Outcome::not_applicable(
                "a kernel with backports: its number does not tell whether the fix is in",
            ));
        }
    }
    Ok(Some(
        Finding::new(
            Subject::Cpus(state.enabled_on()),
            format!(
                "kernel {release} makes a slow dummy access each time a CPU enters {}",
                need(&state.name)?
            ),
        )
        .with(Evidence::of(&facts.kernel.release).expected("6.0 or later, or a stable release with the fix"))
        .with(Evidence::of(&state.description))
        .remedy(Remedy::Do("install a newer kernel of the distribution".into())),
    ))
}

/// Major, minor and, when the release is a plain `major.minor.patch` without a distribution's suffix, the patch.
fn parse(release: &str) -> Option<(u32, u32, Option<u32>)> {
    let mut parts = release.splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
    Some((major, minor, parts.next().and_then(|patch| patch.parse().ok())))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{
            cpu::shared::worlds::{epyc, xeon},
            idle::shared::worlds::idle,
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn found(base: FakeHost, release: &str) -> usize {
        let host = idle(base, [0, 10, 10, 80])
            .file("/sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle\n")
            .file("/sys/devices/system/cpu/cpu0/cpuidle/state3/desc", "ACPI IOPORT 0x814\n")
            .file("/proc/sys/kernel/osrelease", &format!("{release}\n"));
        judge_host(&super::CHECK, host, Context::default()).findings.len()
    }

    #[test]
    fn only_where_the_number_tells() {
        assert_eq!(found(epyc(""), "5.15.3"), 1);
        assert_eq!(found(epyc(""), "5.15.150"), 0);
        assert_eq!(found(epyc(""), "5.14.0-427.el9.x86_64"), 0);
        assert_eq!(found(epyc(""), "6.1.0-18-amd64"), 0);
        assert_eq!(found(xeon(""), "5.15.3"), 0);
        assert_eq!(found(epyc("hypervisor"), "5.15.3"), 0);
        assert_eq!(found(epyc(""), "nonsense"), 0);
    }
}
