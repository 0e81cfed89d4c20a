//! The text forms of PCI paths and link attributes.

use crate::Reason;

/// The directories of the PCI functions on a canonical path, the deepest first, up to the root port: a host
/// bridge (`pci0000:00`) ends the way, even when it is itself a device on another bus (Intel VMD).
pub(super) fn function_dirs(canonical: &str, limit: usize) -> Vec<&str> {
    let mut dirs = Vec::new();
    let mut rest = canonical.trim_end_matches('/');
    while dirs.len() < limit {
        let Some((above, name)) = rest.rsplit_once('/') else { break };
        if is_address(name) {
            dirs.push(rest);
        } else if !dirs.is_empty() {
            break;
        }
        rest = above;
    }
    dirs
}

/// Whether this is `DDDD:BB:DD.F`; VMD and some Arm machines have domains of more than four digits.
fn is_address(name: &str) -> bool {
    let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = name.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((device, function)) = slot.split_once('.') else { return false };
    hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2) && hex(function, 1..=1)
}

/// The value of `NAME=value` in a uevent file.
pub(super) fn uevent_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// A class code as the `class` attribute would show it.
pub(super) fn class_code(text: &str) -> Result<String, String> {
    let code = u32::from_str_radix(text, 16).map_err(|_| format!("`{}`", text.escape_debug()))?;
    Ok(format!("0x{code:06x}"))
}

/// `8.0 GT/s PCIe`, `2.5 GT/s`, `16 GT/s` in mega-transfers per second. `Unknown` is what functions inside the
/// root complex show, which have no link.
pub(super) fn speed_mtps(text: &str) -> Result<u32, Reason> {
    if text.starts_with("Unknown") {
        return Err(Reason::NotApplicable("the function has no link".into()));
    }
    let malformed = || Reason::Malformed(text.chars().take(40).collect());
    let number = text.split_once(" GT/s").ok_or_else(malformed)?.0;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u32 = whole.parse().map_err(|_| malformed())?;
    let tenths: u32 = match tenths.as_bytes() {
        [digit @ b'0'..=b'9'] => u32::from(digit - b'0'),
        _ => return Err(malformed()),
    };
    let speed = whole.checked_mul(1000).and_then(|mtps| mtps.checked_add(tenths * 100));
    speed.filter(|mtps| *mtps > 0).ok_or_else(malformed)
}

/// A number of lanes. 0 is a port without a partner, 255 a function without a link (`PCIE_LNK_WIDTH_UNKNOWN`).
pub(super) fn width(text: &str) -> Result<u32, Reason> {
    match text.parse() {
        Ok(0) => Err(Reason::NotApplicable("nothing is connected".into())),
        Ok(lanes @ 1..=32) => Ok(lanes),
        Ok(255) => Err(Reason::NotApplicable("the function has no link".into())),
        _ => Err(Reason::Malformed(text.chars().take(40).collect())),
    }
}

/// A NUMA node; -1 is "nobody said" (`NUMA_NO_NODE`).
pub(super) fn numa_node(text: &str) -> Result<u32, Reason> {
    if text == "-1" {
        return Err(Reason::NotApplicable("the firmware names no NUMA node".into()));
    }
    text.parse().map_err(|_| Reason::Malformed(text.chars().take(40).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths() {
        let dirs = |path| function_dirs(path, 32);
        let nested = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtio1/block/vda";
        assert_eq!(dirs(nested).len(), 2);
        assert_eq!(dirs(nested)[1], "/sys/devices/pci0000:00/0000:00:01.0");
        let vmd = "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme0";
        assert_eq!(dirs(vmd).len(), 2, "the VMD controller is no hop");
        assert!(dirs("/sys/devices/virtual/block/loop0").is_empty());
        assert!(dirs("").is_empty());
        assert_eq!(function_dirs(&"/0000:00:01.0".repeat(100), 32).len(), 32);
    }

    #[test]
    fn attributes() {
        assert_eq!(speed_mtps("8.0 GT/s PCIe"), Ok(8_000));
        assert_eq!(speed_mtps("2.5 GT/s"), Ok(2_500));
        assert_eq!(speed_mtps("32 GT/s PCIe"), Ok(32_000));
        assert!(matches!(speed_mtps("Unknown speed"), Err(Reason::NotApplicable(_))));
        assert!(matches!(speed_mtps("0.0 GT/s"), Err(Reason::Malformed(_))));
        assert!(matches!(width("255"), Err(Reason::NotApplicable(_))));
        assert!(matches!(width("64"), Err(Reason::Malformed(_))));
        assert_eq!(width("16"), Ok(16));
        assert_eq!(class_code("10802"), Ok("0x010802".into()));
        assert_eq!(uevent_field("PCI_ID=1\nPCI_IDX=2\n", "PCI_IDX"), Some("2"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[ -~/é]{0,60}", path in "(/[0-9a-f:.]{0,12}){0,40}") {
            let _ = (speed_mtps(&text), width(&text), numa_node(&text), class_code(&text));
            prop_assert!(function_dirs(&path, 8).len() <= 8);
        }
    }
}
