//! Keeps live data in the store, for the writer: writes each letter, syncs at the interval, tries again after
//! a failure, and releases the store to a new process.
//!
//! It owns the store. It must never let a reader or publisher hear of an update that is not in the store:
//! after a restart its number would be given out again.
//!
//! Order in each turn of the writer: `look` while the store is this process's, `refusal` before publications
//! are numbered, `keep` for the letter, answers, `release` if another process is to have it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use staunch_engine::Notice;
use staunch_live::{Former, Hub, KeptState, Letter, StateFault, StateFaultKind, StateStore, Sync};
use xxhash_rust::xxh3::xxh3_64;

use super::config::{LiveConfig, LiveError, LiveSync};
use super::counts::WriterCounts;
use super::mail::NotTaken;

/// Milliseconds from a batch to its sync with `live_sync = "interval"`: at most so much is lost in a crash.
const SYNC_MS: u64 = 1_000;
/// Milliseconds from a failure of the store to the next try: soon after there is room again.
const RETRY_MS: u64 = 1_000;
/// A try that takes long, for a large file is repaired before it can be written, is followed by a wait of so
/// many times as long: the writer has other things to do.
const RETRY_WAIT_TIMES: u64 = 9;
/// Milliseconds that a new process waits for the store in an upgrade: the old one closes it at once, which
/// takes one sync of the disk.
const PATIENCE_MS: u64 = 10_000;

