//! Gives a stock kernel CPU features that QEMU's emulator cannot announce, by editing one table of data in vmlinux
//! (the rows of `cpuid_bits`: feature, register, bit, leaf, subleaf). No code is changed. An edited row says "this
//! feature is bit 0 of CPUID leaf 1, EDX", which every CPU sets.

/// The kernel's numbers (32 * word + bit) of the features that can be asked for, as of Linux 6.1.
const FEATURES: [(&str, u16); 8] = [
    ("aperfmperf", 3 * 32 + 28),
    ("nonstop_tsc", 3 * 32 + 24),
    ("cpb", 7 * 32 + 2),
    ("epb", 7 * 32 + 3),
    ("hw_pstate", 7 * 32 + 8),
    ("dtherm", 14 * 32),
    ("ida", 14 * 32 + 1),
    ("hwp", 14 * 32 + 7),
];
const ROW: usize = 12;

fn row(feature: u16, register: u8, bit: u8, leaf: u32) -> [u8; ROW] {
    let mut bytes = [0; ROW];
    bytes[..2].copy_from_slice(&feature.to_le_bytes());
    bytes[2] = register;
    bytes[3] = bit;
    bytes[4..8].copy_from_slice(&leaf.to_le_bytes());
    bytes
}

/// Edits the image of a kernel; says why if it cannot.
pub(crate) fn patch(image: &mut [u8], wanted: &[String]) -> Result<(), String> {
    let number = |name: &str| FEATURES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    // The table begins with aperfmperf: leaf 6, ECX (register 2), bit 0.
    let first = row(number("aperfmperf").unwrap_or_default(), 2, 0, 6);
    let mut found = image.windows(ROW).enumerate().filter(|(_, window)| *window == first).map(|(at, _)| at);
    let (Some(start), None) = (found.next(), found.next()) else {
        return Err("the kernel's table of CPU features was not found exactly once".into());
    };
    let leaf = |image: &[u8], at: usize| {
        image.get(at + 4..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let rows: Vec<usize> = (start..image.len()).step_by(ROW).take_while(|&at| leaf(image, at) != 0).collect();
    // Rows for features that no guest of ours has: free to be used for those that are not in the table.
    let mut spare: Vec<usize> = rows
        .iter()
        .copied()
        .filter(|&at| matches!(leaf(image, at), 0xf | 0x10 | 0x12 | 0x8000_001f | 0x8000_0021 | 0x8000_0022))
        .collect();
    for name in wanted {
        let number = number(name).ok_or_else(|| format!("unknown CPU feature {name:?}"))?;
        let own = rows.iter().copied().find(|&at| image[at..at + 2] == number.to_le_bytes());
        let at = own.or_else(|| spare.pop()).ok_or("too many CPU features asked for")?;
        image[at..at + ROW].copy_from_slice(&row(number, 3, 0, 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{patch, row};

    fn table() -> Vec<u8> {
        let mut image = vec![9; 100];
        for bytes in [row(124, 2, 0, 6), row(227, 2, 3, 6), row(500, 1, 0, 0x10), [0; 12]] {
            image.extend(bytes);
        }
        image
    }

    #[test]
    fn own_rows_are_edited_and_spare_ones_taken() {
        let mut image = table();
        patch(&mut image, &["epb".into(), "cpb".into()]).unwrap();
        assert_eq!(image[112..124], row(227, 3, 0, 1));
        assert_eq!(image[124..136], row(226, 3, 0, 1));
        assert_eq!(image[100..112], row(124, 2, 0, 6), "others are left alone");
    }

    #[test]
    fn it_refuses_what_it_does_not_know() {
        assert!(patch(&mut [0; 64], &[]).is_err());
        assert!(patch(&mut table(), &["warp".into()]).is_err());
        assert!(
            patch(&mut table(), &["epb".into(), "cpb".into(), "ida".into()]).is_err(),
            "one spare row only"
        );
    }
}
