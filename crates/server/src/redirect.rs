//! Redirects: of a folder named without its closing slash, and those of rules.
//!
//! It must never let a byte of the peer end a field or name another host.

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;

use crate::content::fields;
use crate::page;
use crate::rules::Redirect;
use crate::rules::target::{encode, is_plain_in_path, is_plain_in_query};

/// 301 to the same path with a slash, the query kept. The target is relative to this host, whatever name the
/// peer knows it by; a decoded path has no empty segment, so it cannot begin with `//` and name another host.
pub(crate) fn to_folder(path: &[u8], query: Option<&[u8]>, further: &[u8], answer: Answer<'_>) -> Answered {
    let text = "This folder's address ends with a slash.";
    to(Status::MOVED_PERMANENTLY, &location(&[path, b"/"].concat(), query), text, further, answer)
}

/// 301 to a decoded path of this host, which was asked for with more slashes than it has.
pub(crate) fn to_clean_path(path: &[u8], query: Option<&[u8]>, answer: Answer<'_>) -> Answered {
    let text = "This address has one slash between its parts.";
    to(Status::MOVED_PERMANENTLY, &location(path, query), text, b"", answer)
}

/// To the same path and query, as they were sent, at another host.
pub(crate) fn to_host(
    origin: &str,
    path: &[u8],
    query: Option<&[u8]>,
    further: &[u8],
    answer: Answer<'_>,
) -> Answered {
    let text = "This has another address now.";
    to(Status::MOVED_PERMANENTLY, &at_host(origin, path, query), text, further, answer)
}

/// To the same path and query, as they were sent, over HTTPS.
pub(crate) fn to_https(origin: &str, path: &[u8], query: Option<&[u8]>, answer: Answer<'_>) -> Answered {
    let text = "This is served over HTTPS.";
    to(Status::PERMANENT_REDIRECT, &at_host(origin, path, query), text, b"", answer)
}

/// To where a rule leads from this decoded path.
pub(crate) fn by_rule(
    rule: &Redirect,
    path: &[u8],
    query: Option<&[u8]>,
    further: &[u8],
    answer: Answer<'_>,
) -> Answered {
    to(rule.status, &rule.location(path, query), "This has another address now.", further, answer)
}

fn to(status: Status, location: &str, text: &str, further: &[u8], answer: Answer<'_>) -> Answered {
    let body = page::html(status, text, "");
    let mut out = Vec::with_capacity(256 + further.len() + location.len());
    out.extend_from_slice(further);
    fields::field(&mut out, "Content-Length", itoa::Buffer::new().format(body.len()).as_bytes());
    fields::field(&mut out, "Content-Type", b"text/html; charset=utf-8");
    fields::field(&mut out, "X-Content-Type-Options", b"nosniff");
    fields::field(&mut out, "Cache-Control", b"no-cache");
    fields::field(&mut out, "Location", location.as_bytes());
    answer.bytes(status, &out, body.as_bytes())
}

fn location(path: &[u8], query: Option<&[u8]>) -> String {
    let mut location = String::with_capacity(path.len() + 1);
    encode(&mut location, path, is_plain_in_path);
    if let Some(query) = query {
        location.push('?');
        encode(&mut location, query, is_plain_in_query);
    }
    location
}

/// The origin ends where the path begins with its slash, so no byte of the peer's is part of the host's name.
fn at_host(origin: &str, path: &[u8], query: Option<&[u8]>) -> String {
    let mut location = origin.to_owned();
    encode(&mut location, path, is_plain_in_query);
    if let Some(query) = query {
        location.push('?');
        encode(&mut location, query, is_plain_in_query);
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_at_a_host() {
        for (path, query, expected) in [
            ("/", None, "https://a.example/"),
            ("/a%20b", Some("x=%20&y"), "https://a.example/a%20b?x=%20&y"),
            ("//evil.example/", Some(""), "https://a.example//evil.example/?"),
            ("/\\@evil", Some("\"<é"), "https://a.example/%5C@evil?%22%3C%C3%A9"),
        ] {
            let query = query.map(str::as_bytes);
            assert_eq!(at_host("https://a.example", path.as_bytes(), query), expected);
        }
    }

    #[test]
    fn locations() {
        for (path, query, expected) in [
            ("/a/", None, "/a/"),
            ("/a b/ü/", None, "/a%20b/%C3%BC/"),
            ("/a%2e/", Some("x=%20&y"), "/a%252e/?x=%20&y"),
            ("/\\evil.example", None, "/%5Cevil.example"),
            ("/a\r\nSet-Cookie: x/", Some("\"<é"), "/a%0D%0ASet-Cookie%3A%20x/?%22%3C%C3%A9"),
            ("/a/", Some(""), "/a/?"),
        ] {
            assert_eq!(location(path.as_bytes(), query.map(str::as_bytes)), expected);
        }
    }
}
