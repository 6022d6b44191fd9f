//! What topics are like: kinds and rules.
//!
//! It must never hold a topic's value: `ring` does.

use crate::limits::{RING_BYTES_DEFAULT, RING_ENTRIES_DEFAULT};

/// What readers of a topic are promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// The latest counts: what is outdated may be skipped, an older value never follows a newer one.
    #[default]
    Value,
    /// Each update once, in order, as far as the ring reaches; then a gap mark.
    Log,
    /// A value that is one JSON document; readers that ask for it get differences.
    Json,
}

/// Settings of the topics that a pattern names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRules {
    /// What readers are promised.
    pub kind: Kind,
    /// Most updates in the ring.
    pub ring_entries: usize,
    /// Most bytes of values in the ring.
    pub ring_bytes: usize,
    /// At most one update in so many milliseconds, the latest wins; 0 for no limit. Not for `log`.
    pub every_ms: u64,
    /// Forgotten after so many milliseconds without an update and without readers; 0 for never.
    pub keep_ms: u64,
    /// Every update is private.
    pub private: bool,
    /// Values that are not private may be told as differences to earlier ones, for which the ring keeps these
    /// also where the latest alone counts.
    pub dictionary: bool,
}

impl Default for TopicRules {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            ring_entries: RING_ENTRIES_DEFAULT,
            ring_bytes: RING_BYTES_DEFAULT,
            every_ms: 0,
            keep_ms: 0,
            private: false,
            dictionary: false,
        }
    }
}

/// A topic's place in the hub's list. It is not used for another topic within an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct TopicId(pub(crate) u32);
