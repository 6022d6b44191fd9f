//! Tokens that were checked: a crowd with one token costs one check, whether it holds or not.
//!
//! It owns how many are remembered; those that do not hold push out none that does. It must never keep a
//! token, only its digest (SHA-256), nor longer than it holds.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt as _};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN};

use super::granted::{Granted, TokenFault};
use crate::limits::{TOKENS_REFUSED_REMEMBERED_MAX, TOKENS_REMEMBERED_MAX};

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownToken {
    /// The token grants this.
    Good(std::sync::Arc<Granted>),
    /// The token was refused, and always is.
    Refused(TokenFault),
}

/// What tokens grant, by their digests.
pub struct TokenMemory {
    known: HashMap<[u8; SHA256_OUTPUT_LEN], std::sync::Arc<Granted>>,
    order: VecDeque<[u8; SHA256_OUTPUT_LEN]>,
    /// Why each was refused, and when, in seconds since 1970.
    refused: HashMap<[u8; SHA256_OUTPUT_LEN], (TokenFault, u64)>,
    refused_order: VecDeque<[u8; SHA256_OUTPUT_LEN]>,
}

impl Default for TokenMemory {
    fn default() -> Self {
        let (order, refused_order) = (VecDeque::new(), VecDeque::new());
        Self { known: HashMap::new(), order, refused: HashMap::new(), refused_order }
    }
}

impl TokenMemory {
    /// What became of a token, if it was checked. One whose time has passed since is to be checked again.
    pub fn find(&mut self, token: &[u8], now_s: u64) -> Option<KnownToken> {
        let digest = digest(token);
        if let Some((fault, since_s)) = self.refused.get(&digest) {
            // A token that was over may not be over yet for a clock that was put back.
            let is_known = *fault != TokenFault::Expired || *since_s <= now_s;
            return is_known.then_some(KnownToken::Refused(*fault));
        }
        let granted = self.known.get(&digest)?;
        if granted.has_ended(now_s) {
            self.known.remove(&digest);
            return None;
        }
        Some(KnownToken::Good(granted.clone()))
    }

    /// Remembers that a token was refused; the oldest gives way. One that is early may hold later.
    pub fn refuse(&mut self, token: &[u8], fault: TokenFault, now_s: u64) {
        let digest = digest(token);
        if fault != TokenFault::Early && self.refused.insert(digest, (fault, now_s)).is_none() {
            self.refused_order.push_back(digest);
        }
        while self.refused_order.len() > TOKENS_REFUSED_REMEMBERED_MAX {
            if let Some(oldest) = self.refused_order.pop_front() {
                self.refused.remove(&oldest);
            }
        }
    }

    /// Remembers what a token grants; the oldest gives way.
    pub fn remember(&mut self, token: &[u8], granted: std::sync::Arc<Granted>) {
        let digest = digest(token);
        // Its place in the order stays, and is skipped in its time.
        self.refused.remove(&digest);
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
        self.refused.clear();
        self.refused_order.clear();
    }
}

fn digest(token: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    let mut digest = [0; SHA256_OUTPUT_LEN];
    digest.copy_from_slice(ring::digest::digest(&SHA256, token).as_ref());
    digest
}
