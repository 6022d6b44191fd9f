//! The account of what topics hold: values, rings, forms.
//!
//! It owns the bound `live_memory`, and what gives way: forms first, for they can be made again, those that
//! were wanted least lately before the others; then rings, oldest updates first. It must never let a topic's
//! value go, nor count forms where it is asked whether there is room for a publication: readers ask for them.

use std::collections::{BTreeMap, VecDeque};

use foldhash::{HashMap, HashMapExt as _};

use super::shelf::{Shelf, Topic};
use crate::letter::UpdateKey;
use crate::name::TopicName;
use crate::ring::{Entry, Freed};
use crate::update::Update;

/// What a topic costs beside its name and updates.
pub(crate) const TOPIC_BYTES: usize = size_of::<Topic>() + 96;

/// What an update costs in each of its topics beside its value, its patch and its texts.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<Update>();

/// The account.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes of updates and topics.
    bytes: usize,
    form_bytes: usize,
    bytes_max: usize,
    /// Updates in the order in which they came. What left its ring otherwise is skipped.
    oldest: VecDeque<UpdateKey>,
    wanted: Wanted,
}

/// Updates that have forms, in the order in which these were wanted last.
#[derive(Debug)]
struct Wanted {
    order: BTreeMap<u64, UpdateKey>,
    ranks: HashMap<UpdateKey, u64>,
    count: u64,
    /// What was wanted behind this stands in a letter that no worker has read: it does not give way.
    posted: u64,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let wanted = Wanted { order: BTreeMap::new(), ranks: HashMap::new(), count: 0, posted: 0 };
        Self { bytes: 0, form_bytes: 0, bytes_max, oldest: VecDeque::new(), wanted }
    }

    /// All that is held, forms too.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.form_bytes
    }

    /// Whether so many bytes more are too many, forms aside.
    pub(crate) fn lacks(&self, more: usize) -> bool {
        self.bytes.saturating_add(more) > self.bytes_max
    }

    /// Whether values and forms together hold more than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    pub(crate) fn keep(&mut self, entry: &Entry, key: UpdateKey) {
        self.bytes += entry.update_bytes();
        self.oldest.push_back(key);
        let form_bytes = entry.forms_bytes();
        if form_bytes > 0 {
            self.want(key, form_bytes);
        }
    }

    /// Forms of an update are wanted, of which so many bytes are new.
    pub(crate) fn want(&mut self, key: UpdateKey, added_bytes: usize) {
        self.form_bytes += added_bytes;
        self.wanted.add(key);
    }

    pub(crate) fn keep_topic(&mut self, name: &TopicName) {
        self.bytes += TOPIC_BYTES + name.as_str().len();
    }

    pub(crate) fn forget_topic(&mut self, name: &TopicName) {
        self.release(TOPIC_BYTES + name.as_str().len());
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// What left a ring is not held any more.
    pub(crate) fn free(&mut self, freed: Freed) {
        self.release(freed.updates);
        self.form_bytes = self.form_bytes.saturating_sub(freed.forms);
    }

    /// Lets the oldest update go that is no topic's value; `None` if all are values.
    pub(crate) fn relieve(&mut self, shelf: &mut Shelf) -> Option<UpdateKey> {
        for _ in 0..self.oldest.len() {
            if shelf.spare_entries() == 0 {
                return None;
            }
            let key = self.oldest.pop_front()?;
            if !shelf.holds(key) {
                continue;
            }
            if shelf.is_value(key) {
                self.oldest.push_back(key);
                continue;
            }
            let freed = shelf.drop_to(key);
            self.free(freed);
            return Some(key);
        }
        None
    }

    /// While more is held than may be: lets the forms of one update go; gives which.
    pub(crate) fn relieve_forms(&mut self, shelf: &mut Shelf) -> Option<UpdateKey> {
        while self.bytes() > self.bytes_max {
            let key = self.wanted.take_first()?;
            let freed = shelf.entry_mut(key).map_or(0, Entry::drop_forms);
            if freed > 0 {
                self.form_bytes = self.form_bytes.saturating_sub(freed);
                return Some(key);
            }
        }
        None
    }

    /// Forms that were made are on their way to the workers.
    pub(crate) fn posted(&mut self) {
        self.wanted.posted = self.wanted.count;
    }

    /// Skips what left its ring otherwise, so that the lists are not longer than what is held.
    pub(crate) fn tidy(&mut self, shelf: &Shelf) {
        while self.oldest.front().is_some_and(|key| !shelf.holds(*key)) {
            self.oldest.pop_front();
        }
        let most = 2 * shelf.entries() + 64;
        if self.oldest.len() > most {
            self.oldest.retain(|key| shelf.holds(*key));
        }
        if self.wanted.order.len() > most {
            self.wanted.order.retain(|_, key| shelf.holds(*key));
            self.wanted.ranks.retain(|key, _| shelf.holds(*key));
        }
    }
}

impl Wanted {
    fn add(&mut self, key: UpdateKey) {
        self.count += 1;
        if let Some(before) = self.ranks.insert(key, self.count) {
            self.order.remove(&before);
        }
        self.order.insert(self.count, key);
    }

    fn take_first(&mut self) -> Option<UpdateKey> {
        let entry = self.order.first_entry().filter(|entry| *entry.key() <= self.posted)?;
        let key = entry.remove();
        self.ranks.remove(&key);
        Some(key)
    }
}
