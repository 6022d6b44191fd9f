//! Tokens that were shown: what they grant, checked by a thread of its own and remembered.
//!
//! It owns the memory of checked tokens, which all workers share, and the line before the check. It must
//! never check a signature on a worker, nor keep a token longer than it is checked.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use staunch_engine::Address;
use staunch_live::token::{Granted, Issuer, TokenFault, TokenMemory, verify};

use crate::limits::TOKENS_WAITING_MAX;

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

#[derive(Default)]
struct Line {
    waiting: VecDeque<Shown>,
    is_over: bool,
}

impl Tokens {
    pub(crate) fn new(issuers: Vec<Issuer>) -> Self {
        let (memory, line) = (Mutex::new(TokenMemory::default()), Mutex::default());
        Self { issuers, memory, line, rung: Condvar::new() }
    }

    /// Whether any token can hold.
    pub(crate) fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    /// What a token grants, if it was checked before and holds.
    pub(crate) fn find(&self, token: &[u8], now_s: u64) -> Option<Arc<Granted>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).find(token, now_s)
    }

    /// Puts a token in line; what is found is told to the address. Whether there is room.
    pub(crate) fn ask(&self, token: &[u8], now_s: u64, address: Address) -> bool {
        let mut line = self.lock();
        if line.waiting.len() >= TOKENS_WAITING_MAX {
            return false;
        }
        line.waiting.push_back(Shown { token: token.into(), now_s, address });
        drop(line);
        self.rung.notify_one();
        true
    }

    /// Checks tokens until it is told to end. A crowd that shows one token costs one check.
    pub(crate) fn run(&self, tell: impl Fn(Address, Verdict)) {
        while let Some(Shown { token, now_s, address }) = self.next() {
            tell(address, self.judge(&token, now_s));
        }
    }

    fn judge(&self, token: &[u8], now_s: u64) -> Verdict {
        if let Some(known) = self.find(token, now_s) {
            return Verdict::Good(known);
        }
        match verify(token, &self.issuers, now_s) {
            Ok(granted) => {
                let granted = Arc::new(granted);
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.remember(token, Arc::clone(&granted));
                Verdict::Good(granted)
            }
            Err(TokenFault::Expired) => Verdict::Over,
            Err(_) => Verdict::Bad,
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
            if let Some(shown) = line.waiting.pop_front() {
                return Some(shown);
            }
            line = self.rung.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
