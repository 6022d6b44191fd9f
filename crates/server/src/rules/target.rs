//! Where a redirect leads: a text with `$1` to `$9`, put together so that no peer can make it lead elsewhere.
//!
//! It owns the encoding of what the stars matched. A peer's bytes never stand in the name of a host, never
//! end the field, and never make a path that begins with two slashes, which would name a host.

use std::fmt::Write;

/// A target, cut at its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `https://host`, or nothing.
    origin: Box<str>,
    path: Pieces,
    query: Option<Pieces>,
    fragment: Option<Box<str>>,
}

/// Literal text, each followed by the number of a star, counted from 0.
type Pieces = Box<[(Box<str>, Option<usize>)]>;

impl Target {
    /// Reads a target for a pattern with so many stars.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(text: &str, stars: usize) -> Result<Self, String> {
        let fault = |what: &str| Err(format!("redirects: to = {text:?} {what}"));
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
            return fault("has a character that must be written as %XX");
        }
        let (text_before, fragment) = match text.split_once('#') {
            Some((before, fragment)) => (before, Some(fragment)),
            None => (text, None),
        };
        let (address, query) = match text_before.split_once('?') {
            Some((address, query)) => (address, Some(query)),
            None => (text_before, None),
        };
        let (origin, path) = split_origin(address);
        if origin.is_empty() && (!path.starts_with('/') || path.starts_with("//")) {
            return fault("begins neither with one slash nor with http:// or https://");
        }
        if origin.ends_with("://") || origin.contains('$') || fragment.is_some_and(|text| text.contains('$'))
        {
            return fault("needs a host's name, and marks ($1) only in path and query");
        }
        let (path, query) = (pieces(path), query.map(pieces));
        let marks = path.iter().chain(query.iter().flatten()).filter_map(|(_, star)| *star);
        if let Some(mark) = marks.max().filter(|&mark| mark >= stars) {
            return fault(&format!("has ${}, but `from` has {stars} stars", mark + 1));
        }
        Ok(Self { origin: origin.into(), path, query, fragment: fragment.map(Box::from) })
    }

    /// The value of Location for what the stars matched, with the request's own query added.
    pub(crate) fn location(&self, captures: &[&[u8]], query: Option<&[u8]>) -> String {
        let mut path = String::new();
        fill(&mut path, &self.path, captures, is_plain_in_path);
        let mut out = self.origin.to_string();
        if !path.is_empty() || self.origin.is_empty() {
            out.push('/');
        }
        out.push_str(path.trim_start_matches('/'));
        let mut mark = '?';
        if let Some(own) = &self.query {
            out.push(mark);
            fill(&mut out, own, captures, is_plain_in_value);
            mark = '&';
        }
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            out.push(mark);
            encode(&mut out, query, is_plain_in_query);
        }
        if let Some(fragment) = &self.fragment {
            out.push('#');
            out.push_str(fragment);
        }
        out
    }
}

/// `https://host` and the rest.
fn split_origin(address: &str) -> (&str, &str) {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| address.starts_with(scheme));
    let Some(scheme) = scheme else { return ("", address) };
    let end = address[scheme.len()..].find('/').map_or(address.len(), |slash| scheme.len() + slash);
    address.split_at(end)
}

fn pieces(text: &str) -> Pieces {
    let mut out = Vec::new();
    let mut literal = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let digit = characters.peek().and_then(|next| next.to_digit(10)).filter(|&digit| digit > 0);
        match (character, digit) {
            ('$', Some(digit)) => {
                characters.next();
                out.push((std::mem::take(&mut literal).into(), Some(digit as usize - 1)));
            }
            _ => literal.push(character),
        }
    }
    out.push((literal.into(), None));
    out.into()
}

fn fill(out: &mut String, pieces: &Pieces, captures: &[&[u8]], plain: fn(u8) -> bool) {
    for (literal, star) in pieces {
        out.push_str(literal);
        if let Some(capture) = star.and_then(|star| captures.get(star)) {
            encode(out, capture, plain);
        }
    }
}

/// Appends bytes, those that are not plain as %XX.
pub(crate) fn encode(out: &mut String, bytes: &[u8], plain: fn(u8) -> bool) {
    for &byte in bytes {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// pchar and the slash (RFC 3986, section 3.3), of which the colon and what could end an attribute are left
/// out.
pub(crate) fn is_plain_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/!$()*+,;=@".contains(&byte)
}

/// The query stands as it was sent, unless a byte has no place in an address (RFC 3986, section 3.4).
pub(crate) fn is_plain_in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)
}

/// What stays within one value of a query.
fn is_plain_in_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::glob::Glob;
    use proptest::prelude::*;

    fn location(from: &str, to: &str, path: &str, query: Option<&str>) -> Option<String> {
        let glob = Glob::new(from);
        let target = Target::new(to, glob.stars()).unwrap();
        glob.captures(path.as_bytes()).map(|found| target.location(&found, query.map(str::as_bytes)))
    }

    #[test]
    fn locations() {
        for (from, to, path, query, expected) in [
            ("/old/*", "/new/$1", "/old/a/b", None, "/new/a/b"),
            ("/old/*", "/new/$1", "/old/", Some("x=1"), "/new/?x=1"),
            ("/old/*", "/new/$1", "/old/ä b", None, "/new/%C3%A4%20b"),
            ("/old*", "/$1", "/old/evil.example", None, "/evil.example"),
            ("/*", "https://b.example/$1", "/a", Some(""), "https://b.example/a"),
            ("/*", "https://b.example", "/a", Some("q"), "https://b.example?q"),
            ("/*", "https://b.example$1", "/a", None, ""),
            ("/a/*/b/*", "/$2/$1/$2", "/a/1/b/2", None, "/2/1/2"),
            ("/s/*", "/find?q=$1", "/s/a&b=c", Some("d=e"), "/find?q=a%26b%3Dc&d=e"),
            ("/a", "/b#c", "/a", Some("x"), "/b?x#c"),
            ("/a", "/$", "/a", None, "/$"),
            ("/*", "/x/$1", "/a\r\nSet-Cookie: b", Some("\r\n"), "/x/a%0D%0ASet-Cookie%3A%20b?%0D%0A"),
            ("/*", "/x$1", "/\\\\evil.example", None, "/x%5C%5Cevil.example"),
        ] {
            if to == "https://b.example$1" {
                assert!(Target::new(to, 1).is_err());
                continue;
            }
            assert_eq!(location(from, to, path, query).as_deref(), Some(expected), "{from} {to}");
        }
    }

    #[test]
    fn wrong_targets() {
        for to in
            ["", "a", "//a", "https://", "https://$1/", "/$2", "/a b", "/ü", "/a\r\n", "ftp://a", "/#$1"]
        {
            assert!(Target::new(to, 1).is_err(), "{to:?}");
        }
    }

    proptest! {
        #[test]
        fn no_peer_leads_elsewhere(
            path in "/[/a\\\\:@%#?\r\n .é]{0,12}",
            query in "[/a\\\\#\r\n é]{0,6}",
            to in prop::sample::select(vec!["/$1", "/x$1", "/a/$1?b=$1"]),
        )
        {
            let glob = Glob::new("/*");
            let found = glob.captures(path.as_bytes()).unwrap();
            let location = Target::new(to, 1).unwrap().location(&found, Some(query.as_bytes()));
            prop_assert!(location.starts_with('/') && !location.starts_with("//"), "{}", location);
            let good = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>#".contains(&byte);
            prop_assert!(location.bytes().all(good), "{}", location);
        }
    }
}
