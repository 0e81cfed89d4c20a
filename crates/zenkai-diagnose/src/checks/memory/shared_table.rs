//! For tests: machines with an SMBIOS table.

use zenkai_host::FakeHost;

/// A type 17 structure: bank, size in MiB (0 is an empty slot), rated and configured speed.
pub(super) fn slot(bank: &str, size_mib: u16, rated: u16, configured: u16) -> Vec<u8> {
    let mut bytes = vec![0_u8; 0x28];
    bytes[..2].copy_from_slice(&[17, 0x28]);
    bytes[4..6].copy_from_slice(&[1, 0]);
    bytes[0x0c..0x0e].copy_from_slice(&size_mib.to_le_bytes());
    bytes[0x11] = 1;
    bytes[0x12] = 0x1a;
    bytes[0x15..0x17].copy_from_slice(&rated.to_le_bytes());
    bytes[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
    bytes.extend(bank.as_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// A machine with one socket with this CPU, and these slots.
pub(super) fn host(cpu: &str, slots: &[Vec<u8>]) -> FakeHost {
    // A processor (type 4): central, populated, named by its first string.
    let mut table = vec![0_u8; 0x30];
    table[..2].copy_from_slice(&[4, 0x30]);
    table[5] = 3;
    table[0x10] = 1;
    table[0x18] = 0x41;
    table.extend(if cpu.is_empty() { "?" } else { cpu }.as_bytes());
    table.extend([0, 0]);
    // An array of system memory (type 16) with handle 1.
    table.extend([16, 0x0f, 1, 0, 3, 3, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    table.extend(slots.concat());
    table.extend([127, 4, 9, 0, 0, 0]);
    FakeHost::new(&[]).bytes("/sys/firmware/dmi/tables/DMI", &table)
}
