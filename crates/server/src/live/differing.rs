//! Polls that wait for the difference to what they have, while the writer makes it.
//!
//! This module owns who waits for which difference. None may wait for longer than it takes to make one:
//! whatever comes of that, all who wait for it are answered.

use foldhash::{HashMap, HashMapExt as _};
use staunch_engine::Address;
use staunch_live::TopicName;

use super::value_coding::ValueCoding;

/// Bytes that a poll costs which waits so, beside the name of its topic.
const POLL_BYTES: usize = 128;

/// The polls of a worker that wait for a difference.
#[derive(Debug)]
pub(crate) struct Differing {
    waiting: HashMap<(TopicName, ValueCoding), Vec<Address>>,
}

impl Differing {
    pub(crate) fn new() -> Self {
        Self { waiting: HashMap::new() }
    }

    /// A poll waits from now on for a coding of a topic's value; gives how many bytes that costs.
    pub(crate) fn add(&mut self, topic: TopicName, coding: ValueCoding, address: Address) -> usize {
        let bytes = POLL_BYTES + topic.held_bytes();
        self.waiting.entry((topic, coding)).or_default().push(address);
        bytes
    }

    /// A difference was made: those who waited for it.
    pub(crate) fn take(&mut self, topic: &TopicName, coding: ValueCoding) -> Vec<Address> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        self.waiting.remove(&(topic.clone(), coding)).unwrap_or_default()
    }
}
