//! Caches (`Documentation/ABI/testing/sysfs-devices-system-cpu`, `cache/index*`).

use serde::Serialize;

use super::CPU_DIR;
use crate::{CpuSet, Observed, Reader, Reason, reader::join};

/// One cache of the first online CPU. Other CPUs of a machine with one kind of core have the same.
#[derive(Debug, Clone, Serialize)]
pub struct Cache {
    /// 1 for the cache nearest to the core.
    pub level: Observed<u32>,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: Observed<String>,
    /// Capacity in KiB.
    pub size_kb: Observed<u64>,
    /// The online CPUs that share it.
    pub shared_by: Observed<CpuSet>,
}

/// More levels than any CPU has; a longer list comes from no kernel.
const INDEX_LIMIT: usize = 16;

pub(super) fn observe(reader: &Reader<'_>, online: &CpuSet) -> Observed<Vec<Cache>> {
    let dir = join(CPU_DIR, format_args!("cpu{}/cache", online.first().unwrap_or(0)));
    reader.numbered(&dir, "index").parse(|indices| {
        if indices.len() > INDEX_LIMIT {
            return Err(format!("{} caches of one CPU", indices.len()));
        }
        Ok(indices.into_iter().map(|index| cache(reader, &dir, index)).collect())
    })
}

fn cache(reader: &Reader<'_>, dir: &str, index: u32) -> Cache {
    let dir = join(dir, format_args!("index{index}"));
    Cache {
        level: reader.number(&join(&dir, "level")),
        kind: reader.text(&join(&dir, "type")),
        size_kb: size(reader, &join(&dir, "size")),
        shared_by: reader.cpu_set(&join(&dir, "shared_cpu_list")),
    }
}

/// `266240K`; firmware of virtual machines may leave the size out, which reads as nothing or `0K`.
fn size(reader: &Reader<'_>, path: &str) -> Observed<u64> {
    let size = reader.text(path).parse(|text| match text.strip_suffix('K').map(str::parse) {
        Some(Ok(size)) => Ok(size),
        _ => Err(format!("`{}` is no cache size", text.chars().take(20).collect::<String>())),
    });
    match size.value() {
        Some(0) => Observed::unavailable(path, Reason::NotApplicable("the firmware gives no size".into())),
        _ => size,
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn sizes() {
        let dir = "/sys/devices/system/cpu/cpu0/cache";
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
            ("/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,64\n"),
            ("/sys/devices/system/cpu/cpu0/cache/index3/size", "0K\n"),
            ("/sys/devices/system/cpu/cpu0/cache/uevent", ""),
        ]);
        let caches = observe(&Reader::new(&host), &CpuSet::range(0..=3));
        assert_eq!(caches.source(), dir);
        let caches = caches.get().unwrap();
        assert_eq!(caches.len(), 2);
        assert_eq!(caches[0].size_kb.value(), Some(32));
        assert!(caches[0].level.is_absent());
        assert!(matches!(caches[1].size_kb.reason(), Some(Reason::NotApplicable(_))));
    }
}
