//! Patterns of field values and bodies: `*` stands for any bytes, `\*` for a star.
//!
//! It must never match a part: a pattern covers the whole value.

use std::collections::HashMap;

use super::{Fragment, join, unescape};

/// Values saved from responses, by name.
pub type Saved = HashMap<String, Vec<u8>>;

/// A parsed pattern: the texts between its stars.
#[derive(Debug, Clone)]
pub struct Pattern {
    texts: Vec<Vec<Fragment>>,
    source: String,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A sentence that names the wrong escape.
    pub fn parse(source: &str) -> Result<Self, String> {
        // A star behind an escape's backslash is a plain star: written as \x2a it passes `unescape`.
        let plain = source.replace("\\*", "\\x2a");
        let texts = plain.split('*').map(unescape).collect::<Result<_, _>>()?;
        Ok(Self { texts, source: source.to_owned() })
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the whole value matches.
    ///
    /// # Errors
    /// A sentence that names a value nothing has saved.
    pub fn matches(&self, value: &[u8], saved: &Saved) -> Result<bool, String> {
        let texts = self.texts.iter().map(|text| join(text, saved)).collect::<Result<Vec<_>, _>>()?;
        let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return Ok(value.is_empty()) };
        if texts.len() == 1 {
            return Ok(value == first);
        }
        let Some(mut rest) = value.strip_prefix(&first[..]) else { return Ok(false) };
        for text in &texts[1..texts.len() - 1] {
            let Some(at) = find(rest, text) else { return Ok(false) };
            rest = &rest[at + text.len()..];
        }
        Ok(rest.ends_with(last))
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    bytes.windows(text.len()).position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_bytes() {
        let table = [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "a12b34c", true),
            ("a*b*c", "a12c", false),
            ("ab*bc", "abc", false),
            (r"bytes \*/13", "bytes */13", true),
            (r"bytes \*/13", "bytes 1/13", false),
        ];
        for (pattern, value, expected) in table {
            let pattern = Pattern::parse(pattern).expect("a right pattern");
            assert_eq!(pattern.matches(value.as_bytes(), &Saved::new()), Ok(expected), "{pattern:?} {value}");
        }
    }
}
