//! How the kernel was built: the switches of its configuration that cost speed.

use std::collections::BTreeMap;

use crate::{Observed, Reader, Reason};

/// The switches that are kept of some ten thousand: debugging, preemption, tick, hardening, scheduler.
const KEPT: [&str; 52] = [
    "ARM64_64K_PAGES",
    "CC_OPTIMIZE_FOR_SIZE",
    "CPU_ISOLATION",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_KMEMLEAK_DEFAULT_OFF",
    "DEBUG_LIST",
    "DEBUG_LOCKDEP",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_VM",
    "DEBUG_VM_PGTABLE",
    "FUNCTION_TRACER",
    "HZ",
    "INIT_ON_ALLOC_DEFAULT_ON",
    "INIT_ON_FREE_DEFAULT_ON",
    "IOMMU_DEFAULT_DMA_LAZY",
    "IOMMU_DEFAULT_DMA_STRICT",
    "IOMMU_DEFAULT_PASSTHROUGH",
    "KASAN",
    "KASAN_HW_TAGS",
    "KCOV",
    "KCSAN",
    "KFENCE",
    "KMSAN",
    "LOCKDEP",
    "LOCK_STAT",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "NR_CPUS",
    "NUMA_BALANCING",
    "PAGE_POISONING",
    "PREEMPT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_VOLUNTARY",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "RCU_NOCB_CPU",
    "SCHED_AUTOGROUP",
    "SCHED_CLASS_EXT",
    "SLUB_DEBUG_ON",
    "TRANSPARENT_HUGEPAGE",
    "TRANSPARENT_HUGEPAGE_ALWAYS",
    "UBSAN_TRAP",
];

/// Reads the configuration that distributions put beside the kernel. `/proc/config.gz` is compressed and is not
/// read.
pub(super) fn observe(reader: &Reader<'_>, release: &Observed<String>) -> Observed<BTreeMap<String, String>> {
    // The release becomes part of a path, and content is not to be trusted.
    let Some(release) = release.text().filter(|text| !text.contains('/') && !text.is_empty()) else {
        return Observed::unavailable(
            "/boot/config-",
            Reason::NotApplicable("the release is not known".into()),
        );
    };
    reader
        .text(&format!("/boot/config-{release}"))
        .or_else(|| reader.text(&format!("/usr/lib/modules/{release}/config")))
        .parse(|text| {
            let switches = parse(&text);
            if switches.is_empty() { Err("no kernel configuration".to_owned()) } else { Ok(switches) }
        })
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(switch).collect()
}

/// `CONFIG_X=y` or `# CONFIG_X is not set`; only switches that are kept.
fn switch(line: &str) -> Option<(String, String)> {
    let (name, value) = match line.strip_prefix("# CONFIG_") {
        Some(rest) => (rest.strip_suffix(" is not set")?, "n"),
        None => line.strip_prefix("CONFIG_")?.split_once('=')?,
    };
    KEPT.binary_search(&name).is_ok().then(|| (name.to_owned(), value.trim_matches('"').to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(KEPT.is_sorted());
    }

    #[test]
    fn set_and_not_set() {
        let switches =
            parse("CONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_PREEMPT_NONE=y\nCONFIG_OTHER=y\n");
        assert_eq!(switches["HZ"], "250");
        assert_eq!(switches["KASAN"], "n");
        assert_eq!(switches.len(), 3);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(# )?(CONFIG_)?[A-Z_= a-z\"\n]{0,60}") {
            let _ = parse(&text);
        }
    }
}
