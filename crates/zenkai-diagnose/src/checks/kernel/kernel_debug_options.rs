//! A kernel that checks itself while it works.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-debug-options",
    subsystem: Subsystem::Kernel,
    summary: "the kernel runs with debugging that costs speed",
    impact: Impact::Large,
    effect: "several times slower in the kernel with KASAN or lock proving, up to tens of per cent with allocator checks (estimate)",
    risk: "checks that catch memory errors of the kernel are gone",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("kernel_debug_options.md"),
    run,
};

/// Switches that check every access, lock or allocation. `DEBUG_VM`, KFENCE and the like are in normal kernels too.
const SWITCHES: [&str; 7] = [
    "KASAN",
    "KMSAN",
    "KCSAN",
    "PROVE_LOCKING",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
];

/// Arguments that switch checks on, with the values that do so; an empty text is the bare word.
const ARGUMENTS: [(&str, &[&str]); 4] = [
    ("page_poison", &["1", "on"]),
    ("debug_pagealloc", &["on", ""]),
    ("page_owner", &["on", ""]),
    ("kmemleak", &["on", ""]),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let kernel = &facts.kernel;
    let release = need(&kernel.release)?;
    let line = need(&kernel.command_line)?;
    let mut evidence = Vec::new();
    let mut reasons = Vec::new();
    if release.split(['-', '+', '.', '_']).any(|word| matches!(word, "debug" | "dbg")) {
        evidence.push(Evidence::of(&kernel.release).expected("a release that is not for debugging"));
        reasons.push("is a debug build".to_owned());
    }
    // Checked by the memory hardware, at little cost.
    let by_hardware = kernel.built_with("KASAN_HW_TAGS") == Some(true);
    let built = SWITCHES.into_iter().filter(|name| kernel.built_with(name) == Some(true));
    let built: Vec<&str> = built.filter(|name| !(by_hardware && *name == "KASAN")).collect();
    if !built.is_empty() {
        let value = built.iter().map(|name| format!("CONFIG_{name}=y")).collect::<Vec<_>>().join(" ");
        evidence.push(Evidence::derived(kernel.config.source(), value).expected("not set"));
        reasons.push(format!("was built with {}", built.join(", ")));
    }
    let of_build = !reasons.is_empty();
    let slub = ["slub_debug", "slab_debug"].into_iter().find(|key| {
        line.argument(key).is_some_and(|value| value.is_none_or(|flags| !flags.starts_with('-')))
    });
    let others = ARGUMENTS
        .into_iter()
        .filter(|(key, on)| line.argument(key).is_some_and(|value| on.contains(&value.unwrap_or(""))));
    let arguments: Vec<&str> = slub.into_iter().chain(others.map(|(key, _)| key)).collect();
    if !arguments.is_empty() {
        evidence
            .push(Evidence::part(&facts.kernel.command_line, arguments.join(" ")).expected("none of them"));
        reasons.push(format!("was told to check memory ({})", arguments.join(", ")));
    }
    if reasons.is_empty() {
        return Ok(None);
    }
    let remedy = if of_build {
        Remedy::Do("boot the distribution's normal kernel".to_owned())
    } else {
        Remedy::Do(format!(
            "take {} off the kernel command line, unless hardening asks for it",
            arguments.join(", ")
        ))
    };
    let finding = Finding::new(Subject::Machine, format!("the kernel {}", reasons.join(" and ")));
    Ok(Some(Finding {
        evidence,
        impact: (!of_build).then_some(Impact::Moderate),
        ..finding.remedy(remedy).because("the kernel runs with debugging")
    }))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(release: &str, config: &str, line: &str) -> Option<crate::Impact> {
        let files = [
            ("/proc/sys/kernel/osrelease".to_owned(), release.to_owned()),
            ("/proc/cmdline".to_owned(), line.to_owned()),
            (format!("/boot/config-{release}"), config.to_owned()),
        ];
        findings(&super::CHECK, &files).first().map(|finding| finding.impact.unwrap_or(super::CHECK.impact))
    }

    #[test]
    fn only_what_costs() {
        assert_eq!(fires("5.14.0-427.el9.x86_64+debug", "", "ro"), Some(crate::Impact::Large));
        assert_eq!(fires("6.8.0", "CONFIG_KASAN=y\n", "ro"), Some(crate::Impact::Large));
        assert_eq!(fires("6.8.0", "CONFIG_HZ=250\n", "ro slub_debug=FZP"), Some(crate::Impact::Moderate));
        assert_eq!(fires("6.8.0", "", "page_poison=1"), Some(crate::Impact::Moderate));
        let normal = "CONFIG_KFENCE=y\nCONFIG_DEBUG_VM=y\nCONFIG_DEBUG_LIST=y\n# CONFIG_KASAN is not set\n";
        assert_eq!(fires("6.8.0-31-generic", normal, "ro quiet slub_debug=- page_poison=0"), None);
        assert_eq!(fires("6.8.0", "CONFIG_KASAN=y\nCONFIG_KASAN_HW_TAGS=y\n", "ro"), None);
    }
}
