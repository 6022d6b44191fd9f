//! What can be wrong with an application's answer, and how it is said.
//!
//! It must never repeat bytes of the peer.

use std::error::Error;
use std::fmt;

/// Why an application's answer is not passed on, or not further. The connection is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelayFault {
    /// The application closed before a byte of the answer.
    NothingCame,
    /// The application closed within the head, or behind an interim answer.
    EndedInHead,
    /// The application closed before the body was complete.
    EndedInBody,
    /// Bytes came that no request asked for.
    Unasked,
    /// The status line does not begin with HTTP/1.0 or HTTP/1.1.
    Version,
    /// The status is no number of three digits from 100 to 599.
    Code,
    /// 101, and no upgrade was asked for.
    Switched,
    /// A WebSocket was asked for, and the answer is a success without one.
    NotSwitched,
    /// 101, and its Upgrade, Connection or Sec-WebSocket-Accept is not that of a WebSocket with our key.
    Handshake,
    /// A line ends with LF alone.
    BareLineFeed,
    /// A CR stands in a line without LF behind it.
    BareCarriageReturn,
    /// A NUL in a line.
    Nul,
    /// Another control character in a line.
    Control,
    /// A line goes on in the next one, or a first one begins with white space.
    Folded,
    /// A field line without a name.
    NameMissing,
    /// White space between a name and its colon.
    SpaceBeforeColon,
    /// A field line without a colon.
    ColonMissing,
    /// A name that is no token.
    Name,
    /// The head is too large.
    HeadTooLarge,
    /// The head has too many fields.
    TooManyFields,
    /// Connection names too many fields.
    TooManyNamed,
    /// More interim answers than any honest application sends.
    TooManyInterim,
    /// An interim answer says how long a body is.
    InterimWithBody,
    /// Content-Length is no number of bytes, such as a list.
    Length,
    /// Content-Length stands there twice.
    LengthTwice,
    /// Content-Length beside Transfer-Encoding.
    LengthAndChunks,
    /// A transfer coding that is not chunked, or not that alone.
    Coding,
    /// Transfer-Encoding in HTTP/1.0.
    CodingInHttp10,
    /// The line of a chunk's size, or the end of a chunk, is broken.
    Chunk,
    /// A chunk's size is beyond all numbers.
    ChunkSize,
    /// The fields behind the last chunk are too long.
    TrailersTooLarge,
    /// A record of FastCGI is of another version, request or type than what may come.
    Record,
    /// A FastCGI application takes no more requests at present.
    Overloaded,
}

impl fmt::Display for RelayFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NothingCame => "the application closed without an answer",
            Self::EndedInHead => "the application closed within the answer's head",
            Self::EndedInBody => "the application closed within the answer's body",
            Self::Unasked => "bytes came that no request asked for",
            Self::Version => "the answer does not begin with HTTP/1.1 or HTTP/1.0",
            Self::Code => "the answer's status is not a number from 100 to 599",
            Self::Switched => "the answer is 101, and no upgrade was asked for",
            Self::NotSwitched => "a WebSocket was asked for, and the answer is a success without one",
            Self::Handshake => {
                "Upgrade, Connection or Sec-WebSocket-Accept of the answer begins no WebSocket by our key"
            }
            Self::BareLineFeed => "a line of the answer ends with LF alone",
            Self::BareCarriageReturn => "a CR in a line of the answer is not followed by LF",
            Self::Nul => "a NUL in a line of the answer",
            Self::Control => "a control character in a line of the answer",
            Self::Folded => "a header line of the answer begins with white space",
            Self::NameMissing => "a header line of the answer has no name",
            Self::SpaceBeforeColon => "white space between a field name and its colon in the answer",
            Self::ColonMissing => "a header line of the answer has no colon",
            Self::Name => "a field name of the answer is not a token",
            Self::HeadTooLarge => "the answer's head is larger than 64 KiB",
            Self::TooManyFields => "the answer has more than 256 header fields",
            Self::TooManyNamed => "Connection of the answer names more than 16 fields",
            Self::TooManyInterim => "more than 16 interim answers",
            Self::InterimWithBody => "an interim answer says how long a body is",
            Self::Length => "Content-Length of the answer is not one number of bytes",
            Self::LengthTwice => "Content-Length stands twice in the answer",
            Self::LengthAndChunks => "both Content-Length and Transfer-Encoding in the answer",
            Self::Coding => "the answer's transfer coding is not chunked alone",
            Self::CodingInHttp10 => "Transfer-Encoding in an answer of HTTP/1.0",
            Self::Chunk => "the answer's body is not in the chunked coding it is said to have",
            Self::ChunkSize => "a chunk of the answer says a size beyond all numbers",
            Self::Record => "a record of FastCGI that may not come here",
            Self::Overloaded => "the FastCGI application takes no more requests",
            Self::TrailersTooLarge => "the fields behind the answer's body are longer than 8 KiB",
        })
    }
}

impl Error for RelayFault {}

const _: () = {
    use crate::limits::{INTERIM_ANSWERS_MAX, RELAYED_FIELDS_MAX, RELAYED_HEAD_BYTES_MAX, TRAILER_BYTES_MAX};
    assert!(RELAYED_HEAD_BYTES_MAX == 64 << 10 && RELAYED_FIELDS_MAX == 256);
    assert!(crate::limits::NAMED_FIELDS_MAX == 16);
    assert!(INTERIM_ANSWERS_MAX == 16 && TRAILER_BYTES_MAX == 8 << 10);
};
