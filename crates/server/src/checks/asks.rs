//! How often each client, or each connection, has asked lately.
//!
//! It must never grow without bound: what is long ago counts less and less.

use std::collections::HashMap;
use std::hash::Hash;

use crate::limits::ASKS_REMEMBERED_MAX;

/// How often somebody asked lately.
#[derive(Debug)]
pub(super) struct Asks<K> {
    pub(super) counts: HashMap<K, u32>,
    sum: u32,
}

impl<K: Eq + Hash> Asks<K> {
    /// At least one: whoever waits has asked, however long ago.
    pub(super) fn of(&self, key: K) -> u32 {
        self.counts.get(&key).copied().unwrap_or(1)
    }

    /// Counts one. What is long ago counts less and less, so the table stays small.
    pub(super) fn add(&mut self, key: K) {
        *self.counts.entry(key).or_default() += 1;
        self.sum += 1;
        if self.sum >= ASKS_REMEMBERED_MAX {
            self.counts.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
            self.sum = self.counts.values().sum();
        }
    }

    pub(super) fn forget(&mut self, key: K) {
        self.sum -= self.counts.remove(&key).unwrap_or(0);
    }
}

impl<K> Default for Asks<K> {
    fn default() -> Self {
        Self { counts: HashMap::new(), sum: 0 }
    }
}
