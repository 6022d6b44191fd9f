//! Which pieces of a request a log wants, and finding them in its head.
//!
//! It must do nothing for a log that wants none.

use memchr::memchr_iter;
use staunch_protocol::Request;

use super::settings::{Field, Format, Piece};

/// There is a log.
pub(super) const ON: u32 = 1;
pub(super) const HOST: u32 = 1 << 1;
const REFERER: u32 = 1 << 2;
const USER_AGENT: u32 = 1 << 3;
const FORWARDED_FOR: u32 = 1 << 4;
pub(super) const AUTHORIZATION: u32 = 1 << 5;
pub(super) const IDENTITY: u32 = 1 << 6;
pub(super) const PASSED: u32 = 1 << 7;
const SEARCHED: u32 = REFERER | USER_AGENT | FORWARDED_FOR | AUTHORIZATION;

/// What lines of this form need, as bits.
pub(super) fn wanted(format: &Format) -> u32 {
    let of_field = |field: &Field| match field {
        Field::Host => HOST,
        Field::Referer => REFERER,
        Field::UserAgent => USER_AGENT,
        Field::ForwardedFor => FORWARDED_FOR,
        Field::User => AUTHORIZATION,
        Field::ClientVerify | Field::ClientSubject | Field::ClientFingerprint => IDENTITY,
        Field::Upstream
        | Field::UpstreamTries
        | Field::UpstreamClass
        | Field::UpstreamLineMs
        | Field::UpstreamHeaderMs
        | Field::UpstreamResponseMs => PASSED,
        _ => 0,
    };
    ON | match format {
        Format::Combined => REFERER | USER_AGENT | AUTHORIZATION,
        Format::Text(pieces) => {
            let fields = pieces.iter().filter_map(|piece| match piece {
                Piece::Field(field) => Some(of_field(field)),
                _ => None,
            });
            fields.fold(0, |all, one| all | one)
        }
        Format::Json(fields) => fields.iter().map(of_field).fold(0, |all, one| all | one),
    }
}

/// Values of fields, the first of each name. What is not wanted or did not come is empty.
#[derive(Default, Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) referer: &'a [u8],
    pub(super) user_agent: &'a [u8],
    pub(super) forwarded_for: &'a [u8],
    pub(super) authorization: &'a [u8],
}

/// The request line as received.
#[inline]
pub(super) fn request_line<'a>(request: &Request<'a>) -> &'a [u8] {
    let end = memchr::memchr(b'\r', request.head).unwrap_or(request.head.len());
    &request.head[..end]
}

/// Passes over the beginnings of the lines until all that is wanted was found.
#[inline]
pub(super) fn find<'a>(head: &'a [u8], wanted: u32) -> Found<'a> {
    let mut found = Found::default();
    let mut missing = wanted & SEARCHED;
    for newline in memchr_iter(b'\n', head) {
        if missing == 0 {
            break;
        }
        let line = &head[newline + 1..];
        let (bit, name, place): (u32, &[u8], _) = match line.first().map_or(0, u8::to_ascii_lowercase) {
            b'r' => (REFERER, b"referer:", &mut found.referer),
            b'u' => (USER_AGENT, b"user-agent:", &mut found.user_agent),
            b'x' => (FORWARDED_FOR, b"x-forwarded-for:", &mut found.forwarded_for),
            b'a' => (AUTHORIZATION, b"authorization:", &mut found.authorization),
            _ => continue,
        };
        if missing & bit != 0
            && let Some((start, rest)) = line.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            *place = rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].trim_ascii();
            missing &= !bit;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nUSER-agent:  one two \r\nReferrer: not\r\n\
        Authorization: Basic eA==\r\nReferer: first\r\nreferer: second\r\nx-forwarded-for: 1.2.3.4\r\n\r\n";

    #[test]
    fn the_first_of_each_name_is_found() {
        let found = find(HEAD, !0);
        assert_eq!(found.user_agent, b"one two");
        assert_eq!(found.referer, b"first");
        assert_eq!(found.authorization, b"Basic eA==");
        assert_eq!(found.forwarded_for, b"1.2.3.4");
    }

    #[test]
    fn what_is_not_wanted_is_not_found() {
        let found = find(HEAD, wanted(&Format::Json(vec![Field::Status, Field::Referer])));
        assert_eq!((found.referer, found.user_agent), (&b"first"[..], &b""[..]));
        let nothing = find(b"GET / HTTP/1.1\r\n\r\n", !0);
        assert!(nothing.referer.is_empty() && nothing.user_agent.is_empty());
    }
}
