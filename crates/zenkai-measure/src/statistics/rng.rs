//! The generator behind every draw: xoshiro256++ 1.0, seeded through SplitMix64.
//!
//! Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47 (2021); Steele, Lea and Flood,
//! "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. Written here rather than taken from a crate because
//! stored experiments must give the same draws after every update.

/// SplitMix64's: 2⁶⁴ divided by the golden ratio, made odd.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64: turns any seed into well-mixed words.
#[derive(Debug, Clone)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The seed of the nth experiment that follows from one of `seed`: SplitMix's increment keeps them apart, and the upper
/// bits stay free, so that every JSON reader takes it as a whole number.
pub fn following(seed: u64, nth: u64) -> u64 {
    seed.wrapping_add(nth.wrapping_mul(INCREMENT)) >> 12
}

/// A seeded generator; the same seed gives the same numbers on every machine and in every version.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut mix = SplitMix(seed);
        Self { state: [mix.next(), mix.next(), mix.next(), mix.next()] }
    }

    /// One of many independent generators of the same seed: what is drawn for one `purpose` and `index` does not
    /// change when something else is drawn more or less often.
    pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Self {
        let first = SplitMix(seed).next();
        let second = SplitMix(first ^ purpose.tag()).next();
        Self::new(SplitMix(second ^ index).next())
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `limit`, each equally likely; 0 when `limit` is 0. Lemire, "Fast Random Integer Generation in
    /// an Interval", ACM TOMACS 29 (2019): the rejection makes it exact.
    pub fn below(&mut self, limit: u32) -> u32 {
        if limit == 0 {
            return 0;
        }
        let threshold = limit.wrapping_neg() % limit;
        loop {
            let high = self.bits() >> 32;
            let product = high * u64::from(limit);
            let (quotient, rest) = (product >> 32, product & 0xffff_ffff);
            if rest >= u64::from(threshold) {
                return u32::try_from(quotient).unwrap_or(0);
            }
        }
    }
}

/// What a stream of random numbers is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The order in which the arms run.
    Order,
    /// The re-randomisations behind a p-value.
    Redraw,
}

impl Purpose {
    fn tag(self) -> u64 {
        match self {
            Purpose::Order => 0x6f72_6465_7200_0001,
            Purpose::Redraw => 0x7265_6472_6177_0002,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_published_generators() {
        // Values of the authors' C code, prng.di.unimi.it.
        let mut mix = SplitMix(1_234_567);
        assert_eq!(mix.next(), 6_457_827_717_110_365_317);
        assert_eq!(mix.next(), 3_203_168_211_198_807_973);
        assert_eq!(mix.next(), 9_817_491_932_198_370_423);
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!([rng.bits(), rng.bits(), rng.bits(), rng.bits()], expected);
    }

    #[test]
    fn below_is_even_and_in_range() {
        let mut rng = Rng::new(3);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[usize::try_from(rng.below(6)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (9_600..10_400).contains(count)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let first = |seed, purpose, index| Rng::stream(seed, purpose, index).bits();
        let base = first(1, Purpose::Order, 0);
        assert_eq!(base, first(1, Purpose::Order, 0));
        assert_ne!(base, first(2, Purpose::Order, 0));
        assert_ne!(base, first(1, Purpose::Redraw, 0));
        assert_ne!(base, first(1, Purpose::Order, 1));
    }
}
