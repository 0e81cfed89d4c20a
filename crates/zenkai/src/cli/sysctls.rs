//! What a capture holds of `/proc/sys` beyond what the facts ask for, so that `zenkai diff` sees settings that no check
//! knows.
//!
//! Reading a sysctl is harmless with the exceptions below: the kernel refuses to read what can only be written
//! (`sysctl_perm()` in fs/proc/proc_sysctl.c goes by the mode, also for root). Held are numbers and plain words of one line;
//! keys, names, paths and commands are not, nor what counts or changes by itself.

use zenkai_host::{Capture, EntryKind, Host};

const TOP: &str = "/proc/sys";

/// Files that are looked at, and that are held: servers have some 1 400, more with many interfaces.
const LOOKED_AT: usize = 20_000;
const HELD: usize = 2_000;
/// Bytes that are read: a folder that only looks like a machine may hold anything.
const READ: usize = 16 << 20;
/// Folders in folders.
const DEEPEST: usize = 8;
/// Longer values are no settings.
const LONGEST: usize = 200;
/// Longer runs of hexadecimal digits are keys or serial numbers: 64 bits have 16.
const LONGEST_DIGITS: usize = 20;

/// Not held, by the start of the path below `/proc/sys`, whole parts each.
const LEFT_OUT: &[&str] = &[
    // A file system of its own, which systemd mounts when somebody looks.
    "fs/binfmt_misc",
    // Counters and moments.
    "fs/aio-nr",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/quota",
    "kernel/hung_task_detect_count",
    "kernel/hung_task_warnings",
    "kernel/msg_next_id",
    "kernel/ns_last_pid",
    "kernel/perf_event_max_sample_rate",
    "kernel/pty/nr",
    "kernel/sem_next_id",
    "kernel/shm_next_id",
    "kernel/tainted",
    "net/netfilter/nf_conntrack_count",
    // Reading it makes every CPU bring its counters up to date (mm/vmstat.c, `vmstat_refresh()`).
    "vm/stat_refresh",
    // Whose machine it is, and secrets.
    "kernel/cad_pid",
    "kernel/core_pattern",
    "kernel/domainname",
    "kernel/hostname",
    "kernel/random",
    "net/core/netdev_rss_key",
    "net/ipv4/fib_multipath_hash_seed",
    "net/ipv4/tcp_fastopen_key",
    // One for each CPU and domain, up to Linux 5.12.
    "kernel/sched_domain",
];

/// Last parts of paths that are not held: a secret, what only can be written, and coarse forms of one value, which would be
/// set twice and put back inexactly (net/core/neighbour.c: `unres_qlen` counts packets, `unres_qlen_bytes` is what holds).
const NEVER: &[&str] = &[
    "base_reachable_time",
    "compact_memory",
    "drop_caches",
    "flush",
    "gc_min_interval",
    "retrans_time",
    "stable_secret",
    "unres_qlen",
];

/// Folders with one copy for each interface: those that hold for all, and for new ones, are enough.
const PER_INTERFACE: &[&str] =
    &["net/ipv4/conf", "net/ipv4/neigh", "net/ipv6/conf", "net/ipv6/neigh", "net/mpls/conf"];

/// Reads them through `recorder`, after a look at each through `host`: what is not to be held is not asked for there.
pub(super) fn record(host: &dyn Host, recorder: &dyn Host) {
    for path in paths(host) {
        // An error is an answer too.
        let _ = recorder.read(&path);
    }
}

/// The same for a capture, which holds no folders to look into.
pub(super) fn repeat(capture: &Capture, recorder: &dyn Host) {
    for path in capture.read_paths().filter(|path| is_wanted(path)) {
        let _ = recorder.read(path);
    }
}

fn paths(host: &dyn Host) -> Vec<String> {
    let (mut folders, mut held, mut looked_at, mut read) = (vec![(TOP.to_owned(), 0)], Vec::new(), 0, 0);
    while let Some((folder, depth)) = folders.pop() {
        for entry in host.list(&folder).unwrap_or_default() {
            looked_at += 1;
            let path = format!("{folder}/{}", entry.name);
            if looked_at > LOOKED_AT || held.len() >= HELD || read > READ {
                return held;
            }
            if !is_wanted(&path) {
                continue;
            }
            match entry.kind {
                EntryKind::Directory if depth < DEEPEST => folders.push((path, depth + 1)),
                EntryKind::File => {
                    let value = host.read(&path);
                    read += value.as_ref().map_or(0, Vec::len);
                    if value.is_ok_and(|value| is_setting(&value)) {
                        held.push(path);
                    }
                }
                _ => {}
            }
        }
    }
    held
}

