//! Keys that belong together, read as one struct.
//!
//! It owns the macro that makes such a struct from a table of keys. It must never know one of them.

use crate::key::Key;
use crate::node::{Name, Node, ValueKind};
use crate::reader::Reader;
use crate::syntax::{Complaint, Syntax, wrong_kind};

/// Keys that belong together.
pub trait Group: Sized {
    /// What they are about, as a heading.
    const TITLE: &'static str;
    /// All of them, in the order of the fields.
    const KEYS: &'static [Key];

    /// Reads each; what is wrong stands in the reader then.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;

    /// Each value by name, as it would be written.
    fn write(&self) -> Vec<(Name, Node)>;
}

/// What is wrong between the values of a group: the key that is to blame, and a sentence.
pub type Conflict = Option<(&'static str, String)>;

/// A group as the value of a key: a table.
#[derive(Debug)]
pub struct Inline<G>(std::marker::PhantomData<G>);

impl<G: Group + Clone + std::fmt::Debug + PartialEq> Syntax for Inline<G> {
    type Value = G;

    fn word() -> String {
        let names: Vec<String> =
            G::KEYS.iter().map(|key| format!("{} = {}", key.name, (key.word)())).collect();
        format!("{{ {} }}", names.join(", "))
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<G> {
        let ValueKind::Table(entries) = &node.kind else {
            complaints.push(wrong_kind(node, "a table".into()));
            return None;
        };
        let mut reader = Reader::of_table(entries, node.place);
        let value = G::read(&mut reader);
        reader.refuse_unknown(&[G::KEYS], &[]);
        complaints.extend(reader.faults.into_iter().map(|fault| Complaint {
            place: fault.place,
            found: String::new(),
            word: String::new(),
            reason: if fault.key.is_empty() { fault.text } else { format!("{}: {}", fault.key, fault.text) },
            is_explained: true,
        }));
        value
    }

    fn write(value: &G) -> Node {
        Node::new(ValueKind::Table(value.write()))
    }
}

/// Makes a struct of keys: documents, names, defaults and syntaxes stand in one place.
///
/// A line: `name [as "name"]: syntax = default, form, reload or restart, example;`
macro_rules! group {
    ($(#[doc = $about:literal])+ $group:ident, $title:literal, $conflict:expr;
     $($(#[doc = $doc:literal])+ $field:ident $(as $name:literal)?: $syntax:ty = $default:expr,
       $form:ident, $reload:ident, $example:literal;)+) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $group {
            $($(#[doc = $doc])+ pub $field: <$syntax as $crate::syntax::Syntax>::Value,)+
        }

        impl $crate::group::Group for $group {
            const TITLE: &'static str = $title;
            const KEYS: &'static [$crate::key::Key] = &[$($crate::key::Key {
                name: $crate::group::name!($field $($name)?),
                word: <$syntax as $crate::syntax::Syntax>::word,
                default: $default,
                example: $example,
                doc: &[$($doc),+],
                reload: $crate::group::reload!($reload),
                form: $crate::key::Form::$form,
                check: $crate::group::check::<$syntax>,
            }),+];

            fn read(reader: &mut $crate::reader::Reader<'_>) -> Option<Self> {
                let mut keys = Self::KEYS.iter();
                $(let $field = reader.value::<$syntax>(keys.next()?);)+
                let group = Self { $($field: $field?),+ };
                let conflict: fn(&Self) -> $crate::group::Conflict = $conflict;
                if let Some((key, text)) = conflict(&group) {
                    reader.refuse(key, text);
                    return None;
                }
                Some(group)
            }

            fn write(&self) -> Vec<($crate::node::Name, $crate::node::Node)> {
                let name = |text: &str| $crate::node::Name { text: text.into(), place: None };
                vec![$((
                    name($crate::group::name!($field $($name)?)),
                    <$syntax as $crate::syntax::Syntax>::write(&self.$field),
                )),+]
            }
        }
    };
}

macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

macro_rules! reload {
    (reload) => {
        true
    };
    (restart) => {
        false
    };
}

pub(crate) use {group, name, reload};

/// Whether a text of the command line is a value of this syntax.
pub(crate) fn check<S: Syntax>(text: &str) -> Result<(), String> {
    let mut complaints = Vec::new();
    match S::read(&Node::text(text), &mut complaints) {
        Some(_) => Ok(()),
        None => {
            Err(complaints.into_iter().next().map_or_else(String::new, |complaint| complaint.to_string()))
        }
    }
}
