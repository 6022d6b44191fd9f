//! Chance from a seed: SplitMix64 (Steele, Lea and Flood, 2014), enough for a simulation and nothing else.
//!
//! It must never be used for secrets.

use crate::patience::Service;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Evenly spread from 0 up to 1, without 1.
    pub(crate) fn chance(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / 2.0_f64.powi(64) * (1.0 - f64::EPSILON)
    }

    /// Exponential with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.chance()).ln()
    }

    /// A time of service with this mean.
    pub(crate) fn service(&mut self, service: Service, mean_s: f64) -> f64 {
        match service {
            Service::Exponential => self.exponential(mean_s),
            Service::Deterministic => mean_s,
        }
    }
}
