//! The account of what topics hold: values, rings, forms.
//!
//! It owns the bound `live_memory`. It must never let a topic's value go: rings give way, oldest first.

use std::collections::VecDeque;

use super::shelf::{Shelf, Topic};
use crate::letter::Place;
use crate::name::TopicName;
use crate::ring::Entry;
use crate::update::Update;

/// What a topic costs beside its name and updates.
pub(crate) const TOPIC_BYTES: usize = size_of::<Topic>() + 96;

/// What an update costs in each of its topics beside its value, its patch and its texts.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<Update>();

/// The account.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: usize,
    bytes_max: usize,
    /// Updates in the order in which they came. What left its ring otherwise is skipped.
    oldest: VecDeque<Place>,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max, oldest: VecDeque::new() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether so many bytes more are too many.
    pub(crate) fn lacks(&self, more: usize) -> bool {
        self.bytes.saturating_add(more) > self.bytes_max
    }

    pub(crate) fn keep(&mut self, entry: &Entry, place: Place) {
        self.bytes += entry.held_bytes();
        self.oldest.push_back(place);
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

    /// Lets the oldest update go that is no topic's value; `None` if all are values.
    pub(crate) fn relieve(&mut self, shelf: &mut Shelf) -> Option<Place> {
        for _ in 0..self.oldest.len() {
            if shelf.spare_entries() == 0 {
                return None;
            }
            let place = self.oldest.pop_front()?;
            if !shelf.holds(place) {
                continue;
            }
            if shelf.is_value(place) {
                self.oldest.push_back(place);
                continue;
            }
            let freed = shelf.drop_to(place);
            self.release(freed);
            return Some(place);
        }
        None
    }

    /// Skips what left its ring otherwise, so that the list is not longer than what is held.
    pub(crate) fn tidy(&mut self, shelf: &Shelf) {
        while self.oldest.front().is_some_and(|place| !shelf.holds(*place)) {
            self.oldest.pop_front();
        }
        if self.oldest.len() > 2 * shelf.entries() + 64 {
            self.oldest.retain(|place| shelf.holds(*place));
        }
    }
}
