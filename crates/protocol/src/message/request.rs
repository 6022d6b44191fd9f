//! A parsed request, borrowed from the bytes it came in.
//!
//! It owns the vocabulary between session and handler. It must never hold bytes of its own.

use super::{BodyIn, Fields, Method, Version};
use crate::limits::HEAD_BYTES_MAX;

/// A request whose head is complete and passed every rule of the RFCs.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method of the request line.
    pub method: Method,
    /// Path as sent: begins with `/`, or is `*` (OPTIONS and CONNECT only). Not decoded.
    pub path: &'a [u8],
    /// What stands behind the first `?`, without it.
    pub query: Option<&'a [u8]>,
    /// Host without port, from the absolute-form target if there is one, else from Host. May be empty.
    pub host: &'a [u8],
    /// Version of HTTP it came by.
    pub version: Version,
    /// Whether a body follows the head, and how long it is. It is thrown away unless it is asked for.
    pub content: BodyIn,
    /// Names (as the bits below) that came more than once: the method of the name gives the
    /// first, [`Request::values`] all.
    pub repeated: u16,
    /// The whole head as received, from the request line to the blank line.
    pub head: &'a [u8],
    pub(crate) kept: Kept,
}

/// Where in the head the values stand that a handler may ask for: the first of each name. Places instead of
/// slices, so that a request is no longer than what is moved without a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    /// Names (as the bits of [`Request`]) that came.
    names: u16,
    /// Start and end, by the bit's number.
    places: [(u16, u16); NAMES],
}

/// Start and end of a part within the bytes it stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span(u16, u16);

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self(start as u16, end as u16)
    }

    /// Where a part stands; `None` if it does not.
    pub(crate) fn of(part: &[u8], bytes: &[u8]) -> Option<Self> {
        let start = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        let end = start + part.len();
        (end <= bytes.len()).then_some(Self::new(start, end))
    }

    #[inline]
    pub(crate) fn slice(self, bytes: &[u8]) -> &[u8] {
        bytes.get(usize::from(self.0)..usize::from(self.1)).unwrap_or_default()
    }
}

/// How many names have a bit.
const NAMES: usize = 8;

const _: () = assert!(HEAD_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(size_of::<Request<'_>>() <= 120);

impl Kept {
    /// Keeps the place of a value. Gives false if the name came before: then the first one stays.
    #[inline]
    pub(crate) fn keep(&mut self, name: u16, start: usize, length: usize) -> bool {
        let first = self.names & name == 0;
        if first {
            self.names |= name;
            self.places[name.trailing_zeros() as usize % NAMES] = (start as u16, (start + length) as u16);
        }
        first
    }
}

impl<'a> Request<'a> {
    /// Whether the request asks for a WebSocket on its stream (RFC 8441): CONNECT to a path, which only
    /// HTTP/2 knows.
    #[inline]
    pub fn asks_websocket(&self) -> bool {
        self.method == Method::Connect && self.path.starts_with(b"/")
    }

    /// Bit of Accept-Encoding in [`Request::repeated`].
    pub const ACCEPT_ENCODING: u16 = 1;
    /// Bit of Accept in [`Request::repeated`].
    pub const ACCEPT: u16 = 1 << 1;
    /// Bit of Range in [`Request::repeated`].
    pub const RANGE: u16 = 1 << 2;
    /// Bit of If-Range in [`Request::repeated`].
    pub const IF_RANGE: u16 = 1 << 3;
    /// Bit of If-Match in [`Request::repeated`].
    pub const IF_MATCH: u16 = 1 << 4;
    /// Bit of If-None-Match in [`Request::repeated`].
    pub const IF_NONE_MATCH: u16 = 1 << 5;
    /// Bit of If-Modified-Since in [`Request::repeated`].
    pub const IF_MODIFIED_SINCE: u16 = 1 << 6;
    /// Bit of If-Unmodified-Since in [`Request::repeated`].
    pub const IF_UNMODIFIED_SINCE: u16 = 1 << 7;

    /// Whether a field of any of these names (as the bits above) came.
    #[inline]
    pub fn has_any(&self, names: u16) -> bool {
        self.kept.names & names != 0
    }

    /// The value of `Accept-Encoding`.
    #[inline]
    pub fn accept_encoding(&self) -> Option<&'a [u8]> {
        self.first(Self::ACCEPT_ENCODING)
    }

    /// The value of `Accept`.
    #[inline]
    pub fn accept(&self) -> Option<&'a [u8]> {
        self.first(Self::ACCEPT)
    }

    /// The value of `Range`.
    #[inline]
    pub fn range(&self) -> Option<&'a [u8]> {
        self.first(Self::RANGE)
    }

    /// The value of `If-Range`.
    #[inline]
    pub fn if_range(&self) -> Option<&'a [u8]> {
        self.first(Self::IF_RANGE)
    }

    /// The value of `If-Match`.
    #[inline]
    pub fn if_match(&self) -> Option<&'a [u8]> {
        self.first(Self::IF_MATCH)
    }

    /// The value of `If-None-Match`.
    #[inline]
    pub fn if_none_match(&self) -> Option<&'a [u8]> {
        self.first(Self::IF_NONE_MATCH)
    }

    /// The value of `If-Modified-Since`.
    #[inline]
    pub fn if_modified_since(&self) -> Option<&'a [u8]> {
        self.first(Self::IF_MODIFIED_SINCE)
    }

    /// The value of `If-Unmodified-Since`.
    #[inline]
    pub fn if_unmodified_since(&self) -> Option<&'a [u8]> {
        self.first(Self::IF_UNMODIFIED_SINCE)
    }

    #[inline]
    fn first(&self, name: u16) -> Option<&'a [u8]> {
        if !self.has_any(name) {
            return None;
        }
        let (start, end) = self.kept.places[name.trailing_zeros() as usize % NAMES];
        self.head.get(usize::from(start)..usize::from(end))
    }

    /// All fields of the head, line by line.
    pub fn field_lines(&self) -> Fields<'a> {
        let start = memchr::memchr(b'\n', self.head).map_or(self.head.len(), |end| end + 1);
        let end = self.head.len().saturating_sub(2).max(start);
        Fields::new(self.head.get(start..end).unwrap_or_default())
    }

    /// Every field in the order received: name as sent, value without white space around it.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.field_lines().iter()
    }

    /// The values of every field of this name (in any case), in the order received.
    pub fn values<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.fields().filter(move |field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1)
    }
}
