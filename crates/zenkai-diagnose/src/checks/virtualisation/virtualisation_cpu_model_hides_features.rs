//! A virtual CPU model without features that software could use.

use zenkai_facts::Facts;

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

/// Features that common CPU models of hypervisors hide.
const FEATURES: [&str; 10] =
    ["sse4_2", "x2apic", "popcnt", "tsc_deadline_timer", "aes", "avx", "pcid", "avx2", "bmi2", "invpcid"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    if !need(&facts.virtualisation.kind)?.is_guest() {
        return Err(Outcome::not_applicable("not a guest"));
    }
    let (cpu, flags) = (&facts.cpu, need(&facts.cpu.flags)?);
    if !cpu.is_intel() && !cpu.is_amd() {
        return Err(Outcome::not_applicable("the features are those of x86 CPUs"));
    }
    let model_name = need(&cpu.model_name)?;
    let (features, missing): (Vec<&str>, Vec<&str>) = FEATURES.iter().partition(|name| flags.has(name));
    let made_up = MADE_UP.iter().any(|name| model_name.starts_with(name));
    let hidden = hidden(cpu.is_intel(), &features, &missing);
    let what = if made_up && !missing.is_empty() {
        format!("the CPU model is made up and lacks {}", missing.join(", "))
    } else if !hidden.is_empty() {
        format!("the CPU lacks {}, which every real CPU of its kind has", hidden.join(", "))
    } else {
        return Ok(None);
    };
    let costly = missing.contains(&"aes") || missing.contains(&"avx2");
    let advice = "give the guest the host's CPU (`host-passthrough`, `-cpu host`) or the newest model all hosts share \
                  (`x86-64-v3`)";
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&cpu.model_name))
            .with(Evidence::part(&cpu.flags, format!("has {}", features.join(" "))))
            .impact(if costly { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Hypervisor(advice.to_owned())),
    ))
}

/// What is missing although a newer feature is there: AVX2 came after AES, POPCNT and SSE 4.2 on every maker's
/// CPUs, and on Intel's with PCID and INVPCID.
fn hidden<'n>(intel: bool, features: &[&str], missing: &[&'n str]) -> Vec<&'n str> {
    if !features.contains(&"avx2") {
        return Vec::new();
    }
    let always = ["aes", "popcnt", "sse4_2"];
    let on_intel = ["pcid", "invpcid"];
    let expected = |name: &str| always.contains(&name) || (intel && on_intel.contains(&name));
    missing.iter().copied().filter(|name| expected(name)).collect()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(model: &str, flags: &str) -> bool {
        let vendor = if model.starts_with("AMD") { "AuthenticAMD" } else { "GenuineIntel" };
        let text = format!(
            "processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: {model}\nflags\t\t: fpu hypervisor {flags}\n"
        );
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
