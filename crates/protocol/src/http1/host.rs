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

/// The authority in the Host line of a head, as it was sent, whatever else stands there or is missing: for
/// who answers without reading the head. `None` without a whole line of that kind, and for what is no
/// authority.
pub fn authority_in(head: &[u8]) -> Option<&str> {
    let lines = head.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let value = lines.skip(1).find_map(|line| {
        let (name, value) = line.split_at_checked(b"host:".len())?;
        name.eq_ignore_ascii_case(b"host:").then_some(value.trim_ascii())
    })?;
    let authority = parse_authority(value).filter(|authority| !authority.host.is_empty());
    authority.and_then(|_| std::str::from_utf8(value).ok())
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
            at += encoded_bytes(&bytes[at..])?;
        }
    }
    Some(at)
}

/// The length of a percent-encoded byte, if it may stand in a name: as itself, or as a part of UTF-8 (RFC
/// 3986, section 3.2.2). Encoded delimiters and control characters would be another host to whoever decodes.
fn encoded_bytes(bytes: &[u8]) -> Option<usize> {
    let [b'%', high, low, ..] = *bytes else { return None };
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (NAME[usize::from(byte)] || !byte.is_ascii()).then_some(3)
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
    fn the_authority_is_found_in_a_head_that_is_cut() {
        for (head, expected) in [
            (&b"GET / HTTP/1.1\r\nHOST:  example.org:8443 \r\nA: b\r\n\r\n"[..], Some("example.org:8443")),
            (b"GET / HTTP/1.1\nHost: [::1]:8443\n", Some("[::1]:8443")),
            (b"GET / HTTP/1.1\r\nHost: example.or", None),
            (b"GET / HTTP/1.1\r\nHost: \r\n", None),
            (b"GET / HTTP/1.1\r\nHost: a<b>\r\n", None),
            (b"GET / HTTP/1.1\r\nX-Host: a\r\n", None),
            (b"GET", None),
            (b"", None),
        ] {
            assert_eq!(authority_in(head), expected, "{}", head.escape_ascii());
        }
    }

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
            (b"b%C3%bccher.example:80", b"b%C3%bccher.example", Some(80)),
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
            b"%00",
            b"a%0d%0ab",
            b"a%7F",
            b"a%20b",
            b"a%2Fb",
            b"a%3a80",
            b"a%40b",
            b"%5B::1%5D",
            b"a%25",
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
