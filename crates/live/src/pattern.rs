//! Patterns of names: dotted ones, URL patterns, URI templates.
//!
//! It owns which names a pattern has. It must never take time that grows faster than name times pattern, nor
//! run a regular expression that a peer wrote without a right to.

mod glob;
pub(crate) mod table;
mod template;
mod url_shape;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::name::{NameFault, TopicName, check_text};
use glob::Glob;
use url_shape::UrlShape;

/// A pattern of names. Two are equal if they are of one kind and have one text. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Arc<str>,
    kind: PatternKind,
}

#[derive(Debug, Clone)]
enum PatternKind {
    /// Words parted by dots: `*` stands for one word, `>` at the end for one or more, `*` alone for every
    /// name. So many bytes before the first such word, and behind the last one, are literal.
    Dotted { begin: u16, end: u16 },
    /// A URL pattern (WHATWG URL Pattern).
    Url(Arc<UrlShape>),
    /// A URI template (RFC 6570), read backwards.
    Template(Arc<Glob>),
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
        let first = pattern.find(['*', '>']).unwrap_or(0);
        let last = pattern.rfind(['*', '>']).unwrap_or(0);
        let kind = PatternKind::Dotted { begin: first as u16, end: (pattern.len() - last - 1) as u16 };
        Ok(Self { text: pattern.into(), kind })
    }

    /// Checks a URL pattern; it has a scheme, for there is no base. Groups with regular expressions take at
    /// most [`crate::limits::REGEXP_BYTES_MAX`].
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn url(pattern: &str) -> Result<Self, NameFault> {
        Self::read_url(pattern, true)
    }

    /// Checks a URL pattern as [`Pattern::url`] does, but takes none with a regular expression: for whoever
    /// has no right to one.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn url_without_regexps(pattern: &str) -> Result<Self, NameFault> {
        Self::read_url(pattern, false)
    }

    fn read_url(pattern: &str, may_have_regexps: bool) -> Result<Self, NameFault> {
        check(pattern)?;
        let shape = UrlShape::read(pattern, may_have_regexps)?;
        Ok(Self { text: pattern.into(), kind: PatternKind::Url(Arc::new(shape)) })
    }

    /// Checks a URI template.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn template(template: &str) -> Result<Self, NameFault> {
        check(template)?;
        let glob = template::read(template)?;
        Ok(Self { text: template.into(), kind: PatternKind::Template(Arc::new(glob)) })
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a URL pattern.
    pub(crate) fn is_url(&self) -> bool {
        matches!(self.kind, PatternKind::Url(_))
    }

    /// What each name begins with that it has.
    pub(crate) fn begin(&self) -> &str {
        match &self.kind {
            PatternKind::Dotted { begin, .. } => &self.text[..usize::from(*begin)],
            PatternKind::Url(shape) => shape.begin(),
            PatternKind::Template(glob) => glob.begin(),
        }
    }

    /// Whether it has every name but those of the server's own topics.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self.kind, PatternKind::Dotted { .. }) && matches!(&*self.text, "*" | ">")
    }

    /// Bytes of memory that it holds, what it was compiled to included.
    pub fn held_bytes(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        let of_kind = match &self.kind {
            PatternKind::Dotted { .. } => 0,
            PatternKind::Url(shape) => counts + size_of::<UrlShape>() + shape.held_bytes(),
            PatternKind::Template(glob) => counts + size_of::<Glob>() + glob.held_bytes(),
        };
        counts + self.text.len().next_multiple_of(size_of::<usize>()) + of_kind
    }

    /// Whether the name is one of the pattern's. Names of the server's own topics are of no pattern.
    pub fn matches(&self, name: &TopicName) -> bool {
        self.compare(name, &mut 0)
    }

    /// As [`Pattern::matches`]. Adds to `work` what it took: 1, and more the longer name and pattern are.
    pub fn compare(&self, name: &TopicName, work: &mut usize) -> bool {
        let name = name.as_str();
        if name.starts_with('$') {
            return false;
        }
        match &self.kind {
            PatternKind::Dotted { begin, end } => {
                *work += 1;
                let (begin, end) = (usize::from(*begin), self.text.len() - usize::from(*end));
                self.text.as_ref() == "*"
                    || (name.as_bytes().starts_with(&self.text.as_bytes()[..begin])
                        && name.as_bytes().ends_with(&self.text.as_bytes()[end..])
                        && matches_dotted(&self.text, name))
            }
            PatternKind::Url(shape) => shape.matches(name, work),
            PatternKind::Template(glob) => glob.matches(name, work),
        }
    }

    fn key(&self) -> (u8, &str) {
        let kind = match self.kind {
            PatternKind::Dotted { .. } => 0,
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
        for text in ["/books/:id", "books", "https://example.com/(", "https://example.com/([)", ""] {
            assert!(Pattern::url(text).is_err(), "{text}");
        }
    }

    /// A bracket without its fellow makes the library's counter of brackets pass below zero.
    #[test]
    fn hosts_with_a_bracket_too_many_are_no_patterns() {
        for text in ["https://a.b]y:80/", "https://a.b]/x", "https://a.b]y2})?"] {
            assert_eq!(Pattern::url(text), Err(NameFault::NoUrlPattern), "{text}");
        }
    }

    #[test]
    fn wildcards_of_url_patterns() {
        let table = [
            ("http{s}?://a.b/*", &["http://a.b/1", "https://a.b/1/2"][..], &["ftp://a.b/1"][..]),
            ("https://*.a.b/x", &["https://c.a.b/x", "https://c.d.a.b/x"], &["https://a.b/x"]),
            ("https://:sub.a.b/x", &["https://c.a.b/x"], &["https://c.d.a.b/x"]),
            ("https://a.b/x/:y?", &["https://a.b/x", "https://a.b/x/1"], &["https://a.b/x/1/2"]),
            ("https://a.b/:y+/z", &["https://a.b/1/z", "https://a.b/1/2/z"], &["https://a.b/z"]),
            ("https://a.b/:y*/z", &["https://a.b/z", "https://a.b/1/2/z"], &["https://a.b/1"]),
            (
                "https://a.b/:x-:y.html",
                &["https://a.b/1-2.html"],
                &["https://a.b/1.html", "https://a.b/1-/.html"],
            ),
            ("https://a.b/{x-:y}+", &["https://a.b/x-1", "https://a.b/x-1x-2"], &["https://a.b/y-1"]),
            ("https://a.b/c?q=:q", &["https://a.b/c?q=1"], &["https://a.b/c", "https://a.b/c?q="]),
            ("https://a.b:8080/*#:h", &["https://a.b:8080/1#x"], &["https://a.b/1#x", "https://a.b:8080/1"]),
            ("urn\\:book/:id", &["urn:book/1/2"], &["urn:page/1", "https://a.b/"]),
            ("https://a.b/ä/*", &["https://a.b/ä/1", "https://a.b/%C3%A4/1"], &["https://a.b/a/1"]),
            ("https://a.b/\\(x\\)/*", &["https://a.b/(x)/1"], &["https://a.b/x/1"]),
            // What stands at the beginning is compared as it is spelled.
            ("https://a.b/*", &["https://a.b:443/1"], &["HTTPS://a.b/1", "https://A.B/1"]),
        ];
        for (pattern, matching, other) in table {
            let Ok(read) = Pattern::url_without_regexps(pattern) else {
                assert!(matching.is_empty(), "{pattern}");
                continue;
            };
            check_names(&read, matching, other);
            assert!(matching.iter().all(|name| name.starts_with(read.begin())), "{pattern} {}", read.begin());
        }
    }

    #[test]
    fn a_regular_expression_needs_a_right_and_has_a_bound() {
        let (small, large) = ("https://a.b/:x([a-z]{2})", "a:///(\\w{200})");
        assert_eq!(Pattern::url_without_regexps(small), Err(NameFault::Regexp));
        assert_eq!(Pattern::url_without_regexps(large), Err(NameFault::Regexp));
        assert_eq!(Pattern::url(large), Err(NameFault::LargeRegexp));
        let parts = "https://(\\w{2})/(\\w{2})?(\\w{2})#(\\w{2})";
        assert_eq!(Pattern::url(parts), Err(NameFault::LargeRegexp), "all components together");
        let read = Pattern::url(small).unwrap();
        check_names(&read, &["https://a.b/xy"], &["https://a.b/xyz", "https://a.b/x1"]);
        let bytes = read.held_bytes();
        assert!(bytes > 200 && bytes < crate::limits::REGEXP_BYTES_MAX + 2048, "{bytes}");
    }

    #[test]
    fn a_comparison_says_what_it_took() {
        let work = |pattern: &Pattern, name: &str| {
            let mut work = 0;
            pattern.compare(&TopicName::new(name).unwrap(), &mut work);
            work
        };
        let long = format!("https://a.b/{}", "x".repeat(240));
        let template = Pattern::template(&format!("https://a.b/{}", "{a}x".repeat(30))).unwrap();
        assert_eq!(work(&template, "board.1"), 1, "its beginning is another");
        assert!(work(&template, &long) > 60);
        let url = Pattern::url("https://a.b/:a/:b/:c").unwrap();
        assert_eq!(work(&url, "https://c.d/1"), 1);
        assert!(work(&url, &long) > 10);
        assert_eq!(work(&Pattern::new("a.*.b").unwrap(), "a.x.c"), 1);
    }

    #[test]
    fn a_pattern_is_its_kind_and_text() {
        let text = "https://example.com/a";
        assert_eq!(Pattern::url(text), Pattern::url(text));
        assert_ne!(Pattern::url(text), Pattern::template(text));
    }
}
