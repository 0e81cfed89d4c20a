//! An ACPI table that gives QEMU's processor objects P-states and C-states, and the machine a power meter.
//!
//! Every CPU's performance control and status register is one readable and writable byte-wide port that QEMU's i8257
//! DMA controller provides and nothing else uses (the DMA page registers): each CPU has a frequency of its own, and
//! what the driver wrote is what it reads back.

use std::fmt::Write as _;
use std::process::Command;

use crate::error::Doing;
use crate::hash::Hash;
use crate::spec::{Domain, Pstates};
use crate::{Cache, LabError};

const PORTS: [u16; 16] =
    [0x481, 0x482, 0x483, 0x487, 0x489, 0x48a, 0x48b, 0x48f, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8a, 0x8b, 0x8f];
/// MHz and mW of each P-state; the first is turbo.
const P_STATES: [(u32, u32); 7] =
    [(2701, 95000), (2700, 90000), (2400, 75000), (2000, 60000), (1600, 45000), (1200, 30000), (800, 20000)];
/// Wake-up latency in microseconds and mW of each C-state.
const C_STATES: [(u32, u32); 3] = [(1, 1000), (60, 500), (200, 100)];

/// The table for some CPUs, as ACPI source language. More CPUs than ports are left without P-states.
fn source(cpus: usize, pstates: Pstates) -> String {
    let cpus = cpus.min(PORTS.len());
    let mut asl =
        String::from("DefinitionBlock (\"\", \"SSDT\", 2, \"ZENKAI\", \"LABCPU\", 0x00000001)\n{\n");
    for cpu in 0..cpus {
        let _ = writeln!(asl, "External (\\_SB.CPUS.C{cpu:03X}, DeviceObj)");
    }
    for (cpu, port) in PORTS.iter().enumerate().take(cpus) {
        let pct = register("SystemIO", 8, *port, 1);
        let _ = writeln!(asl, "Scope (\\_SB.CPUS.C{cpu:03X}) {{\nName (_PCT, Package () {{ {pct}, {pct} }})");
        let rows: Vec<String> = P_STATES
            .iter()
            .enumerate()
            .map(|(k, (mhz, mw))| format!("Package () {{ {mhz}, {mw}, 10, 10, {k}, {k} }}"))
            .collect();
        let _ = writeln!(asl, "Name (_PSS, Package () {{ {} }})", rows.join(", "));
        asl.push_str("Name (XPPC, 0)\nMethod (_PPC, 0) { Return (XPPC) }\n");
        if pstates.cppc {
            asl.push_str(&cppc());
        }
        let (domain, members) = match pstates.domain {
            Domain::PerCpu => (cpu, 1),
            Domain::Pairs => (cpu / 2, 2),
            Domain::All => (0, cpus),
        };
        let _ =
            writeln!(asl, "Name (_PSD, Package () {{ Package () {{ 5, 0, {domain}, 0xFD, {members} }} }})");
        // Every state is "type 1, fixed hardware": Linux then enters each by HLT and an idle guest sleeps. An I/O
        // port would make the emulator spin.
        let rows: Vec<String> = C_STATES
            .iter()
            .map(|(us, mw)| {
                format!(
                    "Package () {{ ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}, 1, {us}, {mw} }}"
                )
            })
            .collect();
        let _ = writeln!(asl, "Name (_CST, Package () {{ {}, {} }})\n}}", rows.len(), rows.join(", "));
    }
    if pstates.power_meter {
        asl.push_str(&power_meter());
    }
    asl.push_str("}\n");
    asl
}

