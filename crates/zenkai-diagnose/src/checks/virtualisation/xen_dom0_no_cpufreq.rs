//! The clock of a Xen dom0 is Xen's.

use zenkai_facts::{Facts, virtualisation::Kind};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "xen-dom0-no-cpufreq",
    subsystem: Subsystem::Virtualisation,
    summary: "the clock policy is Xen's and cannot be seen from here",
    impact: Impact::Depends,
    effect: "the ratio of the clock Xen allows to the highest clock; unknown from here",
    risk: "higher power draw",
    source: "https://wiki.xenproject.org/wiki/Xen_power_management",
    explanation: include_str!("xen_dom0_no_cpufreq.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let virtualisation = &facts.virtualisation;
    if *need(&virtualisation.kind)? != Kind::XenDom0 {
        return Err(Outcome::not_applicable("not a Xen dom0"));
    }
    let policies = &facts.cpu.frequency.policies;
    // `cpufreq=dom0-kernel` hands the clock to this kernel: then the ordinary checks see it.
    if policies.get().is_some_and(|policies| !policies.is_empty()) {
        return Ok(None);
    }
    let line = &virtualisation.xen_command_line;
    if line.text().is_some_and(asks_for_speed) {
        return Ok(None);
    }
    let advice = "look with `xenpm get-cpufreq-para`; for full speed `xenpm set-scaling-governor performance`, and for \
                  good `cpufreq=xen:performance` on Xen's command line";
    Ok(Some(
        Finding::new(Subject::Machine, "Xen steers the clock, and nothing here says that it is to run fast")
            .with(Evidence::of(&virtualisation.kind))
            .with(Evidence::derived(policies.source(), "no policy in dom0"))
            .with(Evidence::of(line).expected("cpufreq=xen:performance, if speed matters more than power"))
            .remedy(Remedy::Do(advice.to_owned())),
    ))
}

/// Whether the last `cpufreq=` on Xen's command line names the governor that holds the highest clock.
fn asks_for_speed(line: &str) -> bool {
    let last = line.split_whitespace().filter_map(|word| word.strip_prefix("cpufreq=")).next_back();
    last.is_some_and(|value| value.split([':', ',']).any(|part| part == "performance"))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    const DOM0: [(&str, &str); 2] =
        [("/sys/hypervisor/type", "xen\n"), ("/proc/xen/capabilities", "control_d\n")];

    fn fires(files: &[(&str, &str)]) -> bool {
        !findings(&super::CHECK, &[DOM0.as_slice(), files].concat()).is_empty()
    }

    #[test]
    fn unless_somebody_asked_for_speed() {
        assert!(fires(&[]));
        assert!(fires(&[("/boot/grub/grub.cfg", "multiboot2 /boot/xen.gz cpufreq=xen:ondemand\n")]));
        assert!(!fires(&[(
            "/boot/grub/grub.cfg",
            "multiboot2 /boot/xen.gz dom0_mem=4G cpufreq=xen:performance,verbose\n"
        )]));
        assert!(!fires(&[("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n")]));
        assert!(
            findings(
                &super::CHECK,
                &[("/sys/hypervisor/type", "xen\n"), ("/sys/hypervisor/guest_type", "HVM\n")]
            )
            .is_empty()
        );
    }
}
