//! QEMU without hardware virtualisation.

use zenkai_facts::{Facts, virtualisation::Kind};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-emulated-cpu",
    subsystem: Subsystem::Virtualisation,
    summary: "the CPU is emulated in software",
    impact: Impact::Large,
    effect: "ten times slower and more for ordinary code (estimate)",
    risk: "the guest has to be started again",
    source: "https://www.qemu.org/docs/master/system/introduction.html",
    explanation: include_str!("virtualisation_emulated_cpu.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let kind = &facts.virtualisation.kind;
    if *need(kind)? != Kind::Qemu {
        return Ok(None);
    }
    let advice = "start the guest with KVM (`-accel kvm`, `-cpu host`); inside another guest, nested virtualisation \
                  must be allowed first";
    Ok(Some(
        Finding::new(Subject::Machine, "QEMU translates every instruction in software (TCG)")
            .with(Evidence::of(kind).expected("kvm"))
            .remedy(Remedy::Hypervisor(advice.to_owned()))
            .because("the CPU is emulated by QEMU"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Query, Reply};

    use crate::{Context, checks::testing::judge_host};

    fn fires(signature: [&[u8; 4]; 3]) -> bool {
        let words = signature.map(|word| u64::from(u32::from_le_bytes(*word)));
        let host = FakeHost::new(&[])
            .reply(&Query::Cpuid { leaf: 1, subleaf: 0 }, Reply::Numbers(vec![0, 0, 1 << 31, 0]))
            .reply(
                &Query::Cpuid { leaf: 0x4000_0000, subleaf: 0 },
                Reply::Numbers(vec![0, words[0], words[1], words[2]]),
            );
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn only_without_kvm() {
        assert!(fires([b"TCGT", b"CGTC", b"GTCG"]));
        assert!(!fires([b"KVMK", b"VMKV", b"M\0\0\0"]));
    }
}
