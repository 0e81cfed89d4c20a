//! Sets of CPU (or node) numbers and the kernel's two spellings of them.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::{Serialize, Serializer};

/// Larger numbers are refused: the kernel's own limit is 8 192 CPUs (`NR_CPUS`), and a hostile list such as
/// `0-4294967295` must not eat our memory.
const NUMBER_LIMIT: u32 = 65_536;

/// A set of CPU numbers, kept as sorted ranges that do not touch. Written and serialised as the kernel's list
/// form (`0-3,8`).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    ranges: Vec<(u32, u32)>,
}

impl CpuSet {
    /// The numbers from the first to the last.
    pub fn range(range: RangeInclusive<u32>) -> Self {
        range.collect()
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|(first, last)| (last - first) as usize + 1).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < number);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// What is in any of the sets.
    pub fn union<'s>(sets: impl IntoIterator<Item = &'s Self>) -> Self {
        Self::from_ranges(sets.into_iter().flat_map(|set| set.ranges.iter().copied()).collect())
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let mut holes = other.ranges.iter().peekable();
        for &(first, last) in &self.ranges {
            let mut rest = Some(first);
            while let (Some(from), Some(&&(hole, end))) = (rest, holes.peek()) {
                if hole > last {
                    break;
                }
                if from < hole {
                    ranges.push((from, hole - 1));
                }
                rest = (end < last).then(|| from.max(end + 1));
                if end > last {
                    break;
                }
                holes.next();
            }
            ranges.extend(rest.map(|from| (from, last)));
        }
        Self { ranges }
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(&&one), Some(&&two)) = (left.peek(), right.peek()) {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last {
                ranges.push((first, last));
            }
            // The range that ends first cannot meet anything further.
            if one.1 < two.1 {
                left.next()
            } else {
                right.next()
            };
        }
        Self { ranges }
    }

    /// Whether all of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        // Ranges of a set do not touch, so each must lie within one of the other's.
        self.ranges.iter().all(|(first, last)| {
            let at = other.ranges.partition_point(|(_, end)| end < first);
            other.ranges.get(at).is_some_and(|(start, end)| start <= first && last <= end)
        })
    }

    /// Ranges in any order, overlapping ones too.
    fn from_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut set = Self::default();
        for (first, last) in ranges {
            match set.ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => set.ranges.push((first, last)),
            }
        }
        set
    }

    /// Parses the mask form of `/proc/irq/*/smp_affinity`: hexadecimal words of 32 bits, highest first,
    /// separated by commas.
    pub fn from_mask(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.trim().split(',').collect();
        if words.len() > (NUMBER_LIMIT / 32) as usize {
            return Err("a CPU mask of absurd length".to_owned());
        }
        let mut numbers = Vec::new();
        for (word, base) in words.iter().rev().zip((0_u32..).step_by(32)) {
            let bits = u32::from_str_radix(word, 16).map_err(|_| format!("`{text}` is no CPU mask"))?;
            numbers.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| base + bit));
        }
        Ok(numbers.into_iter().collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if number <= last.saturating_add(1) => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        Self { ranges }
    }
}

impl FromStr for CpuSet {
    type Err = String;

    /// Parses the list form: `0-3,8`, blank for the empty set.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{}` is no CPU list", text.chars().take(40).collect::<String>());
        let mut ranges = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| bad())?;
            let last: u32 = last.trim().parse().map_err(|_| bad())?;
            if first > last || last >= NUMBER_LIMIT {
                return Err(bad());
            }
            ranges.push((first, last));
        }
        Ok(Self::from_ranges(ranges))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            if first == last { write!(out, "{first}")? } else { write!(out, "{first}-{last}")? }
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_spellings() {
        assert_eq!("0-2, 4,3,9".parse::<CpuSet>().unwrap().to_string(), "0-4,9");
        assert_eq!("\n".parse::<CpuSet>().unwrap().len(), 0);
        assert_eq!(CpuSet::from_mask("1,0000000f\n").unwrap().to_string(), "0-3,32");
        for bad in ["3-1", "x", "0-4294967295", "-1", "1-"] {
            assert!(bad.parse::<CpuSet>().is_err(), "{bad}");
        }
        assert!(CpuSet::from_mask("xyz").is_err());
    }

    proptest! {
        #[test]
        fn algebra_as_a_tree_does_it(
            left in proptest::collection::btree_set(0_u32..90, 0..60),
            right in proptest::collection::btree_set(0_u32..90, 0..60),
        ) {
            let of = |numbers: &BTreeSet<u32>| numbers.iter().copied().collect::<CpuSet>();
            let (one, two) = (of(&left), of(&right));
            prop_assert_eq!(one.difference(&two), of(&(&left - &right)));
            prop_assert_eq!(one.intersection(&two), of(&(&left & &right)));
            prop_assert_eq!(CpuSet::union([&one, &two]), of(&(&left | &right)));
            prop_assert_eq!(one.is_subset(&two), left.is_subset(&right));
            prop_assert!(one.intersection(&two).is_subset(&two));
            for number in 0..92 {
                prop_assert_eq!(one.contains(number), left.contains(&number));
            }
        }

        #[test]
        fn list_form_round_trips(numbers in proptest::collection::btree_set(0_u32..500, 0..60)) {
            let set: CpuSet = numbers.iter().copied().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), numbers.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len(), numbers.len());
        }
    }
}
