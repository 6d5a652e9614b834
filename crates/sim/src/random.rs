// SPDX-License-Identifier: GPL-2.0-only
//! Random numbers: xoshiro256++, one stream for each purpose, so that a change in one place leaves the rest alone.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream with this number under `seed`. Equal arguments make equal streams, others independent ones.
    pub fn new(seed: u64, stream: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(scramble(scramble(seed) ^ stream)))
    }

    /// Any number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `n` - 1, all alike but for a bias below `n` / 2^64. `n` must not be 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(n)) >> 64) as u64
    }

    /// A number above 0 and not above 1, all alike, in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed time with this mean, in ns, rounded to whole ones.
    #[inline]
    pub fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        (-mean_ns * self.unit().ln()).round() as u64
    }

    /// Puts `items` in any order, all alike.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// SplitMix64: neighbours become strangers.
fn scramble(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
