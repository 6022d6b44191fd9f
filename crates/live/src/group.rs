//! Readers of one interest.
//!
//! It owns the group's list and how far its wave is. It must never know what is sent.
//!
//! The wave is a round over the list: `remaining` readers, from `cursor` on and around the end, are still to
//! be looked at.

use std::sync::Arc;

use crate::interest::Interest;
use crate::limits::{GROUP_BYTES_MAX, NAME_PLACES_BYTES};
use crate::name::TopicName;
use crate::topic::TopicId;

/// A group of readers.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) interest: Arc<Interest>,
    /// Places of its patterns, in order.
    pub(crate) patterns: Vec<u32>,
    /// The topics of its names that exist, in order. Those of its patterns stand with these.
    pub(crate) topics: Vec<TopicId>,
    /// The connections of its readers.
    pub(crate) readers: Vec<u32>,
    /// The number of the last update that concerns it.
    pub(crate) number: u64,
    cursor: u32,
    remaining: u32,
    /// The group stands in the queue of waves.
    pub(crate) queued: bool,
    /// The group is that of a single reader, and changes with what that reader asks for.
    pub(crate) is_own: bool,
    /// Bytes of its names.
    names_bytes: usize,
}

const _: () = {
    let found_by_interest = size_of::<(Arc<Interest>, u32)>() * 3 / 2;
    let counts = 2 * size_of::<usize>();
    let all = size_of::<Group>() + size_of::<Interest>() + counts + found_by_interest + size_of::<usize>();
    assert!(all <= GROUP_BYTES_MAX);
};

/// What a reader's leaving means for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The connection that has taken the place.
    pub(crate) slot: u32,
    /// The wave was to look at it, and has passed its new place.
    pub(crate) passed: bool,
}

impl Group {
    pub(crate) fn new(interest: Arc<Interest>, patterns: Vec<u32>, number: u64) -> Self {
        let names_bytes = interest.names.iter().map(TopicName::held_bytes).sum();
        let (topics, readers) = (Vec::new(), Vec::new());
        let (cursor, remaining, queued, is_own) = (0, 0, false, false);
        Self { interest, patterns, topics, readers, number, cursor, remaining, queued, is_own, names_bytes }
    }

    /// Bytes that it holds, its patterns and its list of readers aside, and those of what leads to it.
    pub(crate) fn held_bytes(&self) -> usize {
        let lists = self.patterns.capacity() + self.topics.capacity();
        let names = &self.interest.names;
        GROUP_BYTES_MAX
            + lists * size_of::<u32>()
            + self.names_bytes
            + names.capacity() * size_of::<TopicName>()
            + names.len() * NAME_PLACES_BYTES
            + self.interest.patterns.capacity() * size_of::<crate::pattern::Pattern>()
    }

    /// Its only reader asks for more.
    pub(crate) fn widen(&mut self, channel: &Interest) {
        debug_assert!(self.is_own);
        self.names_bytes += channel.names.iter().map(TopicName::held_bytes).sum::<usize>();
        Arc::make_mut(&mut self.interest).widen(channel);
    }

    /// Its only reader asks for less.
    pub(crate) fn narrow(&mut self, channel: &Interest) {
        debug_assert!(self.is_own);
        Arc::make_mut(&mut self.interest).narrow(channel);
        self.names_bytes =
            self.names_bytes.saturating_sub(channel.names.iter().map(TopicName::held_bytes).sum());
    }

    /// A new round: everybody is to be looked at, from where the last round ended.
    pub(crate) fn begin_round(&mut self, number: u64) {
        self.number = number;
        self.remaining = self.readers.len() as u32;
    }

    /// The next reader of the round.
    pub(crate) fn next(&mut self) -> Option<u32> {
        self.remaining = self.remaining.checked_sub(1)?;
        let slot = self.readers[self.cursor as usize];
        self.cursor = (self.cursor + 1) % self.readers.len() as u32;
        Some(slot)
    }

    /// Whether the round is over.
    pub(crate) fn is_settled(&self) -> bool {
        self.remaining == 0
    }

    /// Adds a reader that needs nothing of what was published so far; gives its place.
    pub(crate) fn add(&mut self, slot: u32) -> u32 {
        let place = self.readers.len() as u32;
        // The round goes around the end: it passes the newcomer on its way.
        if self.cursor + self.remaining > place {
            self.remaining += 1;
        }
        self.readers.push(slot);
        place
    }

    /// Removes the reader at a place; the last one of the list takes it.
    pub(crate) fn remove(&mut self, place: u32) -> Option<Moved> {
        let last = self.readers.len() as u32 - 1;
        let (last_waits, place_waits) = (self.waits(last), self.waits(place));
        self.readers.swap_remove(place as usize);
        self.remaining -= u32::from(last_waits);
        if self.cursor >= last {
            self.cursor = 0;
        }
        let moved = (place != last).then(|| self.readers[place as usize])?;
        Some(Moved { slot: moved, passed: last_waits && !place_waits })
    }

    /// Whether the round is still to look at a place.
    fn waits(&self, place: u32) -> bool {
        let length = self.readers.len() as u32;
        (place + length - self.cursor) % length < self.remaining
    }

    pub(crate) fn add_topic(&mut self, topic: TopicId) {
        if let Err(place) = self.topics.binary_search(&topic) {
            self.topics.insert(place, topic);
        }
    }

    pub(crate) fn remove_topic(&mut self, topic: TopicId) {
        if let Ok(place) = self.topics.binary_search(&topic) {
            self.topics.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::interest::Grants;

    fn group() -> Group {
        let interest = Interest::read(["a"], Grants::default(), 1).unwrap();
        Group::new(Arc::new(interest), Vec::new(), 0)
    }

    proptest! {
        /// Whatever joins and leaves on the way: a round looks at everybody who was there when it began, once
        /// at least, if who was moved to a place behind it is looked at.
        #[test]
        fn a_round_misses_nobody(steps in prop::collection::vec((0u8..4, any::<u32>()), 1..200)) {
            let mut group = group();
            let mut places: Vec<u32> = Vec::new();
            let (mut next_slot, mut owed) = (0u32, BTreeSet::new());
            for (what, draw) in steps {
                match what {
                    0 => {
                        group.add(next_slot);
                        places.push(next_slot);
                        next_slot += 1;
                    }
                    1 if !places.is_empty() => {
                        let place = draw as usize % places.len();
                        owed.remove(&places.swap_remove(place));
                        if let Some(moved) = group.remove(place as u32) {
                            prop_assert_eq!(moved.slot, places[place]);
                            if moved.passed {
                                owed.remove(&moved.slot);
                            }
                        }
                    }
                    2 => {
                        group.begin_round(1);
                        owed = places.iter().copied().collect();
                    }
                    _ => {
                        if let Some(slot) = group.next() {
                            owed.remove(&slot);
                        }
                    }
                }
                prop_assert_eq!(&group.readers, &places);
                prop_assert!(group.remaining as usize <= places.len());
            }
            while let Some(slot) = group.next() {
                owed.remove(&slot);
            }
            prop_assert!(owed.is_empty(), "never looked at: {:?}", owed);
        }
    }
}
