//! A parsed request, borrowed from the bytes it came in.
//!
//! It owns the vocabulary between session and handler. It must never hold bytes of its own.

use super::field::trim;
use super::framing::Framing;

/// Request method. Only those a file server answers have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// A method registered elsewhere (POST, PUT, DELETE, PATCH, TRACE, CONNECT and the WebDAV ones): 405.
    Known,
    /// Any other token: 501.
    Unknown,
}

/// A request whose head is complete and passed every rule of the RFCs.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Path as sent: begins with `/`, or is `*` (OPTIONS and CONNECT only). Not decoded.
    pub path: &'a [u8],
    /// What stands behind the first `?`, without it.
    pub query: Option<&'a [u8]>,
    /// Host without port, from the absolute-form target if there is one, else from Host. May be empty.
    pub host: &'a [u8],
    /// Whether the peer speaks HTTP/1.0.
    pub http10: bool,
    /// Whether a body follows the head, and how it is delimited. The session throws the body away.
    pub content: Framing,
    /// Accept-Encoding.
    pub accept_encoding: Option<&'a [u8]>,
    /// Accept.
    pub accept: Option<&'a [u8]>,
    /// Range.
    pub range: Option<&'a [u8]>,
    /// If-Range.
    pub if_range: Option<&'a [u8]>,
    /// If-Match.
    pub if_match: Option<&'a [u8]>,
    /// If-None-Match.
    pub if_none_match: Option<&'a [u8]>,
    /// If-Modified-Since.
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// Names (as the bits below) that came more than once: the field above is the first, all stand in
    /// [`Request::values`].
    pub repeated: u16,
    /// The whole head as received, from the request line to the blank line.
    pub head: &'a [u8],
}

impl<'a> Request<'a> {
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

    /// Every field in the order received: name as sent, value without white space around it.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            let (name, value) = line.split_at_checked(colon)?;
            let value = value.strip_prefix(b":")?;
            Some((name, trim(value.strip_suffix(b"\r").unwrap_or(value))))
        })
    }

    /// The values of every field of this name (in any case), in the order received.
    pub fn values<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.fields().filter(move |field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1)
    }
}
