//! Slots, memory modules and processors as the firmware lists them (SMBIOS types 4, 16 and 17). Serial numbers
//! and asset tags are never looked at.

use std::collections::BTreeMap;

use serde::Serialize;

use super::smbios::{Structure, structures};
use crate::{Observed, Reader};

/// What the firmware says of memory. Fields it leaves out or fills with "unknown" are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modules {
    /// Processor sockets, populated or not.
    pub processors: Vec<Processor>,
    /// Memory arrays: usually one for the board or one for each socket.
    pub arrays: Vec<MemoryArray>,
    /// Slots for system memory, empty ones too.
    pub slots: Vec<Slot>,
}

/// A processor socket (SMBIOS type 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// What the board calls it.
    pub socket: Option<String>,
    /// The CPU's name.
    pub name: Option<String>,
    /// Whether there is a CPU in it.
    pub populated: bool,
}

/// A set of slots (SMBIOS type 16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryArray {
    /// `none`, `parity`, `single-bit ECC`, `multi-bit ECC`, `CRC`.
    pub error_correction: Option<&'static str>,
    /// How many slots there are.
    pub slots: Option<u32>,
}

/// A slot (SMBIOS type 17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// What the board calls it.
    pub locator: Option<String>,
    /// What the firmware says of its place.
    pub bank: Option<String>,
    /// The memory channel (with its socket), when locator or bank tell it; a guess, since every maker writes
    /// them in his own way.
    pub channel: Option<String>,
    /// What is in it.
    pub module: Option<MemoryModule>,
}

/// A memory module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryModule {
    /// Size in MiB.
    pub size_mib: u64,
    /// `DDR4`, `DDR5` …
    pub technology: Option<&'static str>,
    /// What the module could do, in mega-transfers per second.
    pub rated_mtps: Option<u32>,
    /// What it is run at.
    pub configured_mtps: Option<u32>,
    /// Ranks.
    pub ranks: Option<u32>,
    /// Maker.
    pub manufacturer: Option<String>,
    /// Part number.
    pub part_number: Option<String>,
    /// Whether it is persistent memory and no DRAM.
    pub persistent: bool,
}

impl Modules {
    /// The modules of DRAM, with their slots. High-bandwidth memory inside the CPU is listed like modules too, and
    /// is none.
    pub fn installed(&self) -> impl Iterator<Item = (&Slot, &MemoryModule)> {
        self.slots
            .iter()
            .filter_map(|slot| Some((slot, slot.module.as_ref()?)))
            .filter(|(_, module)| !module.persistent)
            .filter(|(_, module)| !module.technology.is_some_and(|name| name.starts_with("HBM")))
    }

    /// How many sockets have a CPU.
    pub fn populated_sockets(&self) -> usize {
        self.processors.iter().filter(|processor| processor.populated).count()
    }

    /// Slots by channel, each with how many of its slots hold a module. None when the channel of any slot is
    /// unknown.
    pub fn channels(&self) -> Option<BTreeMap<&str, usize>> {
        let mut channels = BTreeMap::new();
        for slot in &self.slots {
            *channels.entry(slot.channel.as_deref()?).or_insert(0) += usize::from(slot.module.is_some());
        }
        (!channels.is_empty()).then_some(channels)
    }
}

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Modules> {
    reader.bytes("/sys/firmware/dmi/tables/DMI").parse(|bytes| {
        let modules = parse(&bytes);
        if modules.slots.is_empty() { Err("the table lists no memory slot".to_owned()) } else { Ok(modules) }
    })
}

fn parse(table: &[u8]) -> Modules {
    let all = structures(table);
    let of_kind = |kind: u8| all.iter().filter(move |structure| structure.kind == kind);
    let arrays: Vec<&Structure<'_>> =
        of_kind(16).filter(|array| array.byte(5) == Some(SYSTEM_MEMORY)).collect();
    let handles: Vec<u16> = arrays.iter().filter_map(|array| array.handle()).collect();
    // Slots of flash or video memory belong to other arrays.
    let in_system = |slot: &&Structure<'_>| slot.word(4).is_some_and(|array| handles.contains(&array));
    let mut slots: Vec<Slot> = of_kind(17).filter(in_system).map(slot).collect();
    drop_impossible_channels(&mut slots);
    Modules {
        processors: of_kind(4)
            .filter(|structure| structure.byte(5) == Some(CENTRAL_PROCESSOR))
            .map(processor)
            .collect(),
        arrays: arrays.into_iter().map(array).collect(),
        slots,
    }
}

