//! What workers told about their readers: forms they hold, how many there are, how far they have read.
//!
//! It must never know a single reader.

use foldhash::{HashMap, HashMapExt as _};
use std::sync::Arc;

use crate::form::{Form, FormSet, Shape};
use crate::name::{Pattern, TopicName};

/// What all workers hold.
#[derive(Debug)]
pub(crate) struct Holdings {
    held: Vec<FormSet>,
    read_to: Vec<u64>,
    names: HashMap<Arc<str>, u64>,
    patterns: HashMap<Pattern, u64>,
}

impl Holdings {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            held: vec![FormSet::default(); workers],
            read_to: vec![0; workers],
            names: HashMap::new(),
            patterns: HashMap::new(),
        }
    }

    pub(crate) fn hold(&mut self, worker: usize, form: Form) {
        self.held[worker].insert(form);
    }

    pub(crate) fn release(&mut self, worker: usize, form: Form) {
        self.held[worker].remove(form);
    }

    /// The forms to make: those held, and for differences the whole value beside them.
    pub(crate) fn forms(&self) -> FormSet {
        let mut forms = self.held.iter().fold(FormSet::default(), |all, held| all.union(*held));
        for form in forms.iter().filter(|form| form.shape() == Shape::Patch) {
            forms.insert(form.whole());
        }
        forms
    }

    pub(crate) fn read(&mut self, worker: usize, number: u64) {
        self.read_to[worker] = self.read_to[worker].max(number);
    }

    pub(crate) fn slowest_read_to(&self) -> u64 {
        self.read_to.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Readers of a name or a pattern came, or left.
    pub(crate) fn count(&mut self, text: &Arc<str>, change: i64) {
        let add = |count: &mut u64| *count = count.saturating_add_signed(change);
        if let (true, Ok(pattern)) = (Pattern::is_pattern(text), Pattern::new(text)) {
            add(self.patterns.entry(pattern.clone()).or_default());
            self.patterns.retain(|_, count| *count > 0);
        } else {
            add(self.names.entry(text.clone()).or_default());
            if self.names.get(text) == Some(&0) {
                self.names.remove(text);
            }
        }
    }

    /// Readers of a topic. Who asked for it by name and by pattern counts twice.
    pub(crate) fn readers_of(&self, topic: &TopicName) -> u64 {
        let by_name = self.names.get(topic.as_str()).copied().unwrap_or(0);
        let by_pattern = self.patterns.iter().filter(|(pattern, _)| pattern.matches(topic));
        by_name + by_pattern.map(|(_, count)| count).sum::<u64>()
    }
}
