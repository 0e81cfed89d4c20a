//! A Xen guest in PV mode.

use zenkai_facts::{Facts, virtualisation::Kind};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "xen-pv-guest",
    subsystem: Subsystem::Virtualisation,
    summary: "this Xen guest runs in paravirtual mode",
    impact: Impact::Moderate,
    effect: "30 to 50 % slower on 15 of 18 systems measured under PV (gmplib.org)",
    risk: "the guest must be set up anew for PVH or HVM; an old kernel may not start there",
    source: "https://gmplib.org/~tege/xen.html",
    explanation: include_str!("xen_pv_guest.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let kind = &facts.virtualisation.kind;
    match need(kind)? {
        Kind::XenPv => {}
        other if other.is_xen() => return Ok(None),
        _ => return Err(Outcome::not_applicable("not a Xen guest")),
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            "every change of page tables and every system call takes a detour through Xen",
        )
        .with(Evidence::of(kind).expected("xen-pvh or xen-hvm"))
        .remedy(Remedy::Hypervisor(
            "start the guest with `type = \"pvh\"`, or `hvm` with PV drivers".to_owned(),
        ))
        .because("Xen runs this guest in paravirtual mode"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(files: &[(&str, &str)]) -> bool {
        let files = [files, &[("/sys/hypervisor/type", "xen\n")]].concat();
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_pv_guests() {
        assert!(fires(&[("/sys/hypervisor/guest_type", "PV\n")]));
        assert!(!fires(&[("/sys/hypervisor/guest_type", "PVH\n")]));
        assert!(
            !fires(&[("/sys/hypervisor/guest_type", "PV\n"), ("/proc/xen/capabilities", "control_d\n")]),
            "dom0"
        );
    }
}
