//! Serial numbers, asset tags and UUIDs in an SMBIOS table (DMTF DSP0134), rewritten in place: every length stays, so
//! that the table still parses.

use std::ops::Range;

use super::{literals::is_filler, stand_ins::StandIns};

/// Where one structure lies in the table.
struct Place {
    kind: u8,
    formatted: Range<usize>,
    strings: Range<usize>,
}

/// No table has more structures.
const STRUCTURE_LIMIT: usize = 16_384;
const END_OF_TABLE: u8 = 127;
/// From here on the makers define what structures mean.
const FIRST_OF_MAKERS: u8 = 128;

fn places(table: &[u8]) -> Vec<Place> {
    let mut found = Vec::new();
    let mut start = 0_usize;
    while found.len() < STRUCTURE_LIMIT {
        let (Some(kind), Some(length)) = (table.get(start), table.get(start + 1)) else { break };
        let strings = start + usize::from(*length);
        let Some(tail) = table.get(strings..).filter(|_| *length >= 4) else { break };
        let Some(end) = tail.windows(2).position(|pair| pair == [0, 0]) else { break };
        let after = strings + end + 2;
        found.push(Place { kind: *kind, formatted: start..strings, strings: strings..after });
        if *kind == END_OF_TABLE {
            break;
        }
        start = after;
    }
    found
}

/// Offsets of the string numbers to hide in structures of a kind.
fn hidden_strings(kind: u8) -> &'static [usize] {
    match kind {
        1 | 22 => &[7],
        2 | 3 => &[7, 8],
        4 => &[0x20, 0x21],
        17 => &[0x18, 0x19],
        39 => &[8, 9],
        _ => &[],
    }
}

/// Kinds whose strings are free text of the maker's: OEM strings, configuration options.
fn hides_all_strings(kind: u8) -> bool {
    kind == 11 || kind == 12 || (FIRST_OF_MAKERS..).contains(&kind)
}

/// Where the strings to hide lie.
fn secret_ranges(table: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for place in places(table) {
        let mut strings = Vec::new();
        let mut at = place.strings.start;
        for text in table.get(place.strings.clone()).unwrap_or(&[]).split(|byte| *byte == 0) {
            strings.push(at..at + text.len());
            at += text.len() + 1;
        }
        if hides_all_strings(place.kind) {
            found.extend(strings);
            continue;
        }
        for offset in hidden_strings(place.kind) {
            let number = place.formatted.clone().nth(*offset).and_then(|at| table.get(at));
            let index = number.and_then(|number| usize::from(*number).checked_sub(1));
            found.extend(index.and_then(|index| strings.get(index)).cloned());
        }
    }
    found.retain(|range| !range.is_empty());
    found
}

/// The serial numbers and tags of a table, to be found elsewhere too.
pub(super) fn secrets(table: &[u8]) -> Vec<String> {
    let text = |range: Range<usize>| Some(std::str::from_utf8(table.get(range)?).ok()?.trim().to_owned());
    secret_ranges(table).into_iter().filter_map(text).filter(|text| !is_filler(text)).collect()
}

pub(super) fn rewrite(mut table: Vec<u8>, stand_ins: &mut StandIns) -> Vec<u8> {
    for range in secret_ranges(&table) {
        let Some(bytes) = table.get_mut(range) else { continue };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let value = text.trim();
        if value.is_empty() || is_filler(value) {
            continue;
        }
        // Blanks around the value stay, so that it is the same as in sysfs, where they are cut off.
        let start = text.len() - text.trim_start().len();
        let stand_in = stand_ins.serial(value);
        let whole = text.len() == bytes.len() && value.len() == stand_in.len();
        match bytes.get_mut(start..start + value.len()) {
            Some(place) if whole => place.copy_from_slice(stand_in.as_bytes()),
            _ => bytes.fill(b'0'),
        }
    }
    for place in places(&table) {
        match place.kind {
            1 => hide_uuid(table.get_mut(place.formatted.start + 8..place.formatted.end), stand_ins),
            // What makers define, and the description of the management controller's own network.
            42 | FIRST_OF_MAKERS.. => {
                if let Some(bytes) = table.get_mut(place.formatted.start + 4..place.formatted.end) {
                    bytes.fill(0);
                }
            }
            _ => {}
        }
    }
    table
}

/// The bytes of a UUID in the order in which they are written as text.
const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

/// The UUID of type 1. Its first three fields are little-endian, in the table as in `product_uuid`.
fn hide_uuid(bytes: Option<&mut [u8]>, stand_ins: &mut StandIns) {
    let Some(bytes) = bytes.and_then(|bytes| bytes.get_mut(..16)) else { return };
    if bytes.iter().all(|byte| *byte == 0) || bytes.iter().all(|byte| *byte == 0xff) {
        return;
    }
    let ordered = ORDER.iter().filter_map(|at| bytes.get(*at));
    let value = ordered.fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
    let digits = format!("{value:032x}");
    let groups =
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| digits.get(group).unwrap_or("").to_owned());
    let digits = stand_ins.uuid(&groups.join("-")).replace('-', "");
    for (index, at) in ORDER.iter().enumerate() {
        let pair = digits.get(index * 2..index * 2 + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        if let (Some(byte), Some(value)) = (bytes.get_mut(*at), pair) {
            *byte = value;
        }
    }
}
