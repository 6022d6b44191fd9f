//! Requests, and the words of HTTP that no version of it owns.
//!
//! It owns what a handler and a session say to each other. It must never know how a message is framed.

mod kept_request;
mod request;

use crate::status::Status;

pub use kept_request::KeptRequest;
pub use request::Request;
pub(crate) use request::{Kept, Span};

/// Request method (RFC 9110, section 9; PATCH: RFC 5789).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The method `GET`.
    Get,
    /// The method `HEAD`.
    Head,
    /// The method `POST`.
    Post,
    /// The method `PUT`.
    Put,
    /// The method `PATCH`.
    Patch,
    /// The method `DELETE`.
    Delete,
    /// The method `OPTIONS`.
    Options,
    /// The method `CONNECT`.
    Connect,
    /// The method `TRACE`.
    Trace,
    /// Another method of IANA's registry, such as those of WebDAV.
    Other,
    /// Any other token.
    Unknown,
}

/// Version of HTTP that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, and what is spoken to as such.
    Http11,
    /// HTTP/2
    Http2,
}

/// How long the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyIn {
    /// There is no body.
    None,
    /// So many bytes, at least one.
    Length(u64),
    /// Until its end is told (in HTTP/1.1 by the chunked transfer coding).
    Open,
}

/// An answer that a session gave by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfAnswered {
    /// The status that was sent.
    pub status: Status,
    /// Length of the body: a sentence.
    pub body_bytes: usize,
}

/// The bytes that must follow the fields and the blank line of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// The body.
    Send,
    /// Nothing: the request was HEAD, or the status has no body. The fields are the same as with a body.
    Omit,
}

/// Field lines (`name: value` and CRLF each) without the blank line that ends a head. HTTP/1.1 sends them as
/// they stand and appends the blank line; other versions iterate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// No field.
    pub const NONE: Self = Self(b"");

    /// These lines, each with its end and without a blank one behind them.
    #[inline]
    pub fn new(lines: &'a [u8]) -> Self {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"), "a field line has no end");
        debug_assert!(!lines.ends_with(b"\r\n\r\n") && lines != b"\r\n", "fields carry no blank line");
        Self(lines)
    }

    /// The lines as they stand.
    #[inline]
    pub fn lines(self) -> &'a [u8] {
        self.0
    }

    /// Every field in order: name as it stands, value without white space around it.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.0.split(|byte| *byte == b'\n').filter_map(|line| {
            let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
            Some((name, value.strip_prefix(b":")?.trim_ascii()))
        })
    }
}

impl<'a> From<&'a [u8]> for Fields<'a> {
    #[inline]
    fn from(lines: &'a [u8]) -> Self {
        Self::new(lines)
    }
}

impl<'a> From<&'a Vec<u8>> for Fields<'a> {
    #[inline]
    fn from(lines: &'a Vec<u8>) -> Self {
        Self::new(lines)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Fields<'a> {
    #[inline]
    fn from(lines: &'a [u8; N]) -> Self {
        Self::new(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_one_by_one() {
        let fields = Fields::new(b"Content-Length: 5\r\nX-Empty:\r\nVary:  Accept \r\n");
        let all: Vec<_> = fields.iter().collect();
        assert_eq!(all, [(&b"Content-Length"[..], &b"5"[..]), (b"X-Empty", b""), (b"Vary", b"Accept")]);
        assert_eq!(Fields::NONE.iter().count(), 0);
    }
}
