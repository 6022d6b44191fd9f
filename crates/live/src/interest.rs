//! What a reader asks for, and what it may read.
//!
//! It owns the order-free form in which two readers' wishes are compared. It must never know a reader.

use std::fmt;
use std::sync::Arc;

use crate::name::{NameFault, TopicName};
use crate::pattern::Pattern;
use crate::update::Update;

/// What private updates may be read. Cheap to copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Grants {
    names: Arc<[TopicName]>,
    patterns: Arc<[Pattern]>,
}

impl Grants {
    /// Grants for these topics and patterns.
    pub fn new(names: Vec<TopicName>, patterns: Vec<Pattern>) -> Self {
        Self { names: in_order(names).into(), patterns: in_order(patterns).into() }
    }

    /// The URL pattern with this text, if it is granted, or everything is: its regular expressions are those
    /// of whoever signed the token, or of somebody who is trusted with all.
    ///
    /// # Errors
    /// Everything is granted, and the text is no URL pattern.
    pub(crate) fn url_pattern(&self, text: &str) -> Result<Option<Pattern>, NameFault> {
        let is_it = |pattern: &&Pattern| pattern.is_url() && pattern.as_str() == text;
        match self.patterns.iter().find(is_it) {
            Some(pattern) => Ok(Some(pattern.clone())),
            None if self.patterns.iter().any(Pattern::is_all) => Pattern::url(text).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the topic is granted.
    pub fn cover(&self, topic: &TopicName) -> bool {
        self.names.binary_search(topic).is_ok() || self.patterns.iter().any(|pattern| pattern.matches(topic))
    }

    /// Whether an update may be read: it is for everybody, or one of its topics is granted.
    pub fn may_read(&self, update: &Update) -> bool {
        !update.private || update.topics().any(|topic| self.cover(topic))
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }
}

/// Why a wish cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterestFault {
    /// No topic.
    Nothing,
    /// More topics and patterns than this.
    TooMany(usize),
    /// A text that is neither a name nor a pattern.
    Name(String, NameFault),
}

impl fmt::Display for InterestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "`topic` is missing: which topics?"),
            Self::TooMany(limit) => write!(f, "`topic` stands more than {limit} times"),
            Self::Name(text, fault) => write!(f, "`topic`: {text:?}: {fault}"),
        }
    }
}

impl std::error::Error for InterestFault {}

/// Topics, patterns and grants. Readers with the same are one group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interest {
    /// Exact names, in order, each once.
    pub(crate) names: Vec<TopicName>,
    /// Patterns, in order, each once.
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) grants: Grants,
}

impl Interest {
    /// A wish of these names and patterns.
    ///
    /// # Errors
    /// Nothing was asked for, or more than `limit`.
    pub fn new(
        names: Vec<TopicName>,
        patterns: Vec<Pattern>,
        grants: Grants,
        limit: usize,
    ) -> Result<Self, InterestFault> {
        match names.len() + patterns.len() {
            0 => Err(InterestFault::Nothing),
            count if count > limit => Err(InterestFault::TooMany(limit)),
            _ => Ok(Self { names: in_order(names), patterns: in_order(patterns), grants }),
        }
    }

