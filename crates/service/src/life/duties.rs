//! What a server's life needs to know of the server, and nothing more.
//!
//! It must never decide when something is done: the keeper does.

use std::sync::Arc;
use std::time::Duration;

use staunch_engine::Control;

use crate::part::Leaving;
use crate::parts::Parts;
use crate::seeing::Seeing;

/// What came of reading the configuration again.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// The new configuration is in use.
    Applied {
        /// What is to be said about it: keys that need a restart.
        lines: Vec<String>,
        /// How long a drain may take from now on.
        drain: DrainTimes,
    },
    /// Nothing has changed: only a process that confines itself anew can go by it. Why, in words.
    Beyond(String),
}

/// How long a drain may take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DrainTimes {
    /// When the server ends.
    pub(crate) stop: Duration,
    /// When another process has taken over.
    pub(crate) upgrade: Duration,
}

/// What is done when signals come.
pub(crate) struct Duties {
    /// Orders to the workers.
    pub(crate) control: Control,
    /// Name of their backend.
    pub(crate) backend: &'static str,
    /// Whether they accept at the sockets of the program before this one.
    pub(crate) shares_queues: bool,
    /// How long a drain may take.
    pub(crate) drain: DrainTimes,
    /// Reads the configuration again and applies it, or says why everything stays as it was.
    pub(crate) reload: Box<dyn FnMut() -> Result<Reloaded, String> + Send>,
    /// The parts, which are told of each step.
    pub(crate) parts: Arc<Parts>,
    /// Logs, and the admin address.
    pub(crate) seeing: Arc<Seeing>,
    /// Further variables for the program that takes over.
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Duties {
    /// Tells the operator a line.
    pub(super) fn say(&self, line: &str) {
        (self.seeing.notice)(line);
    }

    /// Told that a drain begins, and whether another process takes over.
    pub(super) fn leave(&self, hands_over: bool) {
        self.seeing.drain(hands_over);
        self.parts.drain(Leaving { hands_over, readers_within_s: readers_within_s(self.drain.stop) });
    }

    /// Waits until live data is kept, which takes as long as a disk does, and, but not long, for the last
    /// lines said.
    pub(super) fn finish(&self) {
        self.parts.end();
        self.seeing.finish_own();
    }
}

/// In how many seconds readers of live data leave: before the drain is over, for what is under way needs some
/// of it.
fn readers_within_s(drain: Duration) -> u64 {
    (drain.as_secs() / 2).max(1)
}
