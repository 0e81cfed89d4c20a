//! Lists of CPUs: `0-3,6`, masks `0xf,,6`, exceptions `^3` and `!3`, quotes around the whole.
//!
//! A list with a part that is no number counts as empty, as in tuned; the note says so.

use std::collections::BTreeSet;

use zenkai_facts::CpuSet;

use super::{Answer, Functions, Refusal, python_int, unexpanded};

/// Larger CPU numbers are refused (the kernel's `NR_CPUS` ends at 8 192).
const NUMBER_LIMIT: u32 = 65_536;

/// Reads a list.
pub(crate) fn parse(text: &str) -> Result<CpuSet, String> {
    let text = text.trim_matches(['\'', '"']);
    let (mut wanted, mut excepted) = (BTreeSet::new(), BTreeSet::new());
    let mut parts = text.split(',');
    while let Some(part) = parts.next() {
        if is_mask(part) {
            // A mask has commas of its own and ends at an empty part.
            let digits: String =
                std::iter::once(part).chain(parts.by_ref().take_while(|part| !part.is_empty())).collect();
            wanted.extend(mask(&digits)?.iter());
        } else if let Some(range) = part.strip_prefix(['^', '!']) {
            excepted.extend(numbers(range)?);
        } else if !part.is_empty() {
            wanted.extend(numbers(part)?);
        }
    }
    Ok(wanted.difference(&excepted).copied().collect())
}

fn is_mask(text: &str) -> bool {
    text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
}

fn numbers(text: &str) -> Result<std::ops::RangeInclusive<u32>, String> {
    let bad = || format!("`{}` is no CPU list", text.chars().take(40).collect::<String>());
    // What follows a second hyphen is not looked at.
    let mut ends = text.split('-');
    let first = ends.next().unwrap_or_default();
    let number = |text: &str| {
        let number = u32::try_from(python_int(text)?).ok()?;
        (number < NUMBER_LIMIT).then_some(number)
    };
    let first = number(first).ok_or_else(bad)?;
    let last = ends.next().map_or(Some(first), number).ok_or_else(bad)?;
    Ok(first..=last)
}

/// The CPUs of a hexadecimal mask of any length, with or without `0x` and commas.
fn mask(text: &str) -> Result<CpuSet, String> {
    let digits = text.trim().replace([',', '_'], "");
    let digits = if is_mask(&digits) { &digits[2..] } else { &digits };
    let longest = usize::try_from(NUMBER_LIMIT / 4).unwrap_or(usize::MAX);
    if digits.is_empty() || digits.len() > longest || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("`{}` is no hexadecimal mask", text.chars().take(40).collect::<String>()));
    }
    let nibbles = digits.chars().rev().map(|digit| digit.to_digit(16).unwrap_or(0)).zip((0_u32..).step_by(4));
    Ok(nibbles
        .flat_map(|(bits, base)| (0..4).filter(move |bit| bits & (1 << bit) != 0).map(move |bit| base + bit))
        .collect())
}

/// Groups of eight hexadecimal digits, highest first, as the kernel writes masks.
pub(crate) fn to_hex(set: &CpuSet) -> String {
    let words = set.iter().last().map_or(1, |last| last / 32 + 1);
    let word = |index: u32| {
        (0..32).filter(|bit| set.contains(index * 32 + bit)).fold(0_u32, |word, bit| word | (1 << bit))
    };
    (0..words).rev().map(|index| format!("{:08x}", word(index))).collect::<Vec<_>>().join(",")
}

pub(crate) fn plain(set: &CpuSet) -> String {
    set.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

/// The list in the arguments. A malformed list is an empty one; `separator` keeps a mask from running into the next
/// argument (two functions of tuned do not).
fn read(arguments: &[String], separator: &str, notes: &mut Vec<String>) -> CpuSet {
    parse(&arguments.join(separator)).unwrap_or_else(|why| {
        notes.push(format!("{why}; taken as an empty list"));
        CpuSet::default()
    })
}

fn kernel_list(on: &Functions<'_>, name: &str) -> Result<CpuSet, Refusal> {
    let path = format!("/sys/devices/system/cpu/{name}");
    on.text(&path)?.parse().map_err(|why| Refusal::Unexpanded(format!("{path}: {why}")))
}

pub(super) fn unpack(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(plain(&read(arguments, ",,", notes)))
}

pub(super) fn pack(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(read(arguments, ",,", notes).to_string())
}

pub(super) fn invert(on: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(plain(&kernel_list(on, "online")?.difference(&read(arguments, ",,", notes))))
}

pub(super) fn online(on: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(plain(&kernel_list(on, "online")?.intersection(&read(arguments, ",", notes))))
}

pub(super) fn present(on: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(plain(&kernel_list(on, "present")?.intersection(&read(arguments, ",,", notes))))
}

pub(super) fn devices(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    let names = |set: CpuSet| set.iter().map(|cpu| format!("cpu{cpu}")).collect::<Vec<_>>().join(",");
    Ok(names(read(arguments, ",", notes)))
}

pub(super) fn hex(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(to_hex(&read(arguments, ",,", notes)))
}

pub(super) fn hex_invert(on: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    Ok(to_hex(&kernel_list(on, "online")?.difference(&read(arguments, ",,", notes))))
}

pub(super) fn from_hex(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    let [text] = arguments else { return unexpanded("one mask is wanted") };
    Ok(plain(&mask(text).unwrap_or_else(|why| {
        notes.push(format!("{why}; taken as an empty one"));
        CpuSet::default()
    })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;
    use crate::profile::functions::testing::call;

    #[test]
    fn lists_as_tuned_gives_them() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/present", "0-7\n"),
        ]);
        for (text, wanted) in [
            ("cpulist_unpack:0-3,^1", "0,2,3"),
            ("cpulist_unpack:0-5,!1-3", "0,4,5"),
            ("cpulist_unpack:0xf,,6", "0,1,2,3,6"),
            ("cpulist_unpack:0-1:0x10:7", "0,1,4,7"),
            ("cpulist_unpack:3-1", ""),
            ("cpulist_unpack:x,1", ""),
            ("cpulist_pack:\"0,1,2\"", "0-2"),
            ("cpulist_pack:5,1,0", "0-1,5"),
            ("cpulist_pack:", ""),
            ("cpulist_invert:0,2", "1,3"),
            ("cpulist_online:2,3,4", "2,3"),
            ("cpulist_present:2,9", "2"),
            ("cpulist2devs:0-1", "cpu0,cpu1"),
            ("cpulist2hex:", "00000000"),
            ("cpulist2hex:0-3,32", "00000001,0000000f"),
            ("cpulist2hex_invert:0", "0000000e"),
            ("hex2cpulist:0000000f,00000001", "0,32,33,34,35"),
            ("hex2cpulist:0x5", "0,2"),
            ("hex2cpulist:zz", ""),
            ("cpulist_unpack:0-4294967295", ""),
        ] {
            assert_eq!(call(&host, None, text), wanted, "{text}");
        }
        assert!(
            call(&FakeHost::new(&[]), None, "cpulist_invert:1")
                .starts_with("!function `cpulist_invert`: /sys")
        );
    }

    proptest! {
        #[test]
        fn hex_and_list_round_trip(cpus in proptest::collection::btree_set(0_u32..300, 0..40)) {
            let set: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(&mask(&to_hex(&set)).unwrap(), &set);
            prop_assert_eq!(&parse(&set.to_string()).unwrap(), &set);
        }

        #[test]
        fn any_list_is_read_or_refused(text in r"[0-9a-fx,^!' -]{0,40}") {
            let _ = parse(&text);
        }
    }
}
