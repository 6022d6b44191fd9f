//! A small generator of pseudo-random numbers: the same seed, the same numbers. Never for secrets.
//!
//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).

/// The generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed; any number will do.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// Yes, so many times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.bits() % 1000 < u64::from(per_mille)
    }
}
