//! How values are written: one syntax a kind of value, and those made of others (off, auto, lists, tables).
//!
//! It owns the way from what was written to what is meant, and back. It must never know a key: the
//! caller says whose value it was.

pub mod access;
pub mod application;
pub mod attempt;
pub mod choice;
pub mod dictionary;
pub mod log_line;
pub mod text;
pub(crate) mod variables;
pub mod web;

use std::fmt::{self, Debug, Display};
use std::marker::PhantomData;

use crate::node::{Name, Node, ValueKind};

/// What is wrong with a value, and where in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// In bytes from the start of the file; `None` for what stands in none.
    pub place: Option<usize>,
    /// What stands there.
    pub found: String,
    /// What should.
    pub word: String,
    /// Why it is not, or how it is written; may be empty.
    pub reason: String,
    /// Whether the reason shows a right one.
    pub is_explained: bool,
}

impl Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, word, reason, .. } = self;
        match (found.is_empty(), reason.is_empty()) {
            (true, _) => write!(formatter, "{reason}"),
            (false, true) => write!(formatter, "{found} is not {}", alternatives(word)),
            (false, false) => write!(formatter, "{found} is wrong: {reason}"),
        }
    }
}

/// The words of a choice as people list them: `a|b|c` is "a, b or c".
pub(crate) fn alternatives(words: &str) -> String {
    match words.rsplit_once('|') {
        Some((first, last)) => format!("{} or {last}", first.replace('|', ", ")),
        None => words.to_owned(),
    }
}

/// A value of another kind than the one that belongs there.
pub(crate) fn wrong_kind(node: &Node, word: String) -> Complaint {
    Complaint { place: node.place, found: node.describe(), word, reason: String::new(), is_explained: false }
}

/// How one kind of value is written.
pub trait Syntax {
    /// What is meant.
    type Value: Clone + Debug + PartialEq;

    /// What is to be written, as help shows it: `TIME`, `N|auto`.
    fn word() -> String;

    /// Understands a value, or complains: `None` is never without a complaint.
    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value>;

    /// The value as it would be written.
    fn write(value: &Self::Value) -> Node;
}

/// The syntax of a value that is one word.
pub trait Scalar {
    /// What is meant.
    type Value: Clone + Debug + PartialEq;
    /// What is to be written, as help shows it.
    const WORD: &'static str;
    /// Whether it must never be repeated, not even when it is wrong.
    const IS_SECRET: bool = false;
    /// Whether only a string can be meant: a number is a mistake.
    const IS_TEXT: bool = false;

    /// Understands it.
    ///
    /// # Errors
    /// A sentence that shows the right form.
    fn parse(text: &str) -> Result<Self::Value, String>;

    /// The value as it would be written.
    fn write(value: &Self::Value) -> Node;
}

impl<S: Scalar> Syntax for S {
    type Value = S::Value;

