//! Tokens that were shown: what they grant, checked by a thread of its own and remembered.
//!
//! It owns the memory of checked tokens, which all workers share, and the line before the check, in which
//! clients take turns. It must never check a signature on a worker, check for somebody who is gone, nor keep
//! a token longer than it is checked.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::{HashSet, HashSetExt as _};
use staunch_engine::Address;
use staunch_live::token::{Granted, Issuer, KnownToken, TokenFault, TokenMemory, verify};

use super::turns::{LineClient, Turns};
use crate::limits::{TOKENS_PER_CLIENT_MAX, TOKENS_WAITING_MAX};

/// What is known of a token.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// It grants this.
    Good(Arc<Granted>),
    /// It grants nothing.
    Bad,
    /// It grants nothing any more.
    Over,
}

/// A token that waits, and who shows it.
struct Shown {
    token: Box<[u8]>,
    now_s: u64,
    address: Address,
}

/// See the module's text.
pub(crate) struct Tokens {
    issuers: Vec<Issuer>,
    memory: Mutex<TokenMemory>,
    line: Mutex<Line>,
    rung: Condvar,
}

struct Line {
    waiting: Turns<Shown>,
    /// Who waits: each shows one token at a time.
    showing: HashSet<Address>,
    is_over: bool,
}

impl Tokens {
    pub(crate) fn new(issuers: Vec<Issuer>) -> Self {
        let line = Line { waiting: Turns::default(), showing: HashSet::new(), is_over: false };
        let (memory, line) = (Mutex::new(TokenMemory::default()), Mutex::new(line));
        Self { issuers, memory, line, rung: Condvar::new() }
    }

    /// Whether any token can hold.
    pub(crate) fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    /// What is known of a token that was checked before.
    pub(crate) fn find(&self, token: &[u8], now_s: u64) -> Option<Verdict> {
        let known = self.memory().find(token, now_s)?;
        Some(match known {
            KnownToken::Good(granted) => Verdict::Good(granted),
            KnownToken::Refused(fault) => fault.into(),
        })
    }

    /// Puts a token in line for a client; what is found is told to the address. Whether there is room.
    pub(crate) fn ask(&self, token: &[u8], now_s: u64, client: LineClient, address: Address) -> bool {
        let mut line = self.lock();
        if !line.waiting.has_room(client, TOKENS_WAITING_MAX, TOKENS_PER_CLIENT_MAX) {
            return false;
        }
        line.showing.insert(address);
        line.waiting.push(client, Shown { token: token.into(), now_s, address }, 1);
        drop(line);
        self.rung.notify_one();
        true
    }

    /// Nobody waits at an address any more.
    pub(crate) fn leave(&self, address: Address) {
        self.lock().showing.remove(&address);
    }

    /// Checks tokens until it is told to end. A crowd that shows one token costs one check.
    pub(crate) fn run(&self, tell: impl Fn(Address, Verdict)) {
        while let Some(Shown { token, now_s, address }) = self.next() {
            tell(address, self.judge(&token, now_s));
        }
    }

    fn judge(&self, token: &[u8], now_s: u64) -> Verdict {
        if let Some(known) = self.find(token, now_s) {
            return known;
        }
        match verify(token, &self.issuers, now_s) {
            Ok(granted) => {
                let granted = Arc::new(granted);
                self.memory().remember(token, Arc::clone(&granted));
                Verdict::Good(granted)
            }
            Err(fault) => {
                self.memory().refuse(token, fault, now_s);
                fault.into()
            }
        }
    }

    /// The checking thread is to end.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.rung.notify_all();
    }

    fn next(&self) -> Option<Shown> {
        let mut line = self.lock();
        loop {
            if line.is_over {
                return None;
            }
            while let Some(shown) = line.waiting.pop() {
                if line.showing.remove(&shown.address) {
                    return Some(shown);
                }
            }
            line = self.rung.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn memory(&self) -> MutexGuard<'_, TokenMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<TokenFault> for Verdict {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Expired => Self::Over,
            _ => Self::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(slot: u32) -> Address {
        Address { worker: 0, slot, generation: 0, stream: 0 }
    }

    /// Checks what waits; who is told what.
    fn checked(tokens: &Tokens) -> Vec<(u32, bool)> {
        let mut told = Vec::new();
        while !tokens.lock().showing.is_empty() {
            let Some(shown) = tokens.next() else { break };
            let verdict = tokens.judge(&shown.token, shown.now_s);
            told.push((shown.address.slot, matches!(verdict, Verdict::Good(_))));
        }
        told
    }

    #[test]
    fn who_shows_many_false_tokens_delays_nobody() {
        let tokens = Tokens::new(Vec::new());
        let [flood, honest] = [LineClient::Worker(1), LineClient::Worker(2)];
        let fits = |slot: &u32| tokens.ask(&slot.to_be_bytes(), 0, flood, address(*slot));
        assert_eq!((0..2 * TOKENS_PER_CLIENT_MAX as u32).filter(fits).count(), TOKENS_PER_CLIENT_MAX);
        assert!(tokens.ask(b"honest", 0, honest, address(u32::MAX)));
        let told = checked(&tokens);
        assert_eq!(
            told.iter().position(|(slot, _)| *slot == u32::MAX),
            Some(1),
            "the second turn is its own"
        );
    }

    #[test]
    fn what_was_refused_is_known_and_who_is_gone_is_left_out() {
        let tokens = Tokens::new(Vec::new());
        let client = LineClient::Worker(1);
        assert!(tokens.ask(b"a.b.c", 0, client, address(1)) && tokens.ask(b"a.b.d", 0, client, address(2)));
        tokens.leave(address(2));
        assert_eq!(checked(&tokens), [(1, false)]);
        assert!(matches!(tokens.find(b"a.b.c", 0), Some(Verdict::Bad)));
        assert!(tokens.find(b"a.b.d", 0).is_none());
        assert!(tokens.lock().showing.is_empty());
    }
}
