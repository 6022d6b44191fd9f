//! Where settings come from: flags, environment, files. It must never read one of them itself.

use crate::node::{self, Node, ValueKind, line_and_column};

/// The key that names further files.
pub(crate) const INCLUDE: &str = "include";

/// All that is said, by layer.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Flags that were given: name of the key and value; several values stand between commas.
    pub flags: Vec<(String, String)>,
    /// Variables by their full names. Empty ones say nothing; those of no key are ignored.
    pub environment: Vec<(String, String)>,
    /// The configuration file, if there is one.
    pub file: Option<File>,
}

/// A file that was read, with those that it includes.
///
/// All of them have one numbering of places, in bytes: the file's own come first, then those of each included
/// one, as if a byte stood between them.
#[derive(Debug, Clone)]
pub struct File {
    /// What it is called, for messages.
    pub name: String,
    /// What stands in it.
    pub text: String,
    /// The files that it includes, in their order. These include none.
    pub included: Vec<Self>,
}

impl File {
    /// A file that includes no other.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), included: Vec::new() }
    }

    /// The values of `include`: names of files, in which a `*` may stand, each with its place. No name
    /// where it is not as it has to be, which is told when it is read.
    pub fn includes(&self) -> Vec<(String, usize)> {
        let table = node::parse(&self.text).unwrap_or_default();
        let Some((_, said)) = table.into_iter().find(|(name, _)| name.text == INCLUDE) else {
            return Vec::new();
        };
        let items = match said.kind {
            ValueKind::List(items) => items,
            _ => vec![said],
        };
        let name = |item: Node| match item.kind {
            ValueKind::Text(text) => {
                let place = item.place.unwrap_or_default();
                text.split(',').map(|name| (name.trim().to_owned(), place)).collect()
            }
            _ => Vec::new(),
        };
        items.into_iter().flat_map(name).filter(|(name, _)| !name.is_empty()).collect()
    }

    /// A sentence about a place, with file, line and column in front.
    pub fn sentence(&self, place: usize, text: &str) -> String {
        let (name, line, column) = self.locate(place);
        format!("{name}:{line}:{column}: {text}")
    }

    /// File, line and column of a place.
    pub(crate) fn locate(&self, place: usize) -> (&str, usize, usize) {
        let (start, file) = self.parts().take_while(|(start, _)| *start <= place).last().unwrap_or((0, self));
        let (line, column) = line_and_column(&file.text, place - start);
        (&file.name, line, column)
    }

    /// The file and those that it includes, each with the place of its first byte.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &Self)> {
        let mut next = 0;
        std::iter::once(self).chain(&self.included).map(move |file| {
            let start = next;
            next += file.text.len() + 1;
            (start, file)
        })
    }
}
