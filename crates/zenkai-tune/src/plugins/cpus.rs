//! CPU lists as profiles spell them, and masks as the kernel shows them.

use zenkai_facts::CpuSet;

/// A list as tuned's profiles may have it: `0-3,6`, `^2` or `!2` to leave one out, `0xf,,6` where a mask stands among
/// the numbers (its words joined by commas, ended by an empty part), in quotes or not. The parts may be separated by
/// blanks too.
pub(crate) fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    let text = text.trim().trim_matches(['"', '\'']).replace([' ', '\t', '\n'], ",");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut parts = text.split(',').map(str::trim).peekable();
    while let Some(part) = parts.next() {
        if let Some(first) = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
            let mut mask = first.to_owned();
            while let Some(word) = parts.next_if(|word| !word.is_empty()) {
                mask.extend([",", word]);
            }
            with.push(parse_mask(&mask)?);
        } else if let Some(one) = part.strip_prefix(['^', '!']) {
            without.push(one.parse()?);
        } else if !part.is_empty() {
            with.push(part.parse()?);
        }
    }
    Ok(CpuSet::union(&with).difference(&CpuSet::union(&without)))
}

/// A mask with or without `0x`, with or without commas.
pub(crate) fn parse_mask(text: &str) -> Result<CpuSet, String> {
    let digits = text.trim().trim_start_matches("0x").trim_start_matches("0X");
    if digits.contains(',') {
        return CpuSet::from_mask(digits);
    }
    let bytes = digits.as_bytes();
    if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_hexdigit) {
        return Err(format!("`{}` is no CPU mask", text.chars().take(40).collect::<String>()));
    }
    let words: Vec<String> =
        bytes.rchunks(8).rev().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    CpuSet::from_mask(&words.join(","))
}

/// The set as a mask, written with as many digits as the one that the kernel shows now: it prints a digit for every
/// four CPUs it could have, in words of eight (`bitmap_print_to_pagebuf()`).
pub(crate) fn mask_like(set: &CpuSet, shown: &str) -> String {
    let digits = shown.bytes().filter(u8::is_ascii_hexdigit).count();
    let needed = set.iter().last().map_or(1, |last| usize::try_from(last / 4 + 1).unwrap_or(1));
    let digits = digits.max(needed);
    let mut nibbles = vec![0_u8; digits];
    for cpu in set.iter() {
        if let Some(nibble) =
            usize::try_from(cpu / 4).ok().and_then(|place| nibbles.get_mut(digits - 1 - place))
        {
            *nibble |= 1 << (cpu % 4);
        }
    }
    let mut text = String::with_capacity(digits + digits / 8);
    for (at, nibble) in nibbles.into_iter().enumerate() {
        if at > 0 && (digits - at) % 8 == 0 {
            text.push(',');
        }
        text.extend(char::from_digit(nibble.into(), 16));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_lists() {
        for (text, expected) in [
            ("0-3,6", "0-3,6"),
            ("\"1, 2\"", "1-2"),
            ("0xf,,6", "0-3,6"),
            ("0-4,^3", "0-2,4"),
            ("!1,0-2", "0,2"),
            ("0x1,00000001", "0,32"),
            ("0 2", "0,2"),
            ("", ""),
        ] {
            assert_eq!(parse_cpus(text).unwrap().to_string(), expected, "{text}");
        }
        for bad in ["x", "3-1", "0xg", "0-4294967295"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn masks_keep_the_kernels_width() {
        let set: CpuSet = "0-3,33".parse().unwrap();
        assert_eq!(mask_like(&set, "ffffffff,ffffffff"), "00000002,0000000f");
        assert_eq!(mask_like(&"1".parse().unwrap(), "0f"), "02");
        assert_eq!(mask_like(&set, "3"), "2,0000000f");
        assert_eq!(parse_mask("20000000f").unwrap(), set);
        assert_eq!(parse_mask("2,0000000f").unwrap(), set);
    }
}
