//! A virtual CPU model without features that software could use.

use zenkai_facts::{Facts, virtualisation::GuestCpu};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-cpu-model-hides-features",
    subsystem: Subsystem::Virtualisation,
    summary: "the virtual CPU hides features of the real one",
    impact: Impact::Moderate,
    effect: "encryption 5 to 10 times, vector code 2 times slower (estimate from the missing instructions)",
    risk: "guests with the full model cannot move to hosts with older CPUs",
    source: "https://www.qemu.org/docs/master/system/qemu-cpu-models.html",
    explanation: include_str!("virtualisation_cpu_model_hides_features.md"),
    run,
};

/// Models that QEMU makes up; no real CPU has these names.
const MADE_UP: [&str; 4] =
    ["QEMU Virtual CPU", "Common KVM processor", "Common 32-bit KVM processor", "QEMU TCG CPU"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.virtualisation.guest_cpu;
    let cpu = need(reading)?;
    let made_up = MADE_UP.iter().any(|name| cpu.model_name.starts_with(name));
    let hidden = hidden(cpu);
    let what = if made_up && !cpu.missing_features.is_empty() {
        format!("the CPU model is made up and lacks {}", cpu.missing_features.join(", "))
    } else if !hidden.is_empty() {
        format!("the CPU lacks {}, which every real CPU of its kind has", hidden.join(", "))
    } else {
        return Ok(None);
    };
    let costly = cpu.missing_features.iter().any(|name| name == "aes" || name == "avx2");
    let advice = "give the guest the host's CPU (`host-passthrough`, `-cpu host`) or the newest model all hosts share \
                  (`x86-64-v3`)";
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::derived(reading.source(), &cpu.model_name))
            .with(Evidence::derived(reading.source(), format!("has {}", cpu.features.join(" "))))
            .impact(if costly { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Hypervisor(advice.to_owned())),
    ))
}

/// What is missing although a newer feature is there: AVX2 came after AES, POPCNT and SSE 4.2 on every maker's
/// CPUs, and on Intel's with PCID and INVPCID.
fn hidden(cpu: &GuestCpu) -> Vec<&str> {
    if !cpu.features.iter().any(|name| name == "avx2") {
        return Vec::new();
    }
    let always = ["aes", "popcnt", "sse4_2"];
    let on_intel = ["pcid", "invpcid"];
    let intel = cpu.model_name.contains("Intel");
    let expected = |name: &str| always.contains(&name) || (intel && on_intel.contains(&name));
    cpu.missing_features.iter().map(String::as_str).filter(|name| expected(name)).collect()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(model: &str, flags: &str) -> bool {
        let text = format!("processor\t: 0\nmodel name\t: {model}\nflags\t\t: fpu hypervisor {flags}\n");
        !findings(&super::CHECK, &[("/proc/cpuinfo", text)]).is_empty()
    }

    const FULL: &str = "sse4_2 x2apic popcnt tsc_deadline_timer aes avx pcid avx2 bmi2 invpcid";

    #[test]
    fn made_up_models_and_contradictions() {
        assert!(fires("QEMU Virtual CPU version 2.5+", "sse4_2"));
        assert!(fires("Intel(R) Xeon(R) Gold 6248 CPU", &FULL.replace(" aes", "")));
        assert!(fires("Intel Core Processor (Haswell)", &FULL.replace(" pcid", "")));
    }

    #[test]
    fn real_cpus_are_what_they_are() {
        assert!(!fires("Intel(R) Xeon(R) Processor", FULL));
        assert!(!fires("AMD EPYC 7742", &FULL.replace("pcid", "").replace("inv", "")), "Zen 2 has neither");
        assert!(
            !fires("Intel(R) Xeon(R) CPU E5-2670", "sse4_2 popcnt aes avx pcid"),
            "Sandy Bridge has no AVX2"
        );
        let metal = "processor : 0\nflags : fpu\n";
        assert!(findings(&super::CHECK, &[("/proc/cpuinfo", metal)]).is_empty());
    }
}
