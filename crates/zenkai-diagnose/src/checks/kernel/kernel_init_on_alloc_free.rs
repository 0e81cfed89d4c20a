//! Memory is cleared each time it is handed out or given back, beyond what is usual.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-init-on-alloc-free",
    subsystem: Subsystem::Kernel,
    summary: "memory is cleared more often than usual",
    impact: Impact::Small,
    effect: "a few per cent where the kernel allocates a lot (estimate)",
    risk: "stale data may be read through kernel errors that the clearing would have hidden",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("kernel_init_on_alloc_free.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let kernel = &facts.kernel;
    let line = need(&kernel.command_line)?;
    let asked = |key: &str| match line.value(key) {
        Some("1" | "on" | "y" | "Y") => Some(true),
        Some("0" | "off" | "n" | "N") => Some(false),
        _ => None,
    };
    let on_free =
        asked("init_on_free").or_else(|| kernel.built_with("INIT_ON_FREE_DEFAULT_ON")) == Some(true);
    // Only when the builder is known to have left it off: most distributions switch it on.
    let built_off = kernel.built_with("INIT_ON_ALLOC_DEFAULT_ON") == Some(false);
    let on_alloc = asked("init_on_alloc") == Some(true) && built_off;
    let what = match (on_alloc, on_free) {
        (false, false) => return Ok(None),
        (true, false) => "memory is cleared when it is handed out, which this kernel was built not to do",
        (false, true) => "memory is cleared when it is given back",
        (true, true) => "memory is cleared when it is handed out and again when it is given back",
    };
    let shown = |key: &str| match line.value(key) {
        Some(value) => Evidence::derived(kernel.command_line.source(), format!("{key}={value}")),
        None => Evidence::derived(kernel.config.source(), "CONFIG_INIT_ON_FREE_DEFAULT_ON=y"),
    };
    let key = if on_free { "init_on_free" } else { "init_on_alloc" };
    Ok(Some(Finding::new(Subject::Machine, what).with(shown(key).expected(format!("{key}=0"))).remedy(
        Remedy::Do(format!(
            "if no hardening rule asks for it, boot with {key}=0; kernel errors may then leak stale memory"
        )),
    )))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(line: &str, config: &str) -> bool {
        let files = [
            ("/proc/sys/kernel/osrelease", "6.8.0"),
            ("/proc/cmdline", line),
            ("/boot/config-6.8.0", config),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn the_usual_default_is_silent() {
        assert!(!fires("ro", "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n"));
        assert!(!fires("init_on_alloc=1", "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n"));
        assert!(!fires("init_on_alloc=1", ""));
        assert!(!fires("init_on_free=0", "CONFIG_INIT_ON_FREE_DEFAULT_ON=y\n"));
        assert!(fires("init_on_free=1", ""));
        assert!(fires("ro", "CONFIG_INIT_ON_FREE_DEFAULT_ON=y\n"));
        assert!(fires("init_on_alloc=1", "# CONFIG_INIT_ON_ALLOC_DEFAULT_ON is not set\n"));
    }
}
