//! Takes identity out of a capture: what is left tells how a machine runs, not whose it is.
//!
//! Two passes. The first collects what is known to identify: the host name, the contents of files that hold
//! serial numbers, the same in the SMBIOS table. The second rewrites every path, list entry, link target, content
//! and reply: what was collected, and whatever has the shape of an identity (MAC addresses, UUIDs, WWNs).
//! Stand-ins are numbered in the order of the capture, which is sorted, so that the result is always the same;
//! they have a shape of their own, so that a second round leaves them alone.

mod arguments;
mod literals;
mod smbios;
mod stand_ins;
mod text;

use crate::{Capture, DirEntry, Query, Reply, capture::Answer};

use literals::Literals;
use text::Rewriter;

pub(crate) fn anonymise(capture: Capture) -> Capture {
    let mut rewriter = Rewriter::new(collect(&capture));
    let mut result = Capture::default();
    for (path, answer) in capture.reads {
        let content = answer.map(|content| content_of(&path, content, &mut rewriter));
        result.reads.entry(rewriter.path(&path)).or_insert(content);
    }
    for (dir, answer) in capture.lists {
        let entries = answer.map(|entries| entries_of(&dir, entries, &mut rewriter));
        result.lists.entry(rewriter.path(&dir)).or_insert(entries);
    }
    for (path, answer) in capture.links {
        let target = answer.map(|target| rewriter.path(&target));
        result.links.entry(rewriter.path(&path)).or_insert(target);
    }
    for (query, answer) in capture.queries {
        let (query, answer) = query_of(query, answer, &mut rewriter);
        result.queries.entry(query).or_insert(answer);
    }
    result
}

/// The SMBIOS table, whose strings hold serial numbers.
const SMBIOS: &str = "/sys/firmware/dmi/tables/DMI";

/// Files that hold the host's name.
const HOST_NAME: [&str; 2] = ["/proc/sys/kernel/hostname", "/etc/hostname"];

/// Files whose whole content tells who the machine is or where it stands, and nothing of how it runs.
const PRIVATE: [&str; 4] =
    ["/etc/hosts", "/etc/resolv.conf", "/proc/sys/kernel/domainname", "/etc/iscsi/initiatorname.iscsi"];

/// Last parts of paths whose content identifies one piece of hardware or one installation.
const SERIALS: [&str; 27] = [
    "serial",
    "serial_number",
    "product_serial",
    "board_serial",
    "chassis_serial",
    "product_uuid",
    "product_asset_tag",
    "board_asset_tag",
    "chassis_asset_tag",
    "wwid",
    "wwn",
    "eui",
    "nguid",
    "uuid",
    "unique_id",
    "sas_address",
    "port_name",
    "node_name",
    "hostnqn",
    "hostid",
    "subsysnqn",
    "phys_port_id",
    "phys_switch_id",
    "node_guid",
    "sys_image_guid",
    "machine-id",
    "boot_id",
];

/// Last parts of paths whose content is binary and holds serial numbers or keys.
const BINARY: [&str; 6] = ["vpd", "vpd_pg80", "vpd_pg83", "MSDM", "edid", "machine_id.bin"];

/// Last parts of paths whose content is binary and tells of make and model only.
const HARMLESS: [&str; 6] = ["FACP", "APIC", "SRAT", "SLIT", "smbios_entry_point", "cpu_dma_latency"];

/// Clears the serial number in a PCI device's extended configuration space (PCI Express base specification,
/// "Device Serial Number": capability 3, eight bytes after the header).
fn without_device_serial(mut config: Vec<u8>) -> Vec<u8> {
    const SERIAL_CAPABILITY: u32 = 3;
    let mut at = 0x100_usize;
    // Each capability takes at least four bytes: a list that is longer runs in a circle.
    for _ in 0..960 {
        let header = config.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok());
        let Some(header) = header.map(u32::from_le_bytes).filter(|header| *header != 0) else { break };
        if header & 0xffff == SERIAL_CAPABILITY
            && let Some(serial) = config.get_mut(at.saturating_add(4)..at.saturating_add(12))
        {
            serial.fill(0);
        }
        at = usize::try_from(header >> 20).unwrap_or(0);
        if at < 0x100 {
            break;
        }
    }
    config
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or("")
}

fn is_serial(path: &str) -> bool {
    SERIALS.contains(&last_part(path)) && !is_volume(path)
}

/// The identifier of a device-mapper volume also tells what kind of volume it is.
fn is_volume(path: &str) -> bool {
    path.ends_with("/dm/uuid")
}

/// Where the words that tell the kind end and the identity begins: `LVM-`, `CRYPT-LUKS2-`, `part1-mpath-`.
fn kind_length(volume: &str) -> usize {
    let words = ["LVM-", "CRYPT-LUKS1-", "CRYPT-LUKS2-", "CRYPT-PLAIN-", "CRYPT-", "mpath-", "part"];
    let known = words.iter().find(|word| volume.starts_with(**word));
    known.map_or(0, |word| word.len())
}

/// First pass: everything that is known to identify.
fn collect(capture: &Capture) -> Literals {
    let mut literals = Literals::default();
    for (path, answer) in &capture.reads {
        let Ok(content) = answer else { continue };
        if path == SMBIOS {
            for secret in smbios::secrets(content) {
                literals.add_serial(&secret);
            }
        }
        let Ok(text) = std::str::from_utf8(content) else { continue };
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        if HOST_NAME.contains(&path.as_str()) {
            literals.add_host(text, collides(capture, text));
        } else if is_serial(path) {
            literals.add_serial(text);
        }
    }
    literals.finish();
    literals
}

