//! What a worker has told of its readers since the writer looked.
//!
//! It owns the sums: who comes and leaves again leaves nothing, so that it is never longer than what there
//! are readers of. It must never lose a count.

use foldhash::{HashMap, HashMapExt as _};
use staunch_live::{Form, Pattern, Request, TopicName, UpdateKey};

/// Forms of updates that make one delivery.
pub(crate) type WantedForms = Vec<(UpdateKey, Form)>;

/// A worker's message to the writer about its readers.
#[derive(Debug)]
pub(crate) struct ToldOfReaders {
    /// Forms that the worker's readers have from now on, or have no more.
    forms: HashMap<Form, bool>,
    names: HashMap<TopicName, i64>,
    patterns: HashMap<Pattern, i64>,
    read_to: Option<u64>,
}

impl Default for ToldOfReaders {
    fn default() -> Self {
        Self { forms: HashMap::new(), names: HashMap::new(), patterns: HashMap::new(), read_to: None }
    }
}

impl ToldOfReaders {
    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { forms, names, patterns, read_to } = self;
        forms.is_empty() && names.is_empty() && patterns.is_empty() && read_to.is_none()
    }

    /// Takes what is told. Forms that are wanted are no fact to be told, and given back.
    pub(crate) fn take(&mut self, request: Request) -> Option<WantedForms> {
        match request {
            Request::Make(wanted) => return Some(wanted),
            Request::Hold(form) => {
                self.forms.insert(form, true);
            }
            Request::Release(form) => {
                self.forms.insert(form, false);
            }
            Request::Readers(name, change) => add(&mut self.names, name, change),
            Request::PatternReaders(pattern, change) => add(&mut self.patterns, pattern, change),
            Request::Read(number) => self.read_to = self.read_to.max(Some(number)),
        }
        None
    }

    /// All of it, for the hub.
    pub(crate) fn into_requests(self) -> impl Iterator<Item = Request> {
        let held = |(form, is_held)| if is_held { Request::Hold(form) } else { Request::Release(form) };
        let forms = self.forms.into_iter().map(held);
        let names = self.names.into_iter().map(|(name, change)| Request::Readers(name, change));
        let patterns = self.patterns.into_iter();
        let patterns = patterns.map(|(pattern, change)| Request::PatternReaders(pattern, change));
        forms.chain(names).chain(patterns).chain(self.read_to.map(Request::Read))
    }
}

fn add<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, i64>, key: K, change: i64) {
    use std::collections::hash_map::Entry;
    match counts.entry(key) {
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += change;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        Entry::Vacant(entry) => {
            entry.insert(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use staunch_live::{Coding, Shape, Transport};

    use super::*;

    #[test]
    fn who_comes_and_leaves_leaves_nothing() {
        let mut told = ToldOfReaders::default();
        for number in 0..1000 {
            let name = TopicName::new(&format!("t{number}")).unwrap();
            let pattern = Pattern::new(&format!("t{number}.*")).unwrap();
            for change in [1, -1] {
                assert!(told.take(Request::Readers(name.clone(), change)).is_none());
                assert!(told.take(Request::PatternReaders(pattern.clone(), change)).is_none());
            }
        }
        assert!(told.is_empty());
    }

    #[test]
    fn the_last_word_on_a_form_and_the_sums_are_told() {
        let form = Form::new(Shape::Bare, Transport::Plain, Coding::Identity);
        let name = TopicName::new("a").unwrap();
        let mut told = ToldOfReaders::default();
        for request in [
            Request::Read(9),
            Request::Hold(form),
            Request::Release(form),
            Request::Readers(name.clone(), 1),
            Request::Readers(name.clone(), 2),
            Request::Read(7),
        ] {
            assert!(told.take(request).is_none());
        }
        assert_eq!(told.take(Request::Make(Vec::new())), Some(Vec::new()));
        let all: Vec<Request> = told.into_requests().collect();
        assert_eq!(all, [Request::Release(form), Request::Readers(name, 3), Request::Read(9)]);
    }
}