    fn word() -> String {
        S::WORD.into()
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<S::Value> {
        let parsed = match &node.kind {
            ValueKind::Text(text) => S::parse(text),
            ValueKind::Number(text) if !S::IS_TEXT => S::parse(text),
            ValueKind::Switch(switch) if !S::IS_TEXT => S::parse(if *switch { "true" } else { "false" }),
            _ => {
                complaints.push(wrong_kind(node, S::word()));
                return None;
            }
        };
        let complain = |reason: String| {
            let found = if S::IS_SECRET { "the value here".into() } else { node.describe() };
            complaints.push(Complaint {
                place: node.place,
                found,
                word: S::word(),
                reason,
                is_explained: true,
            });
        };
        parsed.map_err(complain).ok()
    }

    fn write(value: &S::Value) -> Node {
        S::write(value)
    }
}

macro_rules! or_word {
    ($(#[$doc:meta])* $name:ident, $word:literal, $switch:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<S>(PhantomData<S>);

        impl<S: Syntax> Syntax for $name<S> {
            type Value = Option<S::Value>;

            fn word() -> String {
                format!(concat!("{}|", $word), S::word())
            }

            fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value> {
                match &node.kind {
                    ValueKind::Text(text) if text == $word => Some(None),
                    ValueKind::Switch(false) if $switch => Some(None),
                    _ => {
                        let before = complaints.len();
                        let value = S::read(node, complaints);
                        let own = complaints[before..].iter_mut().filter(|own| own.word == S::word());
                        own.for_each(|complaint| {
                            complaint.word = Self::word();
                            if complaint.reason.starts_with("write ") && !complaint.reason.contains($word) {
                                complaint.reason.push_str(concat!(", or ", $word));
                            }
                        });
                        value.map(Some)
                    }
                }
            }

            fn write(value: &Self::Value) -> Node {
                value.as_ref().map_or_else(|| Node::text($word), S::write)
            }
        }
    };
}

or_word!(
    /// A value, or `off` (in a file also `false`).
    OrOff, "off", true
);
or_word!(
    /// A value, or `auto`: the server decides.
    OrAuto, "auto", false
);
or_word!(
    /// A value, or `inherit`: what holds around it.
    OrInherit, "inherit", false
);

/// Several values: a list in a file, words between commas elsewhere.
#[derive(Debug)]
pub struct Many<S>(PhantomData<S>);

impl<S: Syntax> Syntax for Many<S> {
    type Value = Vec<S::Value>;

    fn word() -> String {
        format!("{},...", S::word())
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value> {
        let items = items(node);
        let read: Vec<Option<S::Value>> = items.iter().map(|item| S::read(item, complaints)).collect();
        read.into_iter().collect()
    }

    fn write(value: &Self::Value) -> Node {
        Node::new(ValueKind::List(value.iter().map(S::write).collect()))
    }
}

fn items(node: &Node) -> Vec<Node> {
    match &node.kind {
        ValueKind::Text(text) if text.is_empty() => Vec::new(),
        ValueKind::Text(text) => {
            let item = |word: &str| Node { kind: ValueKind::Text(word.trim().into()), place: node.place };
            text.split(',').map(item).collect()
        }
        ValueKind::List(items) => items.clone(),
        _ => vec![node.clone()],
    }
}

/// Several values, each of which means something else than the others, however it is written.
#[derive(Debug)]
pub struct Distinct<S>(PhantomData<S>);

impl<S: Syntax> Syntax for Distinct<S> {
    type Value = Vec<S::Value>;

    fn word() -> String {
        Many::<S>::word()
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value> {
        let values = Many::<S>::read(node, complaints)?;
        let again = (1..values.len()).find(|index| values[..*index].contains(&values[*index]));
        let Some(again) = again else { return Some(values) };
        let items = items(node);
        let item = items.get(again).unwrap_or(node);
        complaints.push(Complaint {
            place: item.place,
            found: item.describe(),
            word: S::word(),
            reason: "the same stands before it already".into(),
            is_explained: true,
        });
        None
    }

    fn write(value: &Self::Value) -> Node {
        Many::<S>::write(value)
    }
}

/// Values by name: a table, in the order of the file.
#[derive(Debug)]
pub struct Map<K, V>(PhantomData<(K, V)>);

impl<K: Scalar, V: Scalar> Syntax for Map<K, V> {
    type Value = Vec<(K::Value, V::Value)>;

    fn word() -> String {
        format!("{{ {} = {}, ... }}", K::WORD, V::WORD)
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value> {
        let entries = match &node.kind {
            ValueKind::Text(text) if text.is_empty() => return Some(Vec::new()),
            ValueKind::Table(entries) => entries,
            _ => {
                complaints.push(wrong_kind(node, "a table".into()));
                return None;
            }
        };
        let mut pair = |(name, value): &(Name, Node)| {
            let name = Node { kind: ValueKind::Text(name.text.clone()), place: name.place };
            let name = <K as Syntax>::read(&name, complaints);
            let value = <V as Syntax>::read(value, complaints);
            Some((name?, value?))
        };
        let read: Vec<Option<(K::Value, V::Value)>> = entries.iter().map(&mut pair).collect();
        let read = read.into_iter().collect::<Option<Self::Value>>()?;
        // Two ways to write the same name, such as 404 and 0404.
        let again =
            (0..read.len()).find(|&index| read[..index].iter().any(|(name, _)| *name == read[index].0));
        if let Some((name, _)) = again.map(|index| &entries[index]) {
            let reason = format!("{:?} stands here a second time", name.text);
            let (found, word) = (String::new(), String::new());
            complaints.push(Complaint { place: name.place, found, word, reason, is_explained: true });
            return None;
        }
        Some(read)
    }

    fn write(value: &Self::Value) -> Node {
        let name = |key: &K::Value| match K::write(key).kind {
            ValueKind::Text(text) | ValueKind::Number(text) => Name { text, place: None },
            other => Name { text: format!("{other:?}"), place: None },
        };
        Node::new(ValueKind::Table(value.iter().map(|(key, value)| (name(key), V::write(value))).collect()))
    }
}
