//! Names of topics.
//!
//! It owns what a name may be. It must never know which topics exist.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::limits::{PATTERN_PIECES_MAX, REGEXP_BYTES_MAX, TOPIC_NAME_BYTES_MAX};

/// The name of a topic. Cheap to copy.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicName(Arc<str>);

/// Why a text names no topic, or is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// Nothing.
    Empty,
    /// Longer than [`TOPIC_NAME_BYTES_MAX`].
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// A control character.
    Control,
    /// `$` at the start: names of the server's own topics.
    Reserved,
    /// `*` alone, which is the pattern of all.
    All,
    /// A pattern with `>` before its end, or a word with `*` or `>` beside other characters.
    NoPattern,
    /// Not a URL pattern, or one without a scheme.
    NoUrlPattern,
    /// Not a URI template: braces that do not match, or an operator that is none.
    NoTemplate,
    /// More wildcards than [`PATTERN_PIECES_MAX`] in a template, or in a component of a URL pattern.
    TooManyPieces,
    /// A regular expression in a URL pattern of a reader whose token does not grant that pattern.
    Regexp,
    /// Regular expressions in a URL pattern that take more than [`REGEXP_BYTES_MAX`].
    LargeRegexp,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a topic's name must not be empty"),
            Self::TooLong => write!(f, "a topic's name has at most {TOPIC_NAME_BYTES_MAX} bytes"),
            Self::NotUtf8 => write!(f, "a topic's name must be UTF-8"),
            Self::Control => write!(f, "a topic's name must not have control characters"),
            Self::Reserved => write!(f, "a topic's name must not begin with `$`"),
            Self::All => write!(f, "`*` is the pattern of all topics, not a name"),
            Self::NoPattern => write!(f, "a pattern has `*` for one word, and `>` for the rest at its end"),
            Self::NoUrlPattern => write!(f, "this is not a URL pattern with a scheme"),
            Self::NoTemplate => write!(f, "this is not a URI template (RFC 6570)"),
            Self::TooManyPieces => write!(f, "a pattern has at most {PATTERN_PIECES_MAX} wildcards"),
            Self::Regexp => {
                write!(f, "a regular expression in a URL pattern needs a token that grants this very pattern")
            }
            Self::LargeRegexp => {
                write!(f, "the pattern's regular expressions take more than {REGEXP_BYTES_MAX} bytes")
            }
        }
    }
}

impl std::error::Error for NameFault {}

impl TopicName {
    /// Checks a name.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(name: &str) -> Result<Self, NameFault> {
        check_text(name)?;
        if name.starts_with('$') {
            return Err(NameFault::Reserved);
        }
        if name == "*" {
            return Err(NameFault::All);
        }
        Ok(Self(name.into()))
    }

    /// Checks a name as it came over the network.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn from_bytes(name: &[u8]) -> Result<Self, NameFault> {
        Self::new(std::str::from_utf8(name).map_err(|_| NameFault::NotUtf8)?)
    }

    /// A topic of the server's own, whose name begins with `$`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn of_server(name: &str) -> Result<Self, NameFault> {
        check_text(name)?;
        if name.starts_with('$') { Ok(Self(name.into())) } else { Err(NameFault::Reserved) }
    }

    /// Bytes of memory that it holds beside itself.
    pub fn held_bytes(&self) -> usize {
        2 * size_of::<usize>() + self.0.len().next_multiple_of(size_of::<usize>())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn check_text(name: &str) -> Result<(), NameFault> {
    if name.is_empty() {
        return Err(NameFault::Empty);
    }
    if name.len() > TOPIC_NAME_BYTES_MAX {
        return Err(NameFault::TooLong);
    }
    if name.chars().any(char::is_control) {
        return Err(NameFault::Control);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_is_none() {
        for name in ["a", "quotes.s1", "https://example.com/books/1", "ä", "a*b", "{id}", "a..b"] {
            assert_eq!(TopicName::new(name).unwrap().as_str(), name);
        }
        let long = "x".repeat(257);
        let table = [
            ("", NameFault::Empty),
            (&long[..], NameFault::TooLong),
            ("a\nb", NameFault::Control),
            ("a\u{85}", NameFault::Control),
            ("$status", NameFault::Reserved),
            ("*", NameFault::All),
        ];
        for (name, fault) in table {
            assert_eq!(TopicName::new(name), Err(fault), "{name}");
        }
        assert_eq!(TopicName::from_bytes(&[0xff]), Err(NameFault::NotUtf8));
        assert!(TopicName::of_server("$status").is_ok());
        assert!(TopicName::of_server("status").is_err());
    }
}
