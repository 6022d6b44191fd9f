//! Updates: numbered, immutable, made once.
//!
//! It must never change after the hub has numbered it; workers share it.

use std::sync::Arc;

use staunch_dictionary::Hash;

use crate::name::TopicName;
use crate::stamp::UpdateStamp;
use crate::topic::TopicId;

/// Bytes that are shared and never change.
pub type Bytes = Arc<[u8]>;

/// A topic's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A JSON document, as it was published.
    Json(Bytes),
    /// UTF-8.
    Text(Bytes),
    /// Any other bytes.
    Binary(Bytes),
    /// None any more: the topic was deleted.
    Gone,
}

impl Value {
    /// Bytes that are no JSON: text if they are UTF-8.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(_) => Self::Text(bytes.into()),
            Err(_) => Self::Binary(bytes.into()),
        }
    }

    /// The bytes, none of a value that is gone.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(bytes) | Self::Text(bytes) | Self::Binary(bytes) => bytes,
            Self::Gone => &[],
        }
    }
}

/// A numbered update. Several topics may share it; each reader gets it once.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// Its place in the numbering of all updates; from 1.
    pub number: u64,
    /// The topics; the first one names it. Never empty.
    pub(crate) topics: Box<[(TopicId, TopicName)]>,
    /// The whole value.
    pub value: Value,
    /// The merge patch that makes the value of the one before, if that is known and shorter.
    pub patch: Option<Bytes>,
    /// The publisher's own id.
    pub id: Option<Box<str>>,
    /// The event's type.
    pub kind: Option<Box<str>>,
    /// After how many milliseconds a reader that was cut should come back.
    pub retry_ms: Option<u32>,
    /// Only for readers whose grants name one of its topics.
    pub private: bool,
    /// Its place among the updates of other nodes, where there are any.
    pub stamp: Option<UpdateStamp>,
    /// Whether it came from another node.
    pub is_foreign: bool,
    /// The hash of the value, where later values may be told as differences to it.
    pub hash: Option<Box<Hash>>,
}

impl Update {
    /// The topic that names it.
    pub fn topic(&self) -> &TopicName {
        &self.topics[0].1
    }

    /// The names of the topics that it is published to.
    pub fn topics(&self) -> impl Iterator<Item = &TopicName> {
        self.topics.iter().map(|(_, name)| name)
    }

    /// Bytes it holds, its forms aside.
    pub fn held_bytes(&self) -> usize {
        let texts = [&self.id, &self.kind].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        size_of::<Self>()
            + self.value.bytes().len()
            + self.patch.as_ref().map_or(0, |patch| patch.len())
            + self.hash.as_ref().map_or(0, |_| size_of::<Hash>())
            + texts
    }
}
