//! What a truth server did, counted.
//!
//! It owns the numbers. They must never lag behind what a peer can have seen: an answer is counted before its
//! last byte is given to the kernel, and taken back if the kernel refuses it.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// The truth. Every complete request is in `requests` once and ends in exactly one of `answers`, `broken` and
/// `peers_gone`, or is pending. Questions after the truth itself are in `truth_asked` and nowhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Connections taken from the kernel, those that ask for the truth included.
    pub connections_accepted: u64,
    /// Those not closed yet.
    pub connections_open: u64,
    /// Connections dropped because no thread or descriptor was left for them.
    pub connections_dropped: u64,
    /// Complete requests by the first segment of their path; `unknown` if there is no such behaviour, `bad`
    /// if they could not be understood.
    pub requests: BTreeMap<&'static str, u64>,
    /// Answers given to the kernel whole, by status. A wrong body is a whole answer too.
    pub answers: BTreeMap<u16, u64>,
    /// Requests that got something else on purpose: a reset, a short body, garbage.
    pub broken: u64,
    /// Requests whose peer closed, half-closed or reset before the answer was whole.
    pub peers_gone: u64,
    /// Connections whose peer went in the middle of a request.
    pub requests_incomplete: u64,
    /// Connections reset on purpose.
    pub resets: u64,
    /// Bytes given to the kernel, the truth itself not counted.
    pub bytes_sent: u64,
    /// Questions after the truth.
    pub truth_asked: u64,
    /// Times in which nothing was served.
    pub stalls: Vec<StallTimes>,
}

/// A stall as it was, on CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StallTimes {
    /// From here on nothing was served.
    pub began_ns: u64,
    /// Until here; `None` while it lasts.
    pub ended_ns: Option<u64>,
}

impl Counts {
    /// Complete requests of all kinds.
    pub fn requests_total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Answers of all kinds.
    pub fn answers_total(&self) -> u64 {
        self.answers.values().sum()
    }

    /// Requests of one kind.
    pub fn requests_of(&self, kind: &str) -> u64 {
        self.requests.get(kind).copied().unwrap_or(0)
    }

    /// Answers of one status.
    pub fn answers_of(&self, status: u16) -> u64 {
        self.answers.get(&status).copied().unwrap_or(0)
    }

    /// Requests whose end is still open.
    ///
    /// # Panics
    /// When the books do not balance, which is a mistake of ours.
    pub fn pending(&self) -> u64 {
        let ended = self.answers_total() + self.broken + self.peers_gone;
        self.requests_total()
            .checked_sub(ended)
            .unwrap_or_else(|| panic!("more ends than requests: {self:?}"))
    }
}

/// The numbers while they are being written.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    counts: Mutex<Counts>,
    changed: Condvar,
}

impl Ledger {
    /// The numbers now.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// Changes the numbers in one step.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the numbers are as wanted, or for so long. Says whether they are.
    pub(crate) fn await_counts(
        &self,
        patience: Duration,
        mut wanted: impl FnMut(&Counts) -> bool,
    ) -> (Counts, bool) {
        let (counts, _) = self
            .changed
            .wait_timeout_while(self.lock(), patience, |counts| !wanted(counts))
            .unwrap_or_else(PoisonError::into_inner);
        (counts.clone(), wanted(&counts))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
