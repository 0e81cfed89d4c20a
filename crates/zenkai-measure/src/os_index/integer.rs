//! Integer arithmetic, comparisons and small memory: sort, sieve, hash, all written out here so that a new compiler's
//! library does not change the work.

use std::{hint::black_box, io};

use super::{Bench, Test};

/// Numbers to sort and to sieve.
const SIZE: usize = 1024;
/// What a round gives when it is right (computed by another program).
const EXPECTED: u32 = 0xf81f_e223;

pub(super) struct Integer;

impl Test for Integer {
    fn name(&self) -> &'static str {
        "integer"
    }

    fn what(&self) -> &'static str {
        "rounds of sorting 1024 numbers, sieving 1024 and hashing both"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        bench.rate(|times| {
            for _ in 0..times {
                if round(black_box(1)) != EXPECTED {
                    return Err(io::Error::other("integer: wrong result; this machine cannot be trusted"));
                }
            }
            Ok(())
        })
    }
}

fn round(seed: u32) -> u32 {
    let mut numbers = [0_u32; SIZE];
    let mut state = seed;
    for number in &mut numbers {
        // Marsaglia's xorshift of 32 bits (13, 17, 5).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *number = state;
    }
    shell_sort(&mut numbers);
    let mut composite = [false; SIZE];
    for factor in 2..32 {
        for multiple in (factor * factor..SIZE).step_by(factor) {
            composite[multiple] = true;
        }
    }
    // FNV-1a, a word at a time.
    let mut hash = 0x811c_9dc5_u32;
    for (number, composite) in numbers.iter().zip(composite) {
        hash = (hash ^ number ^ u32::from(composite)).wrapping_mul(0x0100_0193);
    }
    hash
}

/// With Ciura's gaps.
fn shell_sort(numbers: &mut [u32; SIZE]) {
    for gap in [701, 301, 132, 57, 23, 10, 4, 1] {
        for end in gap..SIZE {
            let number = numbers[end];
            let mut place = end;
            while place >= gap && numbers[place - gap] > number {
                numbers[place] = numbers[place - gap];
                place -= gap;
            }
            numbers[place] = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts() {
        let mut numbers = std::array::from_fn(|index| u32::try_from(index * 7919 % 1009).unwrap());
        let mut expected = numbers;
        expected.sort_unstable();
        shell_sort(&mut numbers);
        assert_eq!(numbers, expected);
        assert_eq!(round(1), EXPECTED);
        assert_ne!(round(2), EXPECTED);
    }
}