/// Whether a host name is also a word in the kernel's own paths (a host called `vm` or `node1`): then it may only be
/// replaced where names of hosts are expected.
fn collides(capture: &Capture, host: &str) -> bool {
    let short = host.split('.').next().unwrap_or(host);
    let holds = |path: &str| {
        let kernel =
            (path.starts_with("/sys/") && !path.starts_with("/sys/fs/cgroup/")) || path.starts_with("/proc/");
        kernel
            && path
                .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
                .any(|word| word == short)
    };
    let entry = |dir: &str, answer: &Answer<Vec<DirEntry>>| {
        let kernel = dir.starts_with("/sys/") && !dir.starts_with("/sys/fs/cgroup");
        kernel && answer.as_ref().is_ok_and(|entries| entries.iter().any(|entry| entry.name == short))
    };
    capture.reads.keys().chain(capture.links.keys()).any(|path| holds(path))
        || capture.lists.iter().any(|(dir, answer)| holds(dir) || entry(dir, answer))
}

fn content_of(path: &str, content: Vec<u8>, rewriter: &mut Rewriter) -> Vec<u8> {
    if path == SMBIOS {
        return smbios::rewrite(content, &mut rewriter.stand_ins);
    }
    if BINARY.contains(&last_part(path)) {
        return vec![0; content.len()];
    }
    if PRIVATE.contains(&path) {
        return b"hidden\n".to_vec();
    }
    if last_part(path) == "config" && path.starts_with("/sys/") {
        return without_device_serial(content);
    }
    let text = match String::from_utf8(content) {
        Ok(text) => text,
        Err(error) if HARMLESS.contains(&last_part(path)) => return error.into_bytes(),
        // Not text, and nothing we know: who can tell what is in it?
        Err(_) => return Vec::new(),
    };
    let text = if HOST_NAME.contains(&path) {
        whole(&text, |name| rewriter.host_name(name))
    } else if is_serial(path) {
        whole(&text, |value| rewriter.serial(value))
    } else if is_volume(path) {
        whole(&text, |value| {
            // LVM's identifiers have a shape that is known everywhere, and what follows them (`-cow`) is a role.
            if value.starts_with("LVM-") {
                return rewriter.text_with_names(value);
            }
            let (kind, identity) = value.split_at(kind_length(value));
            format!("{kind}{}", rewriter.serial(identity))
        })
    } else if arguments::is_command_line(path) {
        let text = arguments::rewrite(&text, &mut rewriter.stand_ins);
        rewriter.text_with_names(&text)
    } else if arguments::is_mounts(path) {
        let text = arguments::rewrite_mounts(&text, &mut rewriter.stand_ins);
        rewriter.text_with_names(&text)
    } else if path.starts_with("/proc/net/") {
        let text = arguments::rewrite_addresses(&text, &mut rewriter.stand_ins);
        rewriter.text(&text)
    } else if names_volumes(path) {
        rewriter.text_with_names(&text)
    } else {
        rewriter.text(&text)
    };
    text.into_bytes()
}

/// Files with names that people give to volumes and arrays, often after the host.
fn names_volumes(path: &str) -> bool {
    path == "/proc/swaps"
        || path == "/proc/mdstat"
        || path.ends_with("/dm/name")
        || path.ends_with("/dm/uuid")
}

/// Replaces a file's one value and keeps the white space around it.
fn whole(text: &str, replace: impl FnOnce(&str) -> String) -> String {
    let value = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    if value.is_empty() { text.to_owned() } else { text.replacen(value, &replace(value), 1) }
}

fn entries_of(dir: &str, entries: Vec<DirEntry>, rewriter: &mut Rewriter) -> Vec<DirEntry> {
    // A name is rewritten as part of its path, so that both stay the same.
    let mut rename = |name: &str| {
        let path = rewriter.path(&format!("{}/{name}", dir.trim_end_matches('/')));
        last_part(&path).to_owned()
    };
    let mut entries: Vec<DirEntry> =
        entries.into_iter().map(|entry| DirEntry { name: rename(&entry.name), ..entry }).collect();
    entries.sort();
    entries
}

fn query_of(query: Query, answer: Answer<Reply>, rewriter: &mut Rewriter) -> (Query, Answer<Reply>) {
    let hide = hides(&query);
    let query = match query {
        Query::Statfs { path } => Query::Statfs { path: rewriter.path(&path) },
        Query::Ethtool { device, request } => {
            // Interfaces may be named after their MAC address.
            let path = rewriter.path(&format!("/sys/class/net/{device}"));
            Query::Ethtool { device: last_part(&path).to_owned(), request }
        }
        other => other,
    };
    let answer = answer.map(|reply| match reply {
        Reply::Numbers(numbers) if hide => Reply::Numbers(vec![0; numbers.len()]),
        // The completion code stays.
        Reply::Bytes(bytes) if hide => {
            Reply::Bytes(bytes.iter().enumerate().map(|(at, byte)| if at == 0 { *byte } else { 0 }).collect())
        }
        Reply::Text(text) => Reply::Text(rewriter.text(&text)),
        other => other,
    });
    (query, answer)
}

/// Protected processor inventory numbers: Intel's and AMD's pairs of control and value.
const SERIAL_REGISTERS: [u32; 4] = [0x4e, 0x4f, 0xc001_02f0, 0xc001_02f1];

/// Questions whose answers identify. Of the management controller only what is known to be harmless is kept: its
/// identity of make (6, 1) and power and its limits (DCMI, 0x2c).
fn hides(query: &Query) -> bool {
    match query {
        Query::Cpuid { leaf, .. } => *leaf == 3,
        Query::Msr { register, .. } => SERIAL_REGISTERS.contains(register),
        Query::Ipmi { netfn, command, .. } => {
            !matches!((*netfn, *command), (0x06, 0x01) | (0x2c, 0x01..=0x05) | (0x04, _))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