fn is_wanted(path: &str) -> bool {
    let Some(tail) = path.strip_prefix(TOP).and_then(|tail| tail.strip_prefix('/')) else { return false };
    let below = |start: &&&str| {
        tail.strip_prefix(**start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let last = tail.rsplit('/').next().unwrap_or_default();
    let own_copy = PER_INTERFACE.iter().filter_map(|folder| tail.strip_prefix(folder)?.strip_prefix('/'));
    let mut interfaces = own_copy.filter_map(|rest| rest.split('/').next());
    !NEVER.contains(&last)
        && LEFT_OUT.iter().find(below).is_none()
        && interfaces.all(|interface| ["all", "default"].contains(&interface))
}

/// One line of numbers and plain words, or nothing. A slash makes it a path or a command, a colon a key or an address.
fn is_setting(value: &[u8]) -> bool {
    let Some(text) = std::str::from_utf8(value).ok().map(str::trim) else { return false };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || " \t_.,+-".contains(letter);
    let digits = text.split(|letter: char| !letter.is_ascii_hexdigit()).map(str::len).max().unwrap_or(0);
    // `0-1,3-127` is a range; more parts make a UUID or a key.
    let parted = text.split([' ', '\t', ',']).any(|word| word.matches('-').count() > 2);
    text.len() <= LONGEST && digits <= LONGEST_DIGITS && !parted && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Mutex, PoisonError},
    };

    use zenkai_host::{DirEntry, FakeHost, Query, RecordingHost, Reply};

    use super::*;

    fn held(host: impl Host) -> Vec<String> {
        let mut paths = paths(&host);
        paths.sort();
        paths
    }

    #[test]
    fn settings_are_held_and_secrets_names_and_counters_are_not() {
        let kept = [
            ("/proc/sys/dev/raid/speed_limit_max", "200000\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/sys/net/core/default_qdisc", "fq_codel\n"),
            ("/proc/sys/net/ipv4/conf/all/rp_filter", "2\n"),
            ("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n"),
            ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("/proc/sys/net/ipv6/icmp/ratemask", "0-1,3-127\n"),
            ("/proc/sys/net/ipv6/neigh/default/gc_thresh3", "1024\n"),
            ("/proc/sys/vm/lowmem_reserve_ratio", "256\t256\t32\t0\n"),
        ];
        let left = [
            ("/proc/sys/fs/binfmt_misc/status", "enabled\n"),
            ("/proc/sys/fs/dentry-state", "1 2 3\n"),
            ("/proc/sys/kernel/core_pattern", "|/opt/acme/collect %p\n"),
            ("/proc/sys/kernel/hostname", "db1\n"),
            ("/proc/sys/kernel/modprobe", "/sbin/modprobe\n"),
            ("/proc/sys/kernel/random/boot_id", "6f1c2f44-1111-2222-3333-444455556666\n"),
            ("/proc/sys/kernel/sched_domain/cpu0/domain0/flags", "4143\n"),
            ("/proc/sys/kernel/made_up_key", "00112233445566778899aabbccddeeff\n"),
            ("/proc/sys/kernel/made_up_uuid", "6f1c2f44-1111-2222-3333-444455556666\n"),
            ("/proc/sys/kernel/two_lines", "a\nb\n"),
            ("/proc/sys/net/core/netdev_rss_key", "00:11:22:33\n"),
            ("/proc/sys/net/ipv4/conf/eth0/rp_filter", "2\n"),
            ("/proc/sys/net/ipv4/tcp_fastopen_key", "00112233-44556677-8899aabb-ccddeeff\n"),
            ("/proc/sys/net/ipv4/neigh/default/unres_qlen", "101\n"),
            ("/proc/sys/net/ipv6/conf/default/stable_secret", "2001\n"),
            ("/proc/sys/vm/stat_refresh", "\n"),
        ];
        let all: Vec<(&str, &str)> = kept.iter().chain(&left).copied().collect();
        assert_eq!(held(FakeHost::new(&all)), kept.map(|(path, _)| path));
        let machine = FakeHost::new(&all).unreadable("/proc/sys/net/ipv4/route/flush", 13);
        let recorder = RecordingHost::new(FakeHost::new(&all));
        record(&machine, &recorder);
        let capture = recorder.into_capture().anonymised();
        assert_eq!(capture.read_paths().collect::<Vec<_>>(), kept.map(|(path, _)| path));
        let again = RecordingHost::new(FakeHost::from_capture(capture.clone()));
        repeat(&capture, &again);
        assert_eq!(again.into_capture(), capture);
    }

    /// A machine whose folders have no end.
    struct Endless(Mutex<usize>);

    impl Host for Endless {
        fn read(&self, _: &str) -> io::Result<Vec<u8>> {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            Ok(b"1\n".to_vec())
        }

        fn list(&self, _: &str) -> io::Result<Vec<DirEntry>> {
            let entry = |nth: usize| DirEntry {
                name: nth.to_string(),
                kind: if nth < 10 { EntryKind::Directory } else { EntryKind::File },
            };
            Ok((0..30).map(entry).collect())
        }

        fn resolve(&self, _: &str) -> io::Result<String> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn query(&self, _: &Query) -> io::Result<Reply> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn a_tree_without_end_is_left_at_a_bound() {
        let host = Endless(Mutex::new(0));
        assert_eq!(paths(&host).len(), HELD);
        assert_eq!(*host.0.lock().unwrap(), HELD);
    }
}
