//! A topic's last updates.
//!
//! It owns their order and what it counts of those that left. It must never decide how many stay: the hub
//! does, and tells it to all.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::differences::Differences;
use crate::form::Form;
use crate::letter::Made;
use crate::limits::GAP_NUMBERS_MAX;
use crate::update::{Bytes, Update};

/// What was held by what left a ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Bytes of updates.
    pub(crate) updates: usize,
    /// Bytes of their forms, which could have been made again.
    pub(crate) forms: usize,
}

/// An update with the forms that exist of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) update: Arc<Update>,
    made: Made,
    /// Forms that were asked for after it was published; few.
    later: Vec<(Form, Bytes)>,
    /// Differences that lead from earlier values to this one, as far as asked for. Only the hub has them.
    differences: Option<Box<Differences>>,
}

impl Entry {
    pub(crate) fn new(update: Arc<Update>, made: Made) -> Self {
        Self { update, made, later: Vec::new(), differences: None }
    }

    /// The differences to earlier values, of which the hub alone has any.
    pub(crate) fn differences(&self) -> Option<&Differences> {
        self.differences.as_deref()
    }

    /// Keeps the difference to the value numbered `from`, or that it is not worth sending; gives the bytes
    /// that are held more.
    pub(crate) fn add_difference(&mut self, from: u64, of_bytes: usize, body: Option<Bytes>) -> usize {
        let before = self.forms_bytes();
        self.differences.get_or_insert_default().add(from, of_bytes, body);
        self.forms_bytes() - before
    }

    /// Lets the differences go: there is a later value. Gives the bytes that they held.
    pub(crate) fn drop_differences(&mut self) -> usize {
        self.differences.take().map_or(0, |differences| differences.held_bytes())
    }

    /// The update in a form; without a patch that is the whole value.
    pub(crate) fn form(&self, form: Form) -> Option<&Bytes> {
        let form = if self.update.patch.is_none() { form.whole() } else { form };
        let mut all = self.made.iter().chain(&self.later);
        all.find_map(|(made, bytes)| (*made == form).then_some(bytes))
    }

    /// Adds a form; gives the bytes that are held more.
    pub(crate) fn add_form(&mut self, form: Form, bytes: Bytes) -> usize {
        if self.form(form).is_some() {
            return 0;
        }
        let added = form_bytes(&bytes);
        self.later.push((form, bytes));
        added
    }

    /// Lets all forms go; gives the bytes that they held.
    pub(crate) fn drop_forms(&mut self) -> usize {
        let freed = self.forms_bytes();
        (self.made, self.later, self.differences) = ([].into(), Vec::new(), None);
        freed
    }

    /// Bytes of the update, its forms aside.
    pub(crate) fn update_bytes(&self) -> usize {
        self.update.held_bytes() + size_of::<Self>()
    }

    /// Bytes of its forms and differences.
    pub(crate) fn forms_bytes(&self) -> usize {
        let forms = self.made.iter().chain(&self.later).map(|(_, bytes)| form_bytes(bytes));
        forms.sum::<usize>() + self.differences.as_ref().map_or(0, |differences| differences.held_bytes())
    }
}

/// What a form holds: its bytes, and their place.
fn form_bytes(bytes: &Bytes) -> usize {
    bytes.len() + size_of::<(Form, Bytes)>()
}

/// How many updates a reader missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) count: u64,
    /// There may be more: their numbers are not kept any more.
    pub(crate) at_least: bool,
}

/// The last updates of a topic, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: VecDeque<Entry>,
    /// Bytes of their values.
    value_bytes: usize,
    /// The number of the last update that left.
    dropped_to: u64,
    /// Numbers of those that left, oldest first.
    left: VecDeque<u64>,
    /// The last number that was forgotten even there.
    forgotten_to: u64,
}

impl Ring {
    pub(crate) fn push(&mut self, entry: Entry) {
        debug_assert!(self.last().is_none_or(|last| last.update.number < entry.update.number));
        self.value_bytes += entry.update.value.bytes().len();
        self.entries.push_back(entry);
    }

    /// The topic's value.
    pub(crate) fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.last().map_or(self.dropped_to, |last| last.update.number)
    }

    pub(crate) fn dropped_to(&self) -> u64 {
        self.dropped_to
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number up to which updates have to go, so that no more than these stay; the last one always stays.
    pub(crate) fn overflow(&self, entries_max: usize, bytes_max: usize) -> Option<u64> {
        let (mut count, mut bytes, mut number) = (self.entries.len(), self.value_bytes, None);
        for entry in &self.entries {
            if count <= 1 || (count <= entries_max && bytes <= bytes_max) {
                break;
            }
            count -= 1;
            bytes -= entry.update.value.bytes().len();
            number = Some(entry.update.number);
        }
        number
    }

    /// Lets the updates up to a number go, and gives what they held. `keeps_numbers` for a topic whose
    /// readers are told how many they missed.
    pub(crate) fn drop_to(&mut self, number: u64, keeps_numbers: bool) -> Freed {
        let mut freed = Freed::default();
        while self.entries.front().is_some_and(|entry| entry.update.number <= number) {
            let Some(entry) = self.entries.pop_front() else { break };
            freed.updates += entry.update_bytes();
            freed.forms += entry.forms_bytes();
            self.value_bytes -= entry.update.value.bytes().len();
            self.dropped_to = entry.update.number;
            if keeps_numbers {
                self.left.push_back(entry.update.number);
            }
            if self.left.len() > GAP_NUMBERS_MAX {
                self.forgotten_to = self.left.pop_front().unwrap_or(self.forgotten_to);
            }
        }
        freed
    }

    /// Marks all updates up to `number` as dropped before this ring began, after a restart. Only that last
    /// number is known, so `missed` says `at_least` for readers from before it. A ring with entries is left
    /// as it is.
    pub(crate) fn begin_behind(&mut self, number: u64) {
        if number > self.dropped_to && self.entries.is_empty() {
            self.dropped_to = number;
            self.forgotten_to = number - 1;
            self.left = [number].into();
        }
    }

    /// Updates behind a number, oldest first.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = &Entry> {
        let start = self.entries.partition_point(|entry| entry.update.number <= number);
        self.entries.range(start..)
    }

    /// The last updates, latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }

    /// The last one, to be changed.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Entry> {
        self.entries.back_mut()
    }

    /// How many updates behind `from` and up to `to` left the ring.
    pub(crate) fn missed(&self, from: u64, to: u64) -> Missed {
        let place = |number| self.left.partition_point(|left| *left <= number);
        let count = place(to).saturating_sub(place(from)) as u64;
        Missed { count, at_least: from < self.forgotten_to }
    }

    pub(crate) fn find_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let start = self.entries.partition_point(|entry| entry.update.number < number);
        self.entries.get_mut(start).filter(|entry| entry.update.number == number)
    }

    /// The number of the update that its publisher called so, of those that may be read.
    pub(crate) fn find_id(&self, id: &str, may_read: impl Fn(&Update) -> bool) -> Option<u64> {
        let named = |entry: &&Entry| entry.update.id.as_deref() == Some(id) && may_read(&entry.update);
        self.entries.iter().rev().find(named).map(|entry| entry.update.number)
    }
}
