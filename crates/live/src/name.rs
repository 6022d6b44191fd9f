//! Names of topics, and patterns of names.
//!
//! It owns what a name may be. It must never know which topics exist.

use std::fmt;
use std::sync::Arc;

use crate::limits::TOPIC_NAME_BYTES_MAX;

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

    /// The name.
    pub fn as_str(&self) -> &str {
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

fn check_text(name: &str) -> Result<(), NameFault> {
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

/// A pattern of names whose words are parted by dots: `*` stands for one word, `>` at the end for one word or
/// more, `*` alone for every name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Whether a text asks for more than the topic of that name.
    pub fn is_pattern(text: &str) -> bool {
        text.split('.').any(|word| word == "*" || word == ">")
    }

    /// Checks a pattern.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, NameFault> {
        check_text(pattern)?;
        if pattern.starts_with('$') {
            return Err(NameFault::Reserved);
        }
        let words = pattern.split('.').count();
        let valid = |(place, word): (usize, &str)| match word {
            "*" => true,
            ">" => place + 1 == words,
            _ => !word.contains(['*', '>']),
        };
        if !Self::is_pattern(pattern) || !pattern.split('.').enumerate().all(valid) {
            return Err(NameFault::NoPattern);
        }
        Ok(Self(pattern.into()))
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is one of the pattern's. Names of the server's own topics are of no pattern.
    pub fn matches(&self, name: &TopicName) -> bool {
        if name.as_str().starts_with('$') {
            return false;
        }
        if self.as_str() == "*" {
            return true;
        }
        let mut words = name.as_str().split('.');
        for pattern in self.as_str().split('.') {
            match (pattern, words.next()) {
                (_, None) => return false,
                (">", Some(_)) => return true,
                ("*", Some(_)) => {}
                (exact, Some(word)) if exact == word => {}
                _ => return false,
            }
        }
        words.next().is_none()
    }
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

    #[test]
    fn patterns() {
        let table = [
            ("b.*", &["b.a", "b."][..], &["b", "b.a.c", "c.a"][..]),
            ("b.>", &["b.a", "b.a.c"], &["b", "c.a"]),
            ("*", &["a", "a.b"], &["$status"]),
            ("*.x", &["a.x"], &["x", "a.b.x"]),
            ("a.*.c", &["a.b.c"], &["a.c", "a.b.b.c"]),
            (">", &["a", "a.b"], &["$status"]),
        ];
        for (pattern, matching, other) in table {
            let pattern = Pattern::new(pattern).unwrap();
            let name = |name: &&str| TopicName::new(name).or_else(|_| TopicName::of_server(name)).unwrap();
            assert!(matching.iter().all(|text| pattern.matches(&name(text))), "{pattern:?}");
            assert!(!other.iter().any(|text| pattern.matches(&name(text))), "{pattern:?}");
        }
        for text in ["a", "a.b", "a.>.b", "b.*x", "b.x*.*", "a*.>"] {
            assert_eq!(Pattern::new(text), Err(NameFault::NoPattern), "{text}");
        }
        assert_eq!(Pattern::new("$a.*"), Err(NameFault::Reserved));
    }
}
