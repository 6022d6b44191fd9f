//! Patterns of names: dotted ones, URL patterns, URI templates.
//!
//! It owns which names a pattern has. It must never take time that grows faster than name times pattern.

mod template;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use url::Url;
use urlpattern::{UrlPattern, UrlPatternInit, UrlPatternMatchInput, UrlPatternOptions};

use crate::name::{NameFault, TopicName, check_text};
use template::Template;

/// A pattern of names. Two are equal if they are of one kind and have one text. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Arc<str>,
    kind: PatternKind,
}

#[derive(Debug, Clone)]
enum PatternKind {
    /// Words parted by dots: `*` stands for one word, `>` at the end for one or more, `*` alone for every
    /// name.
    Dotted,
    /// A URL pattern (WHATWG URL Pattern).
    Url(Arc<UrlPattern>),
    /// A URI template (RFC 6570), read backwards.
    Template(Arc<Template>),
}

impl Pattern {
    /// Whether a text asks for more than the topic of that name, as a dotted pattern.
    pub fn is_pattern(text: &str) -> bool {
        text.split('.').any(|word| word == "*" || word == ">")
    }

    /// Checks a dotted pattern.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, NameFault> {
        check(pattern)?;
        let words = pattern.split('.').count();
        let valid = |(place, word): (usize, &str)| match word {
            "*" => true,
            ">" => place + 1 == words,
            _ => !word.contains(['*', '>']),
        };
        if !Self::is_pattern(pattern) || !pattern.split('.').enumerate().all(valid) {
            return Err(NameFault::NoPattern);
        }
        Ok(Self { text: pattern.into(), kind: PatternKind::Dotted })
    }

    /// Checks a URL pattern; it has a scheme, for there is no base.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn url(pattern: &str) -> Result<Self, NameFault> {
        check(pattern)?;
        let init = UrlPatternInit::parse_constructor_string::<regex::Regex>(pattern, None);
        let parsed = init.and_then(|init| UrlPattern::parse(init, UrlPatternOptions::default()));
        let kind = PatternKind::Url(Arc::new(parsed.map_err(|_| NameFault::NoUrlPattern)?));
        Ok(Self { text: pattern.into(), kind })
    }

    /// Checks a URI template.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn template(template: &str) -> Result<Self, NameFault> {
        check(template)?;
        let kind = PatternKind::Template(Arc::new(Template::new(template).ok_or(NameFault::NoTemplate)?));
        Ok(Self { text: template.into(), kind })
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the name is one of the pattern's. Names of the server's own topics are of no pattern.
    pub fn matches(&self, name: &TopicName) -> bool {
        let name = name.as_str();
        if name.starts_with('$') {
            return false;
        }
        match &self.kind {
            PatternKind::Dotted => self.text.as_ref() == "*" || matches_dotted(&self.text, name),
            PatternKind::Url(pattern) => Url::parse(name)
                .is_ok_and(|url| pattern.test(UrlPatternMatchInput::Url(url)).unwrap_or(false)),
            PatternKind::Template(template) => template.matches(name),
        }
    }

    fn key(&self) -> (u8, &str) {
        let kind = match self.kind {
            PatternKind::Dotted => 0,
            PatternKind::Url(_) => 1,
            PatternKind::Template(_) => 2,
        };
        (kind, &self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

fn check(pattern: &str) -> Result<(), NameFault> {
    check_text(pattern)?;
    if pattern.starts_with('$') { Err(NameFault::Reserved) } else { Ok(()) }
}

fn matches_dotted(pattern: &str, name: &str) -> bool {
    let mut words = name.split('.');
    for pattern in pattern.split('.') {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check_names(pattern: &Pattern, matching: &[&str], other: &[&str]) {
        let name = |name: &&str| TopicName::new(name).or_else(|_| TopicName::of_server(name)).unwrap();
        matching.iter().for_each(|text| assert!(pattern.matches(&name(text)), "{pattern:?} {text}"));
        other.iter().for_each(|text| assert!(!pattern.matches(&name(text)), "{pattern:?} {text}"));
    }

    #[test]
    fn dotted_patterns() {
        let table = [
            ("b.*", &["b.a", "b."][..], &["b", "b.a.c", "c.a"][..]),
            ("b.>", &["b.a", "b.a.c"], &["b", "c.a"]),
            ("*", &["a", "a.b"], &["$status"]),
            ("*.x", &["a.x"], &["x", "a.b.x"]),
            ("a.*.c", &["a.b.c"], &["a.c", "a.b.b.c"]),
            (">", &["a", "a.b"], &["$status"]),
        ];
        for (pattern, matching, other) in table {
            check_names(&Pattern::new(pattern).unwrap(), matching, other);
        }
        for text in ["a", "a.b", "a.>.b", "b.*x", "b.x*.*", "a*.>"] {
            assert_eq!(Pattern::new(text), Err(NameFault::NoPattern), "{text}");
        }
        assert_eq!(Pattern::new("$a.*"), Err(NameFault::Reserved));
    }

    #[test]
    fn url_patterns() {
        let table = [
            (
                "https://example.com/books/:id",
                &["https://example.com/books/1"][..],
                &["https://example.com/books/1/2", "http://example.com/books/1", "books"][..],
            ),
            ("https://example.com/*", &["https://example.com/a/b"], &["https://example.org/a"]),
            (
                "https://example.com/books/:id(\\d+)",
                &["https://example.com/books/12"],
                &["https://example.com/books/a"],
            ),
        ];
        for (pattern, matching, other) in table {
            check_names(&Pattern::url(pattern).unwrap(), matching, other);
        }
        for text in ["/books/:id", "books", "https://example.com/(", ""] {
            assert!(Pattern::url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_is_its_kind_and_text() {
        let text = "https://example.com/a";
        assert_eq!(Pattern::url(text), Pattern::url(text));
        assert_ne!(Pattern::url(text), Pattern::template(text));
    }
}
