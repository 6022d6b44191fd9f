//! Tokens that were checked: a crowd with one token costs one check.
//!
//! It owns how many are remembered. It must never keep a token, only its digest (SHA-256), nor longer than it
//! holds.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt as _};
use sha2::{Digest as _, Sha256};

use super::granted::Granted;
use crate::limits::TOKENS_REMEMBERED_MAX;

/// What tokens grant, by their digests.
pub struct TokenMemory {
    known: HashMap<[u8; 32], std::sync::Arc<Granted>>,
    order: VecDeque<[u8; 32]>,
}

impl Default for TokenMemory {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl TokenMemory {
    /// What a token grants, if it was checked and holds.
    pub fn find(&mut self, token: &[u8], now_s: u64) -> Option<std::sync::Arc<Granted>> {
        let digest = digest(token);
        let granted = self.known.get(&digest)?;
        if granted.ends_at_s <= now_s {
            self.known.remove(&digest);
            return None;
        }
        Some(granted.clone())
    }

    /// Remembers what a token grants; the oldest gives way.
    pub fn remember(&mut self, token: &[u8], granted: std::sync::Arc<Granted>) {
        let digest = digest(token);
        if self.known.insert(digest, granted).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > TOKENS_REMEMBERED_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Forgets all: the keys are others now.
    pub fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}
