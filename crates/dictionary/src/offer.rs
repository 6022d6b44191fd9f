//! `Use-As-Dictionary`: the field that tells a client to keep an answer as a dictionary (RFC 9842, section
//! 2.1).
//!
//! This module owns how the field is written. It must never write one that clients refuse in silence: a
//! fault is told to who configured it.

use std::fmt::{self, Display, Formatter};

/// Longest identifier: clients refuse longer ones (RFC 9842, section 2.1.3).
const ID_CHARACTERS_MAX: usize = 1024;

/// Why a field cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A pattern is empty.
    Empty,
    /// A pattern has a group `(...)` of a regular expression: clients refuse it.
    Group,
    /// A character that a string of a structured field cannot hold, in the pattern or the identifier.
    Character,
    /// An identifier is longer than 1024 characters.
    LongId,
}

impl Display for Refusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "is empty",
            Self::Group => {
                "has a group (...) of a regular expression, which clients refuse; a literal one is \\("
            }
            Self::Character => "has a character outside of ASCII or a control character; percent-encode it",
            Self::LongId => "is longer than 1024 characters",
        })
    }
}

/// The value of `Use-As-Dictionary`. `pattern` is a URL pattern, most often of a path alone, that says for
/// which later requests the answer is a dictionary; a path as it stands is made a pattern by
/// [`pattern_of_path`]. `id` comes back in `Dictionary-ID`. How long a client keeps the dictionary is no
/// part of the field: that is said by the freshness of the answer (Cache-Control).
pub fn offer(pattern: &str, id: Option<&str>) -> Result<String, Refusal> {
    if pattern.is_empty() {
        return Err(Refusal::Empty);
    }
    if has_group(pattern) {
        return Err(Refusal::Group);
    }
    if id.is_some_and(|id| id.len() > ID_CHARACTERS_MAX) {
        return Err(Refusal::LongId);
    }
    let mut value = String::from("match=");
    write_string(&mut value, pattern)?;
    if let Some(id) = id {
        value.push_str(", id=");
        write_string(&mut value, id)?;
    }
    Ok(value)
}

/// The pattern that matches one path and no other: percent-encoded as clients write a path, and with what
/// means something in a pattern escaped. `path` is decoded, as a site knows it.
pub fn pattern_of_path(path: &[u8]) -> String {
    let mut pattern = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'*' | b'+' | b':' | b'(' | b')' => pattern.extend(['\\', char::from(byte)]),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => pattern.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b',' | b';' | b'=' | b'@' => {
                pattern.push(char::from(byte));
            }
            _ => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
                pattern.extend(['%', digit(byte >> 4), digit(byte)]);
            }
        }
    }
    pattern
}

/// Whether a pattern has an opening parenthesis that is not escaped.
fn has_group(pattern: &str) -> bool {
    let mut is_escaped = false;
    pattern.bytes().any(|byte| {
        let is_group = byte == b'(' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_group
    })
}

/// A string of a structured field (RFC 9651, section 3.3.3).
fn write_string(out: &mut String, text: &str) -> Result<(), Refusal> {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            _ => return Err(Refusal::Character),
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table() {
        for (pattern, id, expected) in [
            ("/app/*/main.js", None, Ok("match=\"/app/*/main.js\"")),
            ("/a", Some("1"), Ok("match=\"/a\", id=\"1\"")),
            ("/a\"b", None, Ok("match=\"/a\\\"b\"")),
            ("/a\\(b", None, Ok("match=\"/a\\\\(b\"")),
            ("/a\\\\(b", None, Err(Refusal::Group)),
            ("/(a|b)", None, Err(Refusal::Group)),
            ("/a)", None, Ok("match=\"/a)\"")),
            ("", None, Err(Refusal::Empty)),
            ("/\u{e9}", None, Err(Refusal::Character)),
            ("/\n", None, Err(Refusal::Character)),
            ("/\u{7f}", None, Err(Refusal::Character)),
            ("/", Some("\u{e9}"), Err(Refusal::Character)),
        ] {
            assert_eq!(offer(pattern, id), expected.map(str::to_owned), "{pattern} {id:?}");
        }
        assert_eq!(offer("/", Some(&"a".repeat(1025))), Err(Refusal::LongId));
    }

    #[test]
    fn patterns_of_paths() {
        for (path, expected) in [
            ("/live/match", "/live/match"),
            ("/a b(1).html", "/a%20b\\(1\\).html"),
            ("/a*b+c:d?e", "/a\\*b\\+c\\:d%3Fe"),
            ("/{a}\\\"#%", "/%7Ba%7D%5C%22%23%25"),
            ("/\u{e9}", "/%C3%A9"),
        ] {
            assert_eq!(pattern_of_path(path.as_bytes()), expected);
        }
    }

    proptest! {
        #[test]
        fn every_path_can_be_offered(path in prop::collection::vec(any::<u8>(), 1..60)) {
            let value = offer(&pattern_of_path(&path), None).unwrap();
            prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        }
    }
}