const SYSTEM_MEMORY: u8 = 3;
const CENTRAL_PROCESSOR: u8 = 3;

fn processor(structure: &Structure<'_>) -> Processor {
    Processor {
        socket: structure.string(4),
        name: structure.string(0x10),
        populated: structure.byte(0x18).is_some_and(|status| status & 0x40 != 0),
    }
}

fn array(structure: &Structure<'_>) -> MemoryArray {
    MemoryArray {
        error_correction: match structure.byte(6) {
            Some(3) => Some("none"),
            Some(4) => Some("parity"),
            Some(5) => Some("single-bit ECC"),
            Some(6) => Some("multi-bit ECC"),
            Some(7) => Some("CRC"),
            _ => None,
        },
        slots: structure.word(0x0d).map(u32::from),
    }
}

fn slot(structure: &Structure<'_>) -> Slot {
    let (locator, bank) = (structure.string(0x10), structure.string(0x11));
    Slot {
        channel: channel(locator.as_deref().unwrap_or(""), bank.as_deref().unwrap_or("")),
        locator,
        bank,
        module: module(structure),
    }
}

fn module(structure: &Structure<'_>) -> Option<MemoryModule> {
    Some(MemoryModule {
        size_mib: size_mib(structure)?,
        technology: technology(structure.byte(0x12)?),
        rated_mtps: speed(structure, 0x15, 0x54),
        configured_mtps: speed(structure, 0x20, 0x58),
        ranks: structure.byte(0x1b).map(|attributes| u32::from(attributes & 0x0f)).filter(|ranks| *ranks > 0),
        manufacturer: structure.string(0x17),
        part_number: structure.string(0x1a),
        // NVDIMM and Intel's persistent memory.
        persistent: structure.byte(0x28).is_some_and(|technology| (4..=7).contains(&technology)),
    })
}

/// Size: 0 is an empty slot, 0xFFFF unknown, 0x7FFF "see the extended size", bit 15 kB instead of MB.
fn size_mib(structure: &Structure<'_>) -> Option<u64> {
    match structure.word(0x0c)? {
        0 | 0xffff => None,
        0x7fff => Some(u64::from(structure.double(0x1c)? & 0x7fff_ffff)).filter(|size| *size > 0),
        kib if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) / 1024).filter(|size| *size > 0),
        mib => Some(u64::from(mib)),
    }
}

/// Speed: 0 is unknown, 0xFFFF "see the extended speed".
fn speed(structure: &Structure<'_>, offset: usize, extended: usize) -> Option<u32> {
    match structure.word(offset)? {
        0 => None,
        0xffff => structure.double(extended).map(|speed| speed & 0x7fff_ffff).filter(|speed| *speed > 0),
        mtps => Some(u32::from(mtps)),
    }
}

fn technology(code: u8) -> Option<&'static str> {
    Some(match code {
        0x12 => "DDR",
        0x13 => "DDR2",
        0x14 => "DDR2 FB-DIMM",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x1f => "non-volatile",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => return None,
    })
}

/// The channel as far as names tell it, with everything before it, so that sockets and controllers stay apart:
/// `P0_Node0_Channel1_Dimm0` gives `P0_Node0_Channel1`, `P1-DIMMA2` gives `P1-DIMMA`.
fn channel(locator: &str, bank: &str) -> Option<String> {
    [bank, locator].into_iter().find_map(named_channel).or_else(|| lettered_channel(locator))
}

/// `… Channel X …`, `… Chan#X …`.
fn named_channel(text: &str) -> Option<String> {
    let upper = text.to_ascii_uppercase();
    let word = ["CHANNEL", "CHAN"].into_iter().find(|word| upper.contains(word))?;
    let start = upper.find(word)?.saturating_add(word.len());
    let rest = upper.get(start..)?;
    let name_at = rest.find(|letter: char| letter.is_ascii_alphanumeric())?;
    let name = rest.get(name_at..)?;
    let length = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
    // Longer words are no channel names: `CHANNEL DIMM0`.
    (length <= 2)
        .then(|| upper.get(..start.saturating_add(name_at).saturating_add(length)).map(str::to_owned))?
}

/// `…DIMM…` with a lone letter before the number at the end.
fn lettered_channel(locator: &str) -> Option<String> {
    let upper = locator.to_ascii_uppercase();
    let stem = upper.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if stem.len() == upper.len() || !stem.contains("DIMM") || stem.ends_with("DIMM") {
        return None;
    }
    let mut letters = stem.chars().rev();
    let last = letters.next()?;
    let before = letters.next()?;
    let alone = !before.is_ascii_alphanumeric()
        || stem.get(..stem.len() - 1).is_some_and(|rest| rest.ends_with("DIMM"));
    (last.is_ascii_uppercase() && alone).then(|| stem.to_owned())
}

