//! How a response begins, and whole responses to what never became a request.
//!
//! It owns the bytes of status line, Server, Date and Connection. It must never decide whether a connection
//! stays: it is told.

use crate::status::Status;

/// What a response says about its connection (RFC 9112, section 9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Nothing: HTTP/1.1 stays open by default.
    Implied,
    /// The connection is closed after this response.
    Close,
    /// The connection is closed because the body of the request will not be read; reading it keeps it open.
    Unread,
    /// The connection stays open although the peer speaks HTTP/1.0.
    KeepAlive,
}

impl Persistence {
    /// Whether this response is the last one.
    #[inline]
    pub(super) fn is_last(self) -> bool {
        matches!(self, Self::Close | Self::Unread)
    }

    fn ending(self) -> &'static [u8] {
        match self {
            Self::Implied => b"\r\n",
            Self::Close | Self::Unread => b"\r\nConnection: close\r\n",
            Self::KeepAlive => b"\r\nConnection: keep-alive\r\n",
        }
    }
}

/// Why the session itself answers a request, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: Status,
    /// What is wrong, as the end of a sentence. Never contains bytes of the peer.
    pub(super) reason: &'static str,
}

impl Refusal {
    /// The peer broke a rule of the format.
    pub(super) const fn bad(reason: &'static str) -> Self {
        Self { status: Status::BAD_REQUEST, reason }
    }

    /// The peer kept to the rules, but this server does otherwise.
    pub(super) const fn new(status: Status, reason: &'static str) -> Self {
        Self { status, reason }
    }
}

/// Room for everything `begin` writes and a few short fields, so that one reservation serves a response.
const OPENING_BYTES: usize = 256;

/// Appends status line, Server, Date and, where needed, Connection.
#[inline]
pub(super) fn begin(status: Status, persistence: Persistence, date: &[u8; 29], out: &mut Vec<u8>) {
    out.reserve(OPENING_BYTES);
    out.extend_from_slice(status.opening());
    out.extend_from_slice(date);
    out.extend_from_slice(persistence.ending());
}

/// Appends a whole response that says what was wrong and that the connection ends. Gives the length of the
/// body appended.
#[cold]
pub(super) fn refuse(refusal: Refusal, omit_body: bool, date: &[u8; 29], out: &mut Vec<u8>) -> usize {
    let Refusal { status, reason } = refusal;
    begin(status, Persistence::Close, date, out);
    let body = format!("{status}: {reason}\n");
    let length_bytes = body.len();
    let fields = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length_bytes}\r\n\r\n");
    out.extend_from_slice(fields.as_bytes());
    if omit_body {
        return 0;
    }
    out.extend_from_slice(body.as_bytes());
    length_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

    #[test]
    fn openings() {
        let mut out = Vec::new();
        begin(Status::OK, Persistence::Implied, DATE, &mut out);
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nServer: staunch\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert!(out.capacity() >= out.len());
        out.clear();
        begin(Status::NOT_FOUND, Persistence::KeepAlive, DATE, &mut out);
        assert!(out.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
        assert!(out.ends_with(b"GMT\r\nConnection: keep-alive\r\n"));
    }

    #[test]
    fn a_refusal_is_a_whole_response() {
        let refusal = Refusal::bad("bare LF in the head");
        let mut out = Vec::new();
        assert_eq!(refuse(refusal, false, DATE, &mut out), 37);
        let text = String::from_utf8(out).expect("ASCII");
        assert!(text.contains("\r\nConnection: close\r\n"));
        assert!(text.contains("\r\nContent-Length: 37\r\n"));
        assert!(text.ends_with("\r\n\r\n400 Bad Request: bare LF in the head\n"));

        let mut out = Vec::new();
        assert_eq!(refuse(refusal, true, DATE, &mut out), 0);
        assert!(out.ends_with(b"\r\nContent-Length: 37\r\n\r\n"));
    }
}
