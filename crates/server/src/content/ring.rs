//! The order of eviction when room is needed: a clock whose hand passes over all entries and takes the first
//! that was not used since the hand passed last.
//!
//! It owns the order of eviction and the count of what is held. It must never decide when room is needed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::entry::Entry;

/// Entries in a circle. Their `slots` say where.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Which of an entry's slots is this ring's.
    number: usize,
    places: Vec<Option<Arc<Entry>>>,
    free: Vec<u32>,
    hand: usize,
    held: u64,
    held_max: u64,
}

impl Ring {
    /// An empty ring for so much, in the unit of the caller. Each ring of a store has another number, below
    /// [`super::entry::RINGS`].
    pub(crate) fn new(number: usize, held_max: u64) -> Self {
        Self { number, held_max, ..Self::default() }
    }

    /// How much is held.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Whether so much more has room within `part` sixteenths of the whole.
    pub(crate) fn has_room(&self, cost: u64, sixteenths: u64) -> bool {
        self.held.saturating_add(cost) <= self.held_max / 16 * sixteenths
    }

    /// Whether so much could be held at all: one may take half of the whole, no more.
    pub(crate) fn could_hold(&self, cost: u64) -> bool {
        cost <= self.held_max / 2
    }

    /// Whether more is held than there is room for.
    pub(crate) fn is_over(&self) -> bool {
        self.held > self.held_max
    }

    /// Takes an entry in.
    pub(crate) fn add(&mut self, entry: &Arc<Entry>, cost: u64) {
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        if place as usize == self.places.len() {
            self.places.push(None);
        }
        self.places[place as usize] = Some(Arc::clone(entry));
        entry.slots[self.number].store(place, Ordering::Relaxed);
        self.held += cost;
    }

    /// Lets an entry go that was taken in with this cost.
    pub(crate) fn remove(&mut self, entry: &Entry, cost: u64) {
        let slot = entry.slots[self.number].load(Ordering::Relaxed);
        let place = &mut self.places[slot as usize];
        debug_assert!(place.as_ref().is_some_and(|held| std::ptr::eq(Arc::as_ptr(held), entry)));
        *place = None;
        self.free.push(slot);
        self.held -= cost;
    }

    /// The next to go: the first behind the hand that was not used since the hand passed, and is not
    /// `spared`. In two rounds every mark is cleared, so `None` means that there is nobody else.
    pub(crate) fn next_victim(&mut self, spared: &Arc<Entry>) -> Option<Arc<Entry>> {
        if self.held == 0 {
            return None;
        }
        for _ in 0..2 * self.places.len() {
            self.hand = (self.hand + 1) % self.places.len();
            if let Some(entry) = &self.places[self.hand]
                && !Arc::ptr_eq(entry, spared)
                && !entry.used.swap(false, Ordering::Relaxed)
            {
                return Some(Arc::clone(entry));
            }
        }
        None
    }
}
