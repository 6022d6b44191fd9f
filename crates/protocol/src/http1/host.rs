//! The authority of a request: host and port, as Host and absolute targets carry them.
//!
//! It owns the syntax of RFC 3986, section 3.2, without user information, which RFC 9110, section 4.2.4,
//! tells to treat as an error. It must never resolve a name or compare one with what is served.

use std::net::Ipv6Addr;

use super::field::byte_table;

/// Bytes that stand for themselves in a registered name: `unreserved` and `sub-delims` (RFC 3986, section 2).
static NAME: [bool; 256] = byte_table(b"-._~!$&'()*+,;=");

/// A host and its port, if one was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// The host as sent; an IPv6 address keeps its brackets. May be empty.
    pub(super) host: &'a [u8],
    /// The port. Nothing and an empty one (`host:`) are the same.
    pub(super) port: Option<u16>,
}

/// Parses `uri-host [ ":" port ]` (RFC 9110, section 7.2); `None` when it is not one.
#[inline]
pub(super) fn parse_authority(bytes: &[u8]) -> Option<Authority<'_>> {
    let host_end = match bytes.first() {
        Some(b'[') => ip_literal_end(bytes)?,
        _ => registered_name_end(bytes)?,
    };
    let (host, port) = bytes.split_at_checked(host_end)?;
    let port = match port {
        [] => None,
        [b':', digits @ ..] => parse_port(digits)?,
        _ => return None,
    };
    Some(Authority { host, port })
}

/// Where the registered name or IPv4 address ends: at a colon or at the end of the bytes.
#[inline]
fn registered_name_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if NAME[usize::from(byte)] {
            at += 1;
        } else if byte == b':' {
            break;
        } else {
            match bytes[at..] {
                [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => at += 3,
                _ => return None,
            }
        }
    }
    Some(at)
}

/// The byte behind the bracket of an IPv6 address. Addresses of future versions (`[v1.x]`) are not known.
fn ip_literal_end(bytes: &[u8]) -> Option<usize> {
    let close = memchr::memchr(b']', bytes)?;
    let text = std::str::from_utf8(bytes.get(1..close)?).ok()?;
    text.parse::<Ipv6Addr>().ok()?;
    Some(close + 1)
}

#[inline]
fn parse_port(digits: &[u8]) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    if digits.len() > 5 {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        let value = u32::from(digit.wrapping_sub(b'0'));
        if value > 9 {
            return None;
        }
        number = number * 10 + value;
    }
    Some(Some(u16::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        let valid: &[(&[u8], &[u8], Option<u16>)] = &[
            (b"", b"", None),
            (b"a", b"a", None),
            (b"example.org", b"example.org", None),
            (b"example.org:", b"example.org", None),
            (b"example.org:8080", b"example.org", Some(8080)),
            (b"a:65535", b"a", Some(65535)),
            (b":80", b"", Some(80)),
            (b"127.0.0.1:0", b"127.0.0.1", Some(0)),
            (b"a_b~c%2D", b"a_b~c%2D", None),
            (b"[::1]", b"[::1]", None),
            (b"[2001:db8::7]:443", b"[2001:db8::7]", Some(443)),
            (b"[::ffff:1.2.3.4]", b"[::ffff:1.2.3.4]", None),
        ];
        for (bytes, host, port) in valid {
            assert_eq!(
                parse_authority(bytes),
                Some(Authority { host, port: *port }),
                "{:?}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn not_authorities() {
        let invalid: &[&[u8]] = &[
            b"a b",
            b"a/b",
            b"a?b",
            b"a#b",
            b"user@a",
            b"a:b",
            b"a:65536",
            b"a:-1",
            b"a:+1",
            b"a:000080",
            b"a:1:2",
            b"[",
            b"[]",
            b"[::1",
            b"[::1]x",
            b"[1.2.3.4]",
            b"[::g]",
            b"[v1.x]",
            b"[fe80::1%25eth0]",
            b"::1",
            b"a%2",
            b"a%zz",
            b"a\"",
            b"a<",
            b"a\\b",
            b"\xc3\xa4",
            b"a, b",
            b"a\tb",
        ];
        for bytes in invalid {
            assert_eq!(parse_authority(bytes), None, "{:?}", bytes.escape_ascii());
        }
    }
}
