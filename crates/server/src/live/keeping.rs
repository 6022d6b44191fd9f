//! What the writer does so that live data survives a restart.
//!
//! It owns the store, and in whose hands it is. It must never let anybody hear of an update that the store
//! does not have: its number would be used twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use staunch_engine::Notice;
use staunch_live::{Hub, KeptState, Letter, StateFault, StateFaultKind, StateStore, Sync};

use super::config::{LiveError, LiveState, LiveSync};
use super::counts::WriterCounts;
use super::mail::NotTaken;

/// How long after a batch it is on the disk, in milliseconds, where that is left to an interval: what a crash
/// may cost.
const SYNC_MS: u64 = 1_000;
/// How long after a failure the store is tried again, in milliseconds.
const RETRY_MS: u64 = 1_000;
/// How long a process that takes over waits for the store, in milliseconds: the one before closes it at once,
/// which takes as long as a disk does.
const PATIENCE_MS: u64 = 10_000;

/// Opens a store. Where another process is about to release it, that is waited for.
pub(crate) fn open(state: &LiveState) -> Result<(StateStore, KeptState), LiveError> {
    let mut left_ms = if state.is_awaited { PATIENCE_MS } else { 0 };
    loop {
        match StateStore::open(&state.folder, state.sync.into()) {
            Err(StateFault { kind: StateFaultKind::Locked, .. }) if left_ms > 0 => {
                // tidy: allow(clock): nobody is served yet, and a lock tells nobody that it is free.
                std::thread::sleep(Duration::from_millis(10));
                left_ms = left_ms.saturating_sub(10);
            }
            opened => return opened.map_err(LiveError::State),
        }
    }
}

impl From<LiveSync> for Sync {
    fn from(sync: LiveSync) -> Self {
        match sync {
            LiveSync::Always => Self::Always,
            LiveSync::Interval => Self::Interval,
            LiveSync::Off => Self::Off,
        }
    }
}

/// In whose hands the store is: the keeper of the process says it, the writer obeys.
#[derive(Debug, Default)]
pub(crate) struct Hands(AtomicU8);

/// See [`Hands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hand {
    /// This process writes.
    Own,
    /// A process that may take over opens it.
    Lent,
    /// Another process has taken over.
    Gone,
}

impl Hands {
    pub(crate) fn put(&self, hand: Hand) {
        self.0.store(hand as u8, Relaxed);
    }

    fn get(&self) -> Hand {
        match self.0.load(Relaxed) {
            0 => Hand::Own,
            1 => Hand::Lent,
            _ => Hand::Gone,
        }
    }
}

/// See the module's text.
pub(crate) struct Keeping {
    store: StateStore,
    sync: Sync,
    hands: Arc<Hands>,
    counts: Arc<WriterCounts>,
    notice: Notice,
    /// Whether the store is closed, for whatever reason.
    is_closed: bool,
    /// What nobody may hear of yet.
    unkept: Option<Letter>,
    /// Why the store is closed, if it has failed.
    fault: Option<String>,
    sync_ms: Option<u64>,
    retry_ms: u64,
}

impl Keeping {
    pub(crate) fn new(
        store: StateStore,
        sync: LiveSync,
        hands: Arc<Hands>,
        counts: Arc<WriterCounts>,
        notice: Notice,
    ) -> Self {
        Self {
            store,
            sync: sync.into(),
            hands,
            counts,
            notice,
            is_closed: false,
            unkept: None,
            fault: None,
            sync_ms: None,
            retry_ms: 0,
        }
    }

    /// Whether publications have to wait: another process may take over, or may not.
    pub(crate) fn holds_back(&self) -> bool {
        self.hands.get() == Hand::Lent
    }

    /// Whether the hub may number, and why not.
    pub(crate) fn refusal(&self) -> Option<NotTaken> {
        let sentence = match (self.hands.get(), &self.fault) {
            (Hand::Gone, _) => "another process serves now".to_owned(),
            (_, Some(_)) => "what is published cannot be kept at present".to_owned(),
            (_, None) => return None,
        };
        Some(NotTaken { status: 503, sentence })
    }

    /// When something has to be done without being asked.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        match (self.hands.get(), &self.fault) {
            (Hand::Own, Some(_)) => Some(self.retry_ms),
            (Hand::Own, None) => self.sync_ms,
            _ => None,
        }
    }

    /// Does what its time has come for. Gives a letter that workers may hear of now.
    pub(crate) fn look(&mut self, hub: &Hub, now_ms: u64) -> Option<Letter> {
        match self.hands.get() {
            Hand::Own if self.is_closed && now_ms >= self.retry_ms => return self.open_again(hub, now_ms),
            Hand::Own if self.sync_ms.is_some_and(|sync_ms| sync_ms <= now_ms) => {
                self.sync_ms = None;
                if let Err(fault) = self.store.sync() {
                    self.fail(&fault, now_ms);
                }
            }
            _ => {}
        }
        None
    }

    /// Leaves the store, if it was lent or is gone.
    pub(crate) fn obey(&mut self) {
        if self.hands.get() != Hand::Own {
            self.release();
        }
    }

    /// Keeps a letter; gives it back if workers may hear of it.
    pub(crate) fn keep(&mut self, letter: Letter, posted: u64, now_ms: u64) -> Option<Letter> {
        if !letter.changes() {
            // What it tells of was kept before, and it is not to be ahead of what was not.
            return Some(Letter { number: letter.number.min(posted), ..letter });
        }
        match self.store.keep(&letter) {
            Ok(()) => {
                self.counts.state_batches.fetch_add(1, Relaxed);
                if self.sync == Sync::Interval {
                    self.sync_ms.get_or_insert(now_ms + SYNC_MS);
                }
                Some(letter)
            }
            Err(fault) => {
                self.unkept = Some(letter);
                self.fail(&fault, now_ms);
                None
            }
        }
    }

    /// Leaves the store to another process.
    pub(crate) fn release(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.sync_ms = None;
        if let Err(fault) = self.store.release() {
            (self.notice)(&format!("live data: {fault}"));
        }
    }

    fn open_again(&mut self, hub: &Hub, now_ms: u64) -> Option<Letter> {
        match self.store.agree(&hub.introduction()) {
            Ok(()) => {
                self.is_closed = false;
                self.counts.state_failing.store(0, Relaxed);
                if self.fault.take().is_some() {
                    (self.notice)("live data is kept again, and publications are taken");
                }
                self.unkept.take()
            }
            Err(fault) => {
                self.fail(&fault, now_ms);
                None
            }
        }
    }

    fn fail(&mut self, fault: &StateFault, now_ms: u64) {
        let text = fault.to_string();
        self.counts.state_failures.fetch_add(1, Relaxed);
        self.counts.state_failing.store(1, Relaxed);
        if self.fault.is_none() {
            (self.notice)(&format!(
                "live data cannot be kept, publications are refused until it can: {text}"
            ));
        }
        self.fault = Some(text);
        (self.is_closed, self.sync_ms, self.retry_ms) = (true, None, now_ms + RETRY_MS);
    }
}
