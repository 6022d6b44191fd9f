//! What workers told about their readers: forms they hold, how many there are, how far they have read.
//!
//! It must never know a single reader, nor hold a name that only readers know: digests stand for names.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt as _};

use crate::form::{Form, FormSet, Shape};
use crate::limits::COUNT_WORK_MAX;
use crate::name::TopicName;
use crate::pattern::Pattern;
use crate::pattern::table::PatternTable;

/// What all workers hold.
#[derive(Debug)]
pub(crate) struct Holdings {
    held: Vec<FormSet>,
    read_to: Vec<u64>,
    /// Readers of names, by digest.
    names: HashMap<u64, u64>,
    hasher: RandomState,
    /// Readers of patterns.
    patterns: PatternTable<u64>,
    /// Changes with the readers of any pattern.
    edition: u64,
    /// What comparing patterns with topics may take until the next letter.
    left: usize,
}

/// Readers by patterns of one topic, as they were counted last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    /// That of the holdings; 0 before the first time.
    edition: u64,
    readers: u64,
}

impl Holdings {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            held: vec![FormSet::default(); workers],
            read_to: vec![0; workers],
            names: HashMap::new(),
            hasher: RandomState::default(),
            patterns: PatternTable::new(),
            edition: 1,
            left: COUNT_WORK_MAX,
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
    pub(crate) fn count(&mut self, name: &TopicName, change: i64) {
        use std::collections::hash_map::Entry;
        match self.names.entry(self.hasher.hash_one(name)) {
            Entry::Occupied(mut entry) => {
                *entry.get_mut() = entry.get().saturating_add_signed(change);
                if *entry.get() == 0 {
                    entry.remove();
                    // What a crowd has left is not held for ever.
                    if self.names.len() < self.names.capacity() / 4 {
                        self.names.shrink_to(2 * self.names.len());
                    }
                }
            }
            Entry::Vacant(entry) if change > 0 => {
                entry.insert(change.unsigned_abs());
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Readers of a pattern came, or left.
    pub(crate) fn count_pattern(&mut self, pattern: Pattern, change: i64) {
        self.edition += 1;
        let Some(place) = self.patterns.find(&pattern) else {
            if change > 0 {
                self.patterns.add(pattern, change.unsigned_abs());
            }
            return;
        };
        let Some(count) = self.patterns.get_mut(place) else { return };
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.patterns.remove(place);
        }
    }

    /// Patterns may be compared with topics again.
    pub(crate) fn refresh(&mut self) {
        self.left = COUNT_WORK_MAX;
    }

    /// Readers of a topic. Who asked for it by name and by pattern counts twice. Those by patterns are those
    /// counted last, if readers of patterns come and go faster than they can be counted.
    pub(crate) fn readers_of(&mut self, topic: &TopicName, counted: &mut Counted) -> u64 {
        if counted.edition != self.edition
            && let Some(readers) = self.by_patterns(topic)
        {
            *counted = Counted { edition: self.edition, readers };
        }
        self.by_name(topic) + counted.readers
    }

    /// Whether a topic has readers, or may have: what cannot be counted now is.
    pub(crate) fn may_have_readers(&mut self, topic: &TopicName) -> bool {
        self.by_name(topic) > 0 || self.by_patterns(topic).is_none_or(|readers| readers > 0)
    }

    fn by_name(&self, topic: &TopicName) -> u64 {
        self.names.get(&self.hasher.hash_one(topic)).copied().unwrap_or(0)
    }

    fn by_patterns(&mut self, topic: &TopicName) -> Option<u64> {
        let (mut work, mut readers) = (0, 0);
        for place in self.patterns.candidates(topic) {
            if work >= self.left {
                self.left = 0;
                return None;
            }
            let Some((pattern, count)) = self.patterns.get(place) else { continue };
            if pattern.compare(topic, &mut work) {
                readers += count;
            }
        }
        self.left = self.left.saturating_sub(work);
        Some(readers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap()
    }

    #[test]
    fn a_publication_asks_an_index_and_counts_once() {
        let (mut holdings, mut counted) = (Holdings::new(1), Counted::default());
        (0..1000).for_each(|number| holdings.count_pattern(pattern(&format!("other{number}.*")), 1));
        holdings.count_pattern(pattern("board.*"), 2);
        holdings.count(&name("board.1"), 3);
        for _ in 0..10 {
            assert_eq!(holdings.readers_of(&name("board.1"), &mut counted), 5);
        }
        assert_eq!(
            holdings.left,
            COUNT_WORK_MAX - 1,
            "patterns with another beginning are not looked at, and none twice"
        );
        holdings.count_pattern(pattern("board.*"), -1);
        holdings.count_pattern(pattern("board.>"), 4);
        assert_eq!(holdings.readers_of(&name("board.1"), &mut counted), 8);
        assert_eq!(holdings.left, COUNT_WORK_MAX - 3);
        holdings.count_pattern(pattern("board.*"), -1);
        holdings.count(&name("board.1"), -3);
        assert_eq!(holdings.readers_of(&name("board.1"), &mut counted), 4);
    }

    #[test]
    fn what_cannot_be_counted_now_is_as_it_was() {
        let (mut holdings, mut counted) = (Holdings::new(1), Counted::default());
        holdings.count_pattern(pattern("board.*"), 1);
        assert_eq!(holdings.readers_of(&name("board.1"), &mut counted), 1);
        (0..1000).for_each(|number| holdings.count_pattern(pattern(&format!("board.*.x{number}")), 1));
        // As if patterns came and went between all of them.
        for number in 0..100 {
            holdings.count_pattern(pattern("board.>"), 1);
            let readers = holdings.readers_of(&name("board.1"), &mut counted);
            assert!(readers >= 1 && readers <= number + 2, "{readers}");
        }
        assert_eq!(holdings.left, 0);
        assert!(holdings.may_have_readers(&name("board.1.y")), "it is not known, so nothing is forgotten");
        holdings.refresh();
        assert!(!holdings.may_have_readers(&name("other")));
        assert_eq!(holdings.readers_of(&name("board.1"), &mut counted), 101);
    }
}
