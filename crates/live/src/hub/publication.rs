//! What is published, and what may be wrong with it.
//!
//! It owns their words. It must never know a topic.

use std::fmt;

use foldhash::{HashSet, HashSetExt as _};

use crate::limits::ID_BYTES_MAX;
use crate::name::TopicName;
use crate::stamp::UpdateStamp;
use crate::update::Value;
use crate::version::Version;

/// What a publication makes of a topic's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The whole value.
    Whole(Value),
    /// What changes in it (RFC 7396).
    Patch(serde_json::Value),
    /// The end of it.
    Gone,
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        if value == Value::Gone { Self::Gone } else { Self::Whole(value) }
    }
}

/// What the publisher knows of the topic (RFC 9110, section 13.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expected {
    /// Nothing.
    #[default]
    Anything,
    /// There is a value: `If-Match: *`.
    Something,
    /// There is none: `If-None-Match: *`.
    Nothing,
    /// Its version is one of these: `If-Match`.
    OneOf(Vec<Version>),
    /// Its version is none of these: `If-None-Match`.
    NoneOf(Vec<Version>),
}

/// An update before it has a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// Its topics, one at least; the first one names it.
    pub topics: Vec<TopicName>,
    /// What it says.
    pub content: Content,
    /// The publisher's own id.
    pub id: Option<Box<str>>,
    /// The event's type.
    pub kind: Option<Box<str>>,
    /// After how many milliseconds a reader that was cut should come back.
    pub retry_ms: Option<u32>,
    /// Only for readers with a grant for one of its topics.
    pub private: bool,
    /// What the publisher expects of the first topic.
    pub expected: Expected,
    /// A topic that begins with it is a log, unless a rule says otherwise.
    pub begins_log: bool,
    /// Its place among the updates of all nodes, if it comes from another one.
    pub stamp: Option<UpdateStamp>,
}

impl Publication {
    /// A value for one topic.
    pub fn new(topic: TopicName, value: Value) -> Self {
        Self {
            topics: vec![topic],
            content: Content::Whole(value),
            id: None,
            kind: None,
            retry_ms: None,
            private: false,
            expected: Expected::Anything,
            begins_log: false,
            stamp: None,
        }
    }

    /// Bytes of memory the publication takes, roughly: its value or patch, its id and type, and the names of
    /// its topics.
    pub fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Whole(value) => value.bytes().len(),
            Content::Patch(patch) => json_bytes(patch),
            Content::Gone => 0,
        };
        let texts = [&self.id, &self.kind].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        content + texts + self.topics.iter().map(|topic| topic.as_str().len()).sum::<usize>()
    }

    /// Each of its topics once, in their order.
    pub(crate) fn name_topics_once(&mut self) {
        let mut seen = HashSet::new();
        self.topics.retain(|topic| seen.insert(topic.clone()));
    }

    /// Bytes of its id, its kind and the longest name of its topics.
    pub(crate) fn text_bytes(&self) -> usize {
        let texts = [&self.id, &self.kind].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        texts + self.topics.iter().map(|topic| topic.as_str().len()).max().unwrap_or(0)
    }
}

/// Bytes of memory a JSON document takes, roughly: its strings and names, and `size_of::<Value>()` for each
/// value in it.
fn json_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    let parts = match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(json_bytes).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + json_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + parts
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its version; none while it is held back, because its topic has an update at most every so often.
    pub version: Option<Version>,
    /// How many readers its topics have.
    pub readers: u64,
}

/// Why a publication is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishFault {
    /// 400: no topic.
    NoTopic,
    /// 400: `id` is longer than [`ID_BYTES_MAX`], has a control character, begins with `#`, or is `earliest`,
    /// by which readers of Mercure ask for all that is kept.
    Id,
    /// 400: `type` is longer than [`ID_BYTES_MAX`], has a control character, or is `mercure`, which Mercure
    /// keeps for itself.
    Kind,
    /// 413: the value is longer than this.
    TooLong(usize),
    /// 400: a topic of kind `json` gets a value that is no JSON.
    NotJson,
    /// 409: a merge patch for a value that is no JSON, or for none.
    NothingToPatch,
    /// 412: the topic is not as expected.
    NotAsExpected,
    /// 409: it comes from another node, and its topics have newer values.
    Outdated,
    /// 503: `topics`.
    Topics(usize),
    /// 503: `live_memory`.
    Memory,
}

impl PublishFault {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::NoTopic | Self::Id | Self::Kind | Self::NotJson => 400,
            Self::NothingToPatch | Self::Outdated => 409,
            Self::NotAsExpected => 412,
            Self::TooLong(_) => 413,
            Self::Topics(_) | Self::Memory => 503,
        }
    }
}

impl fmt::Display for PublishFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTopic => write!(f, "`topic` is missing"),
            Self::Id => {
                let rule = "no control character, does not begin with `#`, and is not `earliest`";
                write!(f, "`id` has at most {ID_BYTES_MAX} bytes, {rule}")
            }
            Self::Kind => {
                let rule = "no control character, and is not `mercure`";
                write!(f, "`type` has at most {ID_BYTES_MAX} bytes, {rule}")
            }
            Self::TooLong(limit) => {
                write!(f, "the value is longer than `live_value_size` allows, {limit} bytes")
            }
            Self::NotJson => write!(f, "the topic is of kind `json`, and the value is not JSON"),
            Self::NothingToPatch => write!(f, "a merge patch changes JSON, and the topic's value is none"),
            Self::NotAsExpected => write!(f, "the topic's version is not the one expected"),
            Self::Outdated => write!(f, "the topic has a newer value"),
            Self::Topics(limit) => write!(f, "there are as many topics as `live_topics` allows, {limit}"),
            Self::Memory => write!(f, "values fill what `live_memory` allows"),
        }
    }
}

impl std::error::Error for PublishFault {}