/// A power meter (ACPI 6.5, 10.4) that can measure and no more: milliwatts of the whole machine, anew each second. The two
/// ports are those of the last two CPUs that P-states have room for.
fn power_meter() -> String {
    let field = |name: &str, port: u16| {
        format!(
            "OperationRegion (R{name}, SystemIO, 0x{port:x}, 1)\n\
             Field (R{name}, ByteAcc, NoLock, Preserve) {{ V{name}, 8 }}\n"
        )
    };
    let [.., low, high] = PORTS;
    let (low, high) = (field("LOW", low), field("HIG", high));
    format!(
        "Scope (\\_SB) {{ Device (PMTR) {{\nName (_HID, \"ACPI000D\")\nName (_UID, 0)\n{low}{high}\
         Name (_PMC, Package () {{ 1, 0, 0, 95000, 1000, 1000, 1000, 0, 0, 0, 0, \"lab\", \"1\", \"zenkai\" }})\n\
         Method (_PMM, 0, Serialized) {{ Return ((VLOW + VHIG * 256) * 1000) }}\n\
         Method (_GAI) {{ Return (1000) }}\n\
         Name (_PMD, Package () {{}})\n}} }}\n"
    )
}

/// AMD's CPPC object; amd-pstate needs it together with MSRs 0xC00102B0 and following.
fn cppc() -> String {
    let none = register("SystemMemory", 0, 0_u16, 0);
    let msr = |address: u32| register("FFixedHW", 64, address, 4);
    let (request, delivered, reference) = (msr(0xC001_02B3), msr(0xE8), msr(0xE7));
    let (status, enable) = (msr(0xC001_02B4), msr(0xC001_02B1));
    format!(
        "Name (_CPC, Package () {{ 23, 3, 196, 140, 64, 32, {none}, {request}, {request}, {request}, {none}, {none}, \
         {none}, {reference}, {delivered}, {status}, {enable}, {none}, {none}, {none}, 140, 400, 2450 }})\n"
    )
}

fn register(space: &str, width: u8, address: impl Into<u32>, size: u8) -> String {
    format!("ResourceTemplate () {{ Register ({space}, {width}, 0, 0x{:x}, {size}) }}", address.into())
}

/// The compiled table, made once and kept.
pub(crate) fn compiled(cache: &Cache, cpus: usize, pstates: Pstates) -> Result<std::path::PathBuf, LabError> {
    let asl = source(cpus, pstates);
    let mut hash = Hash::new();
    hash.add(asl.as_bytes());
    cache.derived(&format!("cpu-{}.aml", hash.hex()), |to| {
        let dir = tempfile::tempdir().doing(|| "cannot make a temporary folder".into())?;
        let path = dir.path().join("cpu.asl");
        std::fs::write(&path, asl.as_bytes()).with_path("write", &path)?;
        let out =
            Command::new("iasl").arg("-p").arg(dir.path().join("cpu")).arg(&path).output().map_err(|_| {
                cache.missing(crate::Tier::Mini, "iasl (Debian package acpica-tools) is not installed")
            })?;
        if !out.status.success() {
            let what = String::from_utf8_lossy(&out.stdout).into_owned();
            return Err(LabError::BadFile { path: "the lab's ACPI table".into(), what });
        }
        std::fs::copy(dir.path().join("cpu.aml"), to).with_path("write", to)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::source;
    use crate::spec::{Domain, Pstates};

    #[test]
    fn each_cpu_has_a_port_of_its_own_and_its_domain() {
        let asl = source(4, Pstates { domain: Domain::Pairs, cppc: false, power_meter: false });
        assert_eq!(asl.matches("_PSS").count(), 4);
        assert_eq!(asl.matches("0x482").count(), 2, "control and status of CPU 1");
        assert!(asl.contains("Package () { 5, 0, 1, 0xFD, 2 }"));
        assert!(!asl.contains("_CPC"));
        assert!(
            source(1, Pstates { domain: Domain::All, cppc: true, power_meter: true }).contains("0xc00102b3")
        );
    }

    #[test]
    fn braces_match() {
        let asl = source(16, Pstates { domain: Domain::All, cppc: true, power_meter: true });
        assert_eq!(asl.matches('{').count(), asl.matches('}').count());
    }
}
