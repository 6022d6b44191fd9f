//! Bodies of publications: JSON, forms, and lines of JSON as they come.
//!
//! It owns what stands in them and what may be wrong with it. It must never hold more than one line.

mod form;
mod json;
mod lines;

use std::fmt;

pub(crate) use form::decode;
pub use form::{decode_form, read_form};
pub use json::read_json;
pub use lines::{LineReader, LinesMax};

use crate::hub::{Content, Expected, Publication, PublishFault};
use crate::limits::TOPICS_PER_PUBLICATION_MAX;
use crate::name::{NameFault, TopicName};
use crate::update::Value;

/// What is wrong with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFault {
    /// 400: no JSON, or not an object with the fields of a publication.
    Json {
        /// From 1, in the body; with lines of JSON always that of the body.
        line: u64,
        /// From 1.
        column: usize,
        /// What was expected.
        expected: String,
    },
    /// 400: `topic` is missing.
    NoTopic,
    /// 400: more topics than this.
    TooManyTopics(usize),
    /// 400: `topic` is no name.
    Topic(NameFault),
    /// 400: `retry` is not digits, or more than 32 bits.
    Retry,
    /// 400: `topic` is missing in what is said to be a form, and looks like JSON.
    JsonAsForm,
    /// 400: a form that is not UTF-8.
    NotUtf8,
    /// 413: a line is longer than this.
    LineTooLong(usize),
    /// 413: more lines than this.
    TooManyLines(usize),
    /// 413: more bytes than this.
    TooManyBytes(usize),
    /// What the hub refuses.
    Refused(PublishFault),
}

impl BodyFault {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::LineTooLong(_) | Self::TooManyLines(_) | Self::TooManyBytes(_) => 413,
            Self::Refused(fault) => fault.status(),
            _ => 400,
        }
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { line, column, expected } => write!(f, "line {line}, column {column}: {expected}"),
            Self::NoTopic => write!(f, "`topic` is missing"),
            Self::TooManyTopics(limit) => write!(f, "a publication has at most {limit} topics"),
            Self::Topic(fault) => write!(f, "`topic`: {fault}"),
            Self::Retry => write!(f, "`retry` must be digits, in milliseconds"),
            Self::JsonAsForm => {
                write!(f, "this looks like JSON sent as a form: it needs `Content-Type: application/json`")
            }
            Self::NotUtf8 => write!(f, "the form is not UTF-8"),
            Self::LineTooLong(limit) => write!(f, "the line is longer than {limit} bytes"),
            Self::TooManyLines(limit) => write!(f, "a batch has at most {limit} lines"),
            Self::TooManyBytes(limit) => write!(f, "a batch has at most {limit} bytes"),
            Self::Refused(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for BodyFault {}

/// A publication of fields that were read.
fn publication(
    topics: &[impl AsRef<str>],
    value: Value,
    id: Option<String>,
    kind: Option<String>,
    retry_ms: Option<u32>,
    private: bool,
) -> Result<Publication, BodyFault> {
    if topics.is_empty() {
        return Err(BodyFault::NoTopic);
    }
    if topics.len() > TOPICS_PER_PUBLICATION_MAX {
        return Err(BodyFault::TooManyTopics(TOPICS_PER_PUBLICATION_MAX));
    }
    let names = topics.iter().map(|topic| TopicName::new(topic.as_ref()));
    let mut topics: Vec<TopicName> = Vec::new();
    for name in names {
        let name = name.map_err(BodyFault::Topic)?;
        if !topics.contains(&name) {
            topics.push(name);
        }
    }
    let kept = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Into::into);
    Ok(Publication {
        topics,
        content: Content::Whole(value),
        id: kept(id),
        kind: kept(kind),
        retry_ms,
        private,
        expected: Expected::Anything,
        begins_log: false,
        stamp: None,
    })
}
