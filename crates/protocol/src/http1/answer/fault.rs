//! What can be wrong with an answer, and how it is said.
//!
//! It must never repeat bytes of the peer.

use std::error::Error;
use std::fmt;

/// Why a connection cannot give an answer, or none that can be trusted. The connection is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerFault {
    /// The peer closed before a byte of the answer.
    NothingCame,
    /// The peer closed within the head.
    EndedInHead,
    /// The peer closed before the body was complete.
    EndedInBody,
    /// Bytes came that no request asked for.
    Unasked,
    /// The head breaks a rule of the format; what is wrong, as a sentence without its full stop.
    Head(&'static str),
    /// The fields do not say clearly how long the body is; what is wrong, as above.
    Length(&'static str),
    /// The chunked coding is broken.
    Chunk,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NothingCame => "the peer closed without an answer",
            Self::EndedInHead => "the peer closed within the answer's head",
            Self::EndedInBody => "the peer closed within the answer's body",
            Self::Unasked => "bytes came that no request asked for",
            Self::Head(sentence) | Self::Length(sentence) => sentence,
            Self::Chunk => "the body is not in the chunked coding it is said to have",
        })
    }
}

impl Error for AnswerFault {}