    /// Reads names and patterns as they stand in a request.
    ///
    /// # Errors
    /// Names the text that is neither, or the limit.
    pub fn read<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        grants: Grants,
        limit: usize,
    ) -> Result<Self, InterestFault> {
        let (mut names, mut patterns) = (Vec::new(), Vec::new());
        for text in texts {
            let faulty = |fault| InterestFault::Name(text.chars().take(40).collect(), fault);
            match Pattern::is_pattern(text) {
                true => patterns.push(Pattern::new(text).map_err(faulty)?),
                false => names.push(TopicName::new(text).map_err(faulty)?),
            }
            if names.len() + patterns.len() > limit {
                return Err(InterestFault::TooMany(limit));
            }
        }
        Self::new(names, patterns, grants, limit)
    }

    /// The exact names, in order.
    pub fn names(&self) -> impl Iterator<Item = &TopicName> {
        self.names.iter()
    }

    /// Whether private updates may be left out: a topic is named that is not granted, or a pattern. Grants of
    /// all cover patterns too.
    pub fn exceeds_grants(&self) -> bool {
        let is_all = self.grants.patterns.iter().any(|pattern| pattern.as_str() == "*");
        !is_all && (!self.patterns.is_empty() || self.names.iter().any(|name| !self.grants.cover(name)))
    }

    /// Whether an update of its topics may be read.
    pub fn may_read(&self, update: &Update) -> bool {
        self.grants.may_read(update)
    }

    /// How many names and patterns are asked for.
    pub fn count(&self) -> usize {
        self.names.len() + self.patterns.len()
    }

    /// Whether all names and patterns of another are asked for.
    pub fn includes(&self, other: &Self) -> bool {
        other.names.iter().all(|name| self.names.binary_search(name).is_ok())
            && other.patterns.iter().all(|pattern| self.patterns.binary_search(pattern).is_ok())
    }

    /// With the names and patterns of another besides; the grants stay.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            names: in_order([&self.names[..], &other.names].concat()),
            patterns: in_order([&self.patterns[..], &other.patterns].concat()),
            grants: self.grants.clone(),
        }
    }

    /// Without the names and patterns of another; `None` if nothing is left.
    pub fn without(&self, other: &Self) -> Option<Self> {
        let names = self.names.iter().filter(|name| other.names.binary_search(name).is_err());
        let patterns = self.patterns.iter().filter(|pattern| other.patterns.binary_search(pattern).is_err());
        let grants = self.grants.clone();
        let left = Self { names: names.cloned().collect(), patterns: patterns.cloned().collect(), grants };
        (left.count() > 0).then_some(left)
    }

    /// Takes the names and patterns of another in.
    pub(crate) fn widen(&mut self, other: &Self) {
        other.names.iter().for_each(|name| insert(&mut self.names, name));
        other.patterns.iter().for_each(|pattern| insert(&mut self.patterns, pattern));
    }

    /// Lets the names and patterns of another go.
    pub(crate) fn narrow(&mut self, other: &Self) {
        other.names.iter().for_each(|name| remove(&mut self.names, name));
        other.patterns.iter().for_each(|pattern| remove(&mut self.patterns, pattern));
    }

    /// How many patterns are asked for.
    pub fn patterns_count(&self) -> usize {
        self.patterns.len()
    }

    /// Bytes of memory that it holds beside itself.
    pub fn held_bytes(&self) -> usize {
        self.names.capacity() * size_of::<TopicName>()
            + self.names.iter().map(TopicName::held_bytes).sum::<usize>()
            + self.patterns.capacity() * size_of::<Pattern>()
            + self.patterns.iter().map(Pattern::held_bytes).sum::<usize>()
    }

    /// This interest with other grants.
    #[must_use]
    pub fn granted(&self, grants: Grants) -> Self {
        Self { grants, ..self.clone() }
    }

    /// Whether the topic is asked for.
    pub fn covers(&self, topic: &TopicName) -> bool {
        self.names.binary_search(topic).is_ok() || self.patterns.iter().any(|pattern| pattern.matches(topic))
    }
}

fn insert<T: Ord + Clone>(items: &mut Vec<T>, item: &T) {
    if let Err(place) = items.binary_search(item) {
        items.insert(place, item.clone());
    }
}

fn remove<T: Ord>(items: &mut Vec<T>, item: &T) {
    if let Ok(place) = items.binary_search(item) {
        items.remove(place);
        // What is left of many is not held for ever.
        if items.len() < items.capacity() / 4 {
            items.shrink_to(2 * items.len());
        }
    }
}

fn in_order<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort_unstable();
    items.dedup();
    items.shrink_to_fit();
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Interest, InterestFault> {
        Interest::read(texts.iter().copied(), Grants::default(), 3)
    }

    #[test]
    fn the_order_of_a_wish_does_not_matter() {
        assert_eq!(read(&["a", "b.*", "a"]), read(&["b.*", "a"]));
        let wish = read(&["a", "b.*"]).unwrap();
        for (topic, covered) in [("a", true), ("b.c", true), ("b.c.d", false), ("c", false)] {
            assert_eq!(wish.covers(&TopicName::new(topic).unwrap()), covered, "{topic}");
        }
    }

    #[test]
    fn wishes_are_put_together_and_taken_apart() {
        let (both, one, pattern) = (read(&["a", "b.*"]), read(&["a"]), read(&["b.*"]));
        let (both, one, pattern) = (both.unwrap(), one.unwrap(), pattern.unwrap());
        assert_eq!(pattern.with(&one), both);
        assert_eq!(both.with(&one), both);
        assert_eq!(both.without(&pattern).as_ref(), Some(&one));
        assert_eq!(one.without(&pattern).as_ref(), Some(&one));
        assert_eq!(one.without(&one), None);
        assert_eq!((both.count(), one.count()), (2, 1));
        assert!(both.includes(&one) && both.includes(&pattern) && !one.includes(&both));
        let grants = Grants::new(one.names().cloned().collect(), Vec::new());
        assert_ne!(one.granted(grants.clone()), one);
        assert_eq!(one.granted(grants).granted(Grants::default()), one);
    }

    #[test]
    fn wishes_that_are_none() {
        assert_eq!(read(&[]), Err(InterestFault::Nothing));
        assert_eq!(read(&["a", "b", "c", "d"]), Err(InterestFault::TooMany(3)));
        assert_eq!(read(&["$x"]), Err(InterestFault::Name("$x".into(), NameFault::Reserved)));
        assert_eq!(read(&["a.>.b"]), Err(InterestFault::Name("a.>.b".into(), NameFault::NoPattern)));
    }

    #[test]
    fn grants_cover_names_and_patterns() {
        let name = |text| TopicName::new(text).unwrap();
        let grants = Grants::new(vec![name("a")], vec![Pattern::new("u.>").unwrap()]);
        assert!(grants.cover(&name("a")) && grants.cover(&name("u.1.x")));
        assert!(!grants.cover(&name("b")) && !Grants::default().cover(&name("a")));
        assert!(Grants::default().is_empty() && !grants.is_empty());
    }
}
