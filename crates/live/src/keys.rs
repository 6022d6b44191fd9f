//! Keys by which a publisher repeats itself without publishing twice (`Idempotency-Key`).
//!
//! It owns how long and how many are remembered. It must never read a clock.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt as _};

use crate::limits::{KEY_BYTES_MAX, KEY_MS_MAX, KEYS_MAX};

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyUse<T> {
    /// Nothing: publish, and remember what came of it.
    New,
    /// This request came before, with this outcome.
    Repeated(T),
    /// 422: the key came with another request.
    Other,
    /// 400: the key is empty or longer than [`KEY_BYTES_MAX`].
    Faulty,
}

/// Keys of the last minutes, each with what came of its request.
#[derive(Debug)]
pub struct IdempotencyKeys<T> {
    used: HashMap<Box<str>, (u128, T)>,
    order: VecDeque<(u64, Box<str>)>,
}

impl<T> Default for IdempotencyKeys<T> {
    fn default() -> Self {
        Self { used: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> IdempotencyKeys<T> {
    /// What is known of a key that comes with a request of this digest.
    pub fn look_up(&mut self, key: &str, digest: u128, now_ms: u64) -> KeyUse<T> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return KeyUse::Faulty;
        }
        self.forget(now_ms);
        match self.used.get(key) {
            None => KeyUse::New,
            Some((of, became)) if *of == digest => KeyUse::Repeated(became.clone()),
            Some(_) => KeyUse::Other,
        }
    }

    /// Remembers what came of a new key; the oldest gives way where there are too many.
    pub fn remember(&mut self, key: &str, digest: u128, became: T, now_ms: u64) {
        if self.used.insert(key.into(), (digest, became)).is_none() {
            self.order.push_back((now_ms + KEY_MS_MAX, key.into()));
        }
        while self.order.len() > KEYS_MAX {
            self.forget_oldest();
        }
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    fn forget(&mut self, now_ms: u64) {
        while self.order.front().is_some_and(|(until_ms, _)| *until_ms <= now_ms) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.used.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_remembered_with_its_request() {
        let mut keys = IdempotencyKeys::default();
        assert_eq!(keys.look_up("k", 1, 0), KeyUse::New);
        keys.remember("k", 1, "taken", 0);
        assert_eq!(keys.look_up("k", 1, KEY_MS_MAX - 1), KeyUse::Repeated("taken"));
        assert_eq!(keys.look_up("k", 2, 1), KeyUse::Other);
        assert_eq!(keys.look_up("k", 2, KEY_MS_MAX), KeyUse::New);
        assert!(keys.is_empty());
        assert_eq!(keys.look_up("", 1, 0), KeyUse::Faulty);
        assert_eq!(keys.look_up(&"k".repeat(KEY_BYTES_MAX + 1), 1, 0), KeyUse::Faulty);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut keys = IdempotencyKeys::default();
        for number in 0..=KEYS_MAX {
            keys.remember(&number.to_string(), 1, "taken", number as u64);
        }
        assert_eq!(keys.len(), KEYS_MAX);
        assert_eq!(keys.look_up("0", 1, 1), KeyUse::New);
        assert_eq!(keys.look_up("1", 1, 1), KeyUse::Repeated("taken"));
    }
}
