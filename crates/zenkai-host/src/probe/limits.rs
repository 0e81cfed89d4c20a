//! How much memory the probe may use, and how large the caches are that it must get past.

use std::collections::BTreeSet;
use std::io;

use rustix::fs::{Mode, OFlags};

/// Files of procfs and sysfs read here are far smaller; a longer one is cut.
const TEXT_BYTES: usize = 64 * 1024;

/// A small text file of procfs or sysfs of the machine we run on. The probe measures that machine only, never a
/// capture, so it does not go through `Host`.
pub(super) fn read_text(path: &str) -> io::Result<String> {
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = Vec::new();
    let mut chunk = [0_u8; 4096];
    while text.len() < TEXT_BYTES {
        let length = rustix::io::read(&fd, &mut chunk)?;
        if length == 0 {
            break;
        }
        text.extend_from_slice(chunk.get(..length).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Bytes that can be allocated without swapping and without hitting the memory limit of our cgroup or of one of
/// its ancestors, where that would summon the OOM killer. A group's page cache counts as used there, so this errs
/// on the small side. An error when MemAvailable cannot be read.
pub(super) fn memory_available() -> Result<u64, String> {
    let meminfo = read_text("/proc/meminfo").map_err(|error| format!("/proc/meminfo: {error}"))?;
    let available = mem_available(&meminfo).ok_or("/proc/meminfo has no MemAvailable")?;
    let groups = read_text("/proc/self/cgroup").unwrap_or_default();
    let limits = cgroup_memory_dirs(&groups).into_iter().filter_map(|dir| {
        // v2, then v1; the root and groups without a limit have no such file, "max", or a huge number.
        let number = |name: &str| read_text(&format!("{dir}/{name}")).ok()?.trim().parse::<u64>().ok();
        let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
        Some(limit.saturating_sub(used))
    });
    Ok(limits.fold(available, u64::min))
}

/// MemAvailable of /proc/meminfo, bytes.
pub(super) fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The directories where limits of our memory cgroup may stand, from the group itself up to the root of its
/// hierarchy, for each hierarchy in /proc/self/cgroup. In a container the paths may be the host's and not exist;
/// the root, which is then the container's own group, is always among them.
pub(super) fn cgroup_memory_dirs(groups: &str) -> Vec<String> {
    let mut dirs = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            list if list.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            dirs.push(format!("{root}{path}"));
            match path.rsplit_once('/') {
                Some((parent, _)) => path = parent,
                None => break,
            }
        }
    }
    dirs
}

/// The sum of the distinct last-level caches behind these CPUs, bytes. An error says what is missing.
pub(super) fn last_level_cache(cpus: &[u32]) -> Result<u64, String> {
    let mut caches = BTreeSet::new();
    let mut total = 0_u64;
    for &cpu in cpus {
        let (shared_by, bytes) = last_cache_of(cpu)
            .ok_or_else(|| format!("/sys/devices/system/cpu/cpu{cpu}/cache tells no cache size"))?;
        if caches.insert(shared_by) {
            total = total.saturating_add(bytes);
        }
    }
    Ok(total)
}

/// Who shares the cache of the highest level of this CPU, and its size in bytes.
fn last_cache_of(cpu: u32) -> Option<(String, u64)> {
    let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let file = |index: u32, name: &str| read_text(&format!("{dir}/index{index}/{name}")).ok();
    // The kernel numbers L1d, L1i, L2, L3, (L4) from 0 without gaps.
    let last = (0..8).take_while(|&index| file(index, "level").is_some()).last()?;
    let shared_by = file(last, "shared_cpu_list")?;
    Some((shared_by.trim().to_owned(), cache_bytes(file(last, "size")?.trim())?))
}

/// A cache size as sysfs writes it: "266240K".
pub(super) fn cache_bytes(size: &str) -> Option<u64> {
    let (number, unit) = match size.as_bytes().last()? {
        b'K' => (size.strip_suffix('K')?, 1024),
        b'M' => (size.strip_suffix('M')?, 1024 * 1024),
        _ => (size, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}