/// No channel has more than three slots: where names seem to say so, they mean something else (on older Dell
/// servers the letter of `DIMM_A7` is the socket).
fn drop_impossible_channels(slots: &mut [Slot]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for slot in slots.iter() {
        if let Some(channel) = &slot.channel {
            *counts.entry(channel.clone()).or_insert(0) += 1;
        }
    }
    if counts.values().any(|count| *count > 3) {
        for slot in slots.iter_mut() {
            slot.channel = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::smbios, *};

    /// A type 17 structure of 0x28 bytes: array handle, size, speeds, rank; strings locator and bank.
    pub(super) fn slot_fields(size: u16, rated: u16, configured: u16) -> Vec<u8> {
        let mut fields = vec![0_u8; 0x28 - 4];
        let mut put =
            |offset: usize, bytes: &[u8]| fields[offset - 4..offset - 4 + bytes.len()].copy_from_slice(bytes);
        put(0x0c, &size.to_le_bytes());
        put(0x10, &[1, 2]);
        put(0x12, &[0x1a]);
        put(0x15, &rated.to_le_bytes());
        put(0x1b, &[2]);
        put(0x1c, &65_536_u32.to_le_bytes());
        put(0x20, &configured.to_le_bytes());
        fields
    }

    #[test]
    fn reads_slots() {
        let array = [3, SYSTEM_MEMORY, 6, 0, 0, 0, 0, 0, 0, 3, 0];
        let table = smbios::table(&[
            (16, &array, &[]),
            (17, &slot_fields(0x7fff, 3200, 2933), &["DIMM 0", "P0 CHANNEL A"]),
            (17, &slot_fields(16_384, 0, 0), &["DIMM 0", "P0 CHANNEL B"]),
            (17, &slot_fields(0, 0, 0), &["DIMM 0", "P0 CHANNEL C"]),
        ]);
        let modules = parse(&table);
        assert_eq!(modules.arrays[0].error_correction, Some("multi-bit ECC"));
        let sizes: Vec<_> = modules.installed().map(|(_, module)| module.size_mib).collect();
        assert_eq!(sizes, [65_536, 16_384]);
        let first = modules.slots[0].module.as_ref().unwrap();
        assert_eq!((first.rated_mtps, first.configured_mtps, first.ranks), (Some(3200), Some(2933), Some(2)));
        assert_eq!(modules.slots[1].module.as_ref().unwrap().rated_mtps, None);
        assert_eq!(modules.channels().unwrap().into_values().collect::<Vec<_>>(), [1, 1, 0]);
    }

    #[test]
    fn channels_by_name() {
        let of = |locator: &str, bank: &str| channel(locator, bank);
        assert_eq!(of("DIMM 0", "P0 CHANNEL A").as_deref(), Some("P0 CHANNEL A"));
        assert_eq!(of("P1-DIMMA1", "P0_Node0_Channel0_Dimm0").as_deref(), Some("P0_NODE0_CHANNEL0"));
        assert_eq!(of("P1-DIMMB2", "").as_deref(), Some("P1-DIMMB"));
        assert_eq!(of("CPU1_DIMM_C1", "NODE 1").as_deref(), Some("CPU1_DIMM_C"));
        for (locator, bank) in
            [("A1", ""), ("DIMM1", "BANK 0"), ("DIMM 12", ""), ("PROC 1 DIMM 3", ""), ("", "")]
        {
            assert_eq!(of(locator, bank), None, "{locator}");
        }
    }

    #[test]
    fn a_letter_that_means_the_socket() {
        let slot = |number: u32| Slot {
            locator: None,
            bank: None,
            channel: channel(&format!("DIMM_A{number}"), ""),
            module: None,
        };
        let mut slots: Vec<Slot> = (1..=6).map(slot).collect();
        assert!(slots[0].channel.is_some());
        drop_impossible_channels(&mut slots);
        assert!(slots.iter().all(|slot| slot.channel.is_none()));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "\\PC{0,30}") {
            let _ = parse(&bytes);
            let _ = channel(&text, &text);
            let mut table = smbios::table(&[(16, &[3, 3, 6, 0, 0, 0, 0, 0, 0, 3, 0], &[])]);
            table.extend_from_slice(&[17, 40]);
            table.extend_from_slice(&bytes);
            let _ = parse(&table);
        }
    }
}
