//! Tokens that were shown: what they grant, checked by a thread of its own and remembered.
//!
//! It owns the memory of checked tokens, which all workers share, the line before the check, in which
//! clients take turns, and the counts and the lines of the log that say why tokens are refused. It must never
//! check a signature on a worker, check for somebody who is gone, keep a token longer than it is checked, nor
//! log a byte of one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::{HashSet, HashSetExt as _};
use staunch_engine::{Address, Notice};
use staunch_live::token::{Granted, Issuer, KnownToken, TokenFault, TokenMemory, verify};

use super::turns::{LineClient, Turns};
use crate::limits::{TOKEN_REFUSAL_TOLD_S, TOKENS_PER_CLIENT_MAX, TOKENS_WAITING_MAX};

/// What is known of a token.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// The token grants this.
    Good(Arc<Granted>),
    /// The token grants nothing.
    Bad,
    /// The token has ended and grants nothing any more.
    Over,
}

/// A token that waits, and who shows it.
struct Shown {
    token: Box<[u8]>,
    now_s: u64,
    address: Address,
}

/// The check of tokens: what was checked, and what waits.
pub(crate) struct Tokens {
    issuers: Vec<Issuer>,
    memory: Mutex<TokenMemory>,
    line: Mutex<Line>,
    rung: Condvar,
    /// How often a token was refused, by the place of its fault; the last is that no issuer is known.
    refused: [AtomicU64; TokenFault::ALL.len() + 1],
    /// When the log was last told of each fault, in seconds since 1970.
    told_s: Mutex<[u64; TokenFault::ALL.len()]>,
    /// The name of these live data in lines of the log.
    title: String,
    notice: Notice,
}

struct Line {
    waiting: Turns<Shown>,
    /// Connections that wait: each shows one token at a time.
    showing: HashSet<Address>,
    is_over: bool,
}

impl Tokens {
    /// Tokens of these issuers. `notice` logs why some are refused, under this title.
    pub(crate) fn new(issuers: Vec<Issuer>, title: String, notice: Notice) -> Self {
        let line = Line { waiting: Turns::default(), showing: HashSet::new(), is_over: false };
        let (memory, line) = (Mutex::new(TokenMemory::default()), Mutex::new(line));
        let (refused, told_s) = (Default::default(), Mutex::default());
        Self { issuers, memory, line, rung: Condvar::new(), refused, told_s, title, notice }
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
            KnownToken::Refused(fault) => {
                self.count(Some(fault));
                fault.into()
            }
        })
    }

    /// Counts a refusal; without a fault: there is no issuer whose tokens could hold.
    pub(crate) fn count(&self, fault: Option<TokenFault>) {
        self.refused[fault.map_or(TokenFault::ALL.len(), place_of)].fetch_add(1, Relaxed);
    }

    /// How often tokens were refused, by the reason.
    pub(crate) fn refused(&self) -> Vec<(String, u64)> {
        let names = TokenFault::ALL.iter().map(|fault| fault.name()).chain(["unknown"]);
        let counts = self.refused.iter().map(|count| count.load(Relaxed));
        names.map(str::to_owned).zip(counts).collect()
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

    /// Takes an address from those that wait.
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
                self.count(Some(fault));
                self.tell(fault, now_s);
                fault.into()
            }
        }
    }

    /// Logs why a token was refused: what its reader is told is the same for all. One line a reason and
    /// some seconds, whoever shows how many.
    fn tell(&self, fault: TokenFault, now_s: u64) {
        let mut told_s = self.told_s.lock().unwrap_or_else(PoisonError::into_inner);
        let last_s = &mut told_s[place_of(fault)];
        // A clock that was put back does not silence it.
        if now_s.abs_diff(*last_s) >= TOKEN_REFUSAL_TOLD_S {
            *last_s = now_s;
            (self.notice)(&format!("{}: a token was refused: {fault}", self.title));
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

fn place_of(fault: TokenFault) -> usize {
    TokenFault::ALL.iter().position(|one| *one == fault).unwrap_or_default()
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
    use staunch_engine::StreamRef;

    use super::*;

    fn tokens() -> (Tokens, Arc<Mutex<Vec<String>>>) {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&lines);
        let notice: Notice = Arc::new(move |line: &str| log.lock().unwrap().push(line.to_owned()));
        (Tokens::new(Vec::new(), "live data".to_owned(), notice), lines)
    }

    #[test]
    fn a_refusal_is_counted_each_time_and_logged_now_and_then() {
        let (tokens, lines) = tokens();
        for number in 0..100 {
            let token = format!("secret{number}");
            assert!(matches!(tokens.judge(token.as_bytes(), 1000), Verdict::Bad));
            assert!(matches!(tokens.judge(token.as_bytes(), 1000), Verdict::Bad));
        }
        let told = |count| tokens.refused().contains(&("form".to_owned(), count));
        assert!(told(200), "{:?}", tokens.refused());
        assert_eq!(lines.lock().unwrap().len(), 1, "a flood does not fill the log");
        tokens.judge(b"later", 1000 + TOKEN_REFUSAL_TOLD_S);
        tokens.judge(b"clock put back", 1);
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.contains("refused: it is no JWT") && !line.contains("secret")));
        tokens.count(None);
        assert_eq!(tokens.refused().last(), Some(&("unknown".to_owned(), 1)));
    }

    fn address(slot: u32) -> Address {
        Address { worker: 0, slot, generation: 0, stream: StreamRef::ONLY }
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
        let (tokens, _) = tokens();
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
        let (tokens, _) = tokens();
        let client = LineClient::Worker(1);
        assert!(tokens.ask(b"a.b.c", 0, client, address(1)) && tokens.ask(b"a.b.d", 0, client, address(2)));
        tokens.leave(address(2));
        assert_eq!(checked(&tokens), [(1, false)]);
        assert!(matches!(tokens.find(b"a.b.c", 0), Some(Verdict::Bad)));
        assert!(tokens.find(b"a.b.d", 0).is_none());
        assert!(tokens.lock().showing.is_empty());
    }
}