/// Opens the store, and gives it with what it holds; none if there is to be none. In an upgrade
/// (`is_awaited`) waits up to `PATIENCE_MS` for the old process to release it.
pub(crate) fn open(config: &LiveConfig) -> Result<Option<(StateStore, KeptState)>, LiveError> {
    let (Some(state), Some((path, common))) = (&config.state, config.state_files()) else { return Ok(None) };
    let mut left_ms = if state.is_awaited { PATIENCE_MS } else { 0 };
    // In an upgrade the file keeps its name: if it fails, the old process opens it again.
    let owner = xxh3_64(config.site.as_bytes());
    let former = common.map(|path| Former { path, is_renamed: !state.is_awaited, owner });
    loop {
        match StateStore::open(&path, former.as_ref(), state.sync.into()) {
            Err(StateFault { kind: StateFaultKind::Locked, .. }) if left_ms > 0 => {
                // tidy: allow(clock): nobody is served yet, and a lock tells nobody that it is free.
                std::thread::sleep(Duration::from_millis(10));
                left_ms = left_ms.saturating_sub(10);
            }
            opened => return opened.map(Some).map_err(LiveError::State),
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

/// The store of a site's live data, and how far it is behind.
pub(crate) struct Keeping {
    store: StateStore,
    sync: Sync,
    counts: Arc<WriterCounts>,
    notice: Notice,
    /// What lines of the log call the live data.
    title: String,
    /// Letter that could not be written; workers get it once the store has it.
    unkept: Option<Letter>,
    /// Why the store has failed; none while it works.
    fault: Option<String>,
    /// When to sync; none if everything is synced.
    sync_ms: Option<u64>,
    /// When to open the store again after a failure.
    retry_ms: u64,
}

impl Keeping {
    pub(crate) fn new(
        store: StateStore,
        sync: LiveSync,
        counts: Arc<WriterCounts>,
        notice: Notice,
        title: String,
    ) -> Self {
        Self {
            store,
            sync: sync.into(),
            counts,
            notice,
            title,
            unkept: None,
            fault: None,
            sync_ms: None,
            retry_ms: 0,
        }
    }

    /// Whether `look` has to open the store before anything is numbered: it was taken back.
    pub(crate) fn is_released(&self) -> bool {
        !self.store.is_open() && self.fault.is_none()
    }

    /// Why publications are refused now; none if the hub may number them.
    pub(crate) fn refusal(&self) -> Option<NotTaken> {
        let sentence = "what is published cannot be kept at present";
        self.fault.is_some().then(|| NotTaken::new(503, sentence))
    }

    /// When `look` has to be called: for the next sync, or to open the store again.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        if self.store.is_open() { self.sync_ms } else { Some(self.retry_ms) }
    }

    /// `look` has taken from one time to the other: if it has failed, the next try is put off by as much as
    /// that was long.
    pub(crate) fn looked(&mut self, from_ms: u64, to_ms: u64) {
        if self.fault.is_some() {
            let wait_ms = to_ms.saturating_sub(from_ms).saturating_mul(RETRY_WAIT_TIMES);
            self.retry_ms = self.retry_ms.max(to_ms.saturating_add(wait_ms));
        }
    }

    /// Syncs, or opens the store again, if it is time to. Gives the letter that could not be written before,
    /// if the store has it now: workers are to be told.
    pub(crate) fn look(&mut self, hub: &Hub, now_ms: u64) -> Option<Letter> {
        if !self.store.is_open() {
            return if now_ms >= self.retry_ms { self.open_again(hub, now_ms) } else { None };
        }
        if self.sync_ms.is_some_and(|sync_ms| sync_ms <= now_ms) {
            self.sync_ms = None;
            if let Err(fault) = self.store.sync() {
                self.fail(&fault, now_ms);
            }
        }
        None
    }

    /// Writes a letter to the store. Gives it back for the workers; none if the write failed. `posted` is the
    /// last number that workers were told.
    pub(crate) fn keep(&mut self, letter: Letter, posted: u64, now_ms: u64) -> Option<Letter> {
        if !letter.changes() {
            // Forms alone need no store. The hub's number may count an update that could not be written:
            // workers must not hear of that number.
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

    /// Syncs and closes the store, for another process or the next start. A failure is logged.
    pub(crate) fn release(&mut self) {
        self.store.leave();
        if !self.store.is_open() {
            return;
        }
        self.sync_ms = None;
        if let Err(fault) = self.store.release() {
            self.tell(&format!(": {fault}"));
        }
    }

    /// Opens the store and brings it up to the hub. Gives the letter that workers were not told of yet.
    fn open_again(&mut self, hub: &Hub, now_ms: u64) -> Option<Letter> {
        // All topics are gone through only once the file is open.
        let opened = self.store.reopen().and_then(|aside| {
            if let Some(aside) = aside {
                let aside = aside.display();
                self.tell(&format!(": what another process left of it was set aside as {aside}"));
            }
            self.store.agree(&hub.introduction())
        });
        match opened {
            Ok(()) => {
                self.counts.state_failing.store(0, Relaxed);
                if self.fault.take().is_some() {
                    self.tell(" is kept again, and publications are taken");
                }
                self.unkept.take()
            }
            Err(fault) => {
                self.fail(&fault, now_ms);
                None
            }
        }
    }

    /// Refuses publications from now on, and sets the next try. Logs a failure unless the last one had the
    /// same reason.
    fn fail(&mut self, fault: &StateFault, now_ms: u64) {
        let text = fault.to_string();
        self.counts.state_failures.fetch_add(1, Relaxed);
        self.counts.state_failing.store(1, Relaxed);
        if self.fault.as_ref() != Some(&text) {
            self.tell(&format!(" cannot be kept, publications are refused until it can: {text}"));
        }
        self.fault = Some(text);
        (self.sync_ms, self.retry_ms) = (None, now_ms + RETRY_MS);
    }

    /// Logs a sentence that begins with what the live data is called.
    fn tell(&self, rest: &str) {
        (self.notice)(&format!("{}{rest}", self.title));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_that_takes_long_is_followed_by_a_longer_wait() {
        let folder = std::env::temp_dir().join(format!("staunch-keeping-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("live.redb");
        let (store, _) = StateStore::open(&path, None, Sync::Always).unwrap();
        let (counts, notice) = (Arc::default(), Arc::new(|_: &str| ()));
        let mut keeping = Keeping::new(store, LiveSync::Always, counts, notice, "live data".to_owned());
        keeping.release();
        keeping.looked(0, 500);
        assert_eq!(keeping.next_ms(), Some(0), "nothing has failed");
        keeping.fail(&StateFault { path, kind: StateFaultKind::Locked }, 2_000);
        keeping.looked(2_000, 2_001);
        assert_eq!(keeping.next_ms(), Some(3_000));
        keeping.looked(3_000, 3_500);
        assert_eq!(keeping.next_ms(), Some(8_000));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
