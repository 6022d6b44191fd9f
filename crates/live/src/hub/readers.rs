//! What workers told about their readers: forms they hold, how many there are, how far they have read.
//!
//! It must never know a single reader.

use foldhash::{HashMap, HashMapExt as _};

use crate::form::{Form, FormSet, Shape};
use crate::name::TopicName;
use crate::pattern::Pattern;

/// What all workers hold.
#[derive(Debug)]
pub(crate) struct Holdings {
    held: Vec<FormSet>,
    read_to: Vec<u64>,
    names: HashMap<TopicName, u64>,
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

    /// Readers of a topic came, or left.
    pub(crate) fn count(&mut self, name: TopicName, change: i64) {
        change_count(&mut self.names, name, change);
    }

    /// Readers of a pattern came, or left.
    pub(crate) fn count_pattern(&mut self, pattern: Pattern, change: i64) {
        change_count(&mut self.patterns, pattern, change);
    }

    /// Readers of a topic. Who asked for it by name and by pattern counts twice.
    pub(crate) fn readers_of(&self, topic: &TopicName) -> u64 {
        let by_name = self.names.get(topic).copied().unwrap_or(0);
        let by_pattern = self.patterns.iter().filter(|(pattern, _)| pattern.matches(topic));
        by_name + by_pattern.map(|(_, count)| count).sum::<u64>()
    }
}

fn change_count<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: K, change: i64) {
    use std::collections::hash_map::Entry;
    match counts.entry(key) {
        Entry::Occupied(mut entry) => {
            *entry.get_mut() = entry.get().saturating_add_signed(change);
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        Entry::Vacant(entry) if change > 0 => {
            entry.insert(change.unsigned_abs());
        }
        Entry::Vacant(_) => {}
    }
}
