//! The redirect of a folder named without its closing slash.

use std::fmt::Write;

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;

use crate::content::fields;

/// 301 to the same path with a slash, the query kept. The target is relative to this host, whatever name the
/// peer knows it by; a decoded path has no empty segment, so it cannot begin with `//` and name another host.
pub(crate) fn to_folder(path: &[u8], query: Option<&[u8]>, answer: Answer<'_>) -> Answered {
    let location = location(path, query);
    let body = "<!DOCTYPE html>\n<title>301 Moved Permanently</title>\n\
                <p>This folder's address ends with a slash.</p>\n";
    let mut out = Vec::with_capacity(256 + location.len());
    fields::field(&mut out, "Content-Length", itoa::Buffer::new().format(body.len()).as_bytes());
    fields::field(&mut out, "Content-Type", b"text/html; charset=utf-8");
    fields::field(&mut out, "X-Content-Type-Options", b"nosniff");
    fields::field(&mut out, "Cache-Control", b"no-cache");
    fields::field(&mut out, "Location", location.as_bytes());
    out.extend_from_slice(b"\r\n");
    answer.bytes(Status::MOVED_PERMANENTLY, &out, body.as_bytes())
}

fn location(path: &[u8], query: Option<&[u8]>) -> String {
    let mut location = String::with_capacity(path.len() + 1);
    for &byte in path {
        push(&mut location, byte, is_plain_in_path(byte));
    }
    location.push('/');
    if let Some(query) = query {
        location.push('?');
        for &byte in query {
            push(&mut location, byte, is_plain_in_query(byte));
        }
    }
    location
}

fn push(out: &mut String, byte: u8, plain: bool) {
    if plain {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "%{byte:02X}");
    }
}

/// pchar and the slash (RFC 3986, section 3.3), of which the colon and what could end an attribute are left
/// out.
fn is_plain_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/!$()*+,;=@".contains(&byte)
}

/// The query stands as it was sent, unless a byte has no place in an address (RFC 3986, section 3.4).
fn is_plain_in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations() {
        for (path, query, expected) in [
            ("/a", None, "/a/"),
            ("/a b/ü", None, "/a%20b/%C3%BC/"),
            ("/a%2e", Some("x=%20&y"), "/a%252e/?x=%20&y"),
            ("/\\evil.example", None, "/%5Cevil.example/"),
            ("/a\r\nSet-Cookie: x", Some("\"<é"), "/a%0D%0ASet-Cookie%3A%20x/?%22%3C%C3%A9"),
            ("/a", Some(""), "/a/?"),
        ] {
            assert_eq!(location(path.as_bytes(), query.map(str::as_bytes)), expected);
        }
    }
}
