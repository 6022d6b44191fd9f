//! Figures with one writer and any number of readers.
//!
//! They must never cost a bus lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer: adding is a load and a store, no bus lock.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed) + amount, Relaxed);
    }
}

/// A figure that comes and goes, with one writer.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}
