//! Polls that wait for the next update of a topic.
//!
//! It owns who waits for what and until when. It must never hold more for a poll than its address: the
//! engine keeps what was asked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::{HashMap, HashMapExt as _};
use staunch_engine::Address;
use staunch_live::TopicName;

/// Bytes of a place in a table: a byte is kept beside each, and seven of sixteen places are used at least.
const fn place_bytes<T>() -> usize {
    (size_of::<T>() + 1) * 16 / 7
}

/// Bytes that a poll costs at most, beside the name of its topic: a place in each table, the first four of a
/// topic's own, and four in the list of ends, which has two for each poll and grows by doubling.
const POLL_BYTES: usize = place_bytes::<(Address, TopicName)>()
    + place_bytes::<(TopicName, HashMap<Address, bool>)>()
    + 4 * (size_of::<(Address, bool)>() + 1)
    + size_of::<usize>() * 2
    + 4 * size_of::<Reverse<(u32, Address)>>();

/// Ends that may stand in the list beside two for each poll that waits.
const ENDS_SPARE: usize = 64;

/// The polls of a worker that wait for an update.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The polls that wait for a topic, and whether each may read what is private of it.
    by_topic: HashMap<TopicName, HashMap<Address, bool>>,
    by_address: HashMap<Address, TopicName>,
    /// When they have waited for long enough, in seconds since the start.
    ends: BinaryHeap<Reverse<(u32, Address)>>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        let (by_topic, by_address) = (HashMap::new(), HashMap::new());
        Self { by_topic, by_address, ends: BinaryHeap::new() }
    }

    /// Bytes that a poll which waits for a topic costs.
    pub(crate) fn bytes_of(topic: &TopicName) -> usize {
        POLL_BYTES + topic.held_bytes()
    }

    /// A poll waits from now on. `reads_private` says whether an update that is private ends its waiting.
    pub(crate) fn add(&mut self, topic: TopicName, address: Address, end_s: u32, reads_private: bool) {
        self.by_topic.entry(topic.clone()).or_default().insert(address, reads_private);
        self.by_address.insert(address, topic);
        // Ends of those that are gone, or were answered, are not kept until they come.
        if self.ends.len() >= 2 * self.by_address.len() + ENDS_SPARE {
            let present = &self.by_address;
            self.ends.retain(|Reverse((_, address))| present.contains_key(address));
        }
        self.ends.push(Reverse((end_s, address)));
    }

    /// The topic was updated: those who waited for that.
    pub(crate) fn take(&mut self, topic: &TopicName, is_private: bool) -> Vec<Address> {
        let Some(waiting) = self.by_topic.get(topic) else { return Vec::new() };
        let concerned = waiting.iter().filter(|(_, reads_private)| **reads_private || !is_private);
        let taken: Vec<Address> = concerned.map(|(address, _)| *address).collect();
        taken.iter().for_each(|address| drop(self.leave(*address)));
        taken
    }

    /// Those who have waited for long enough, each with its topic.
    pub(crate) fn take_ended(&mut self, now_s: u32) -> Vec<(Address, TopicName)> {
        let mut ended = Vec::new();
        while let Some(&Reverse((end_s, address))) = self.ends.peek() {
            if end_s > now_s {
                break;
            }
            self.ends.pop();
            ended.extend(self.leave(address).map(|topic| (address, topic)));
        }
        ended
    }

    /// A poll is gone; gives the topic that it waited for.
    pub(crate) fn leave(&mut self, address: Address) -> Option<TopicName> {
        let topic = self.by_address.remove(&address)?;
        if let Some(waiting) = self.by_topic.get_mut(&topic) {
            waiting.remove(&address);
            if waiting.is_empty() {
                self.by_topic.remove(&topic);
            }
        }
        Some(topic)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.by_address.len()
    }
}

#[cfg(test)]
mod tests {
    use staunch_engine::StreamRef;

    use super::*;

    #[test]
    fn polls_wait_for_a_topic_or_for_their_time() {
        let mut waiting = Waiting::new();
        let name = |text| TopicName::new(text).unwrap();
        let address = |slot| Address { worker: 0, slot, generation: 1, stream: StreamRef::ONLY };
        for (slot, topic, end_s) in [(1, "a", 5), (2, "a", 3), (3, "b", 4), (4, "b", 9)] {
            waiting.add(name(topic), address(slot), end_s, slot == 4);
        }
        assert_eq!(waiting.leave(address(1)), Some(name("a")));
        assert_eq!(waiting.take_ended(3), [(address(2), name("a"))]);
        assert!(waiting.take(&name("a"), false).is_empty());
        assert_eq!(waiting.take(&name("b"), true), [address(4)], "the other may not read it");
        assert_eq!(waiting.take(&name("b"), false), [address(3)]);
        assert!(waiting.take_ended(99).is_empty() && waiting.len() == 0);
    }

    /// Bytes of a table of so much room for such places: seven of eight are used at most.
    fn table_bytes<T>(room: usize) -> usize {
        let places = if room < 4 { 4 } else { (room * 8 / 7).next_power_of_two() };
        if room == 0 { 0 } else { places * (size_of::<T>() + 1) + 16 }
    }

    /// Bytes that the tables hold, with each name once.
    fn held_bytes(waiting: &Waiting) -> usize {
        let own = waiting.by_topic.values().map(|own| table_bytes::<(Address, bool)>(own.capacity()));
        own.sum::<usize>()
            + waiting.by_topic.keys().map(TopicName::held_bytes).sum::<usize>()
            + table_bytes::<(TopicName, HashMap<Address, bool>)>(waiting.by_topic.capacity())
            + table_bytes::<(Address, TopicName)>(waiting.by_address.capacity())
            + waiting.ends.capacity() * size_of::<Reverse<(u32, Address)>>()
    }

    proptest::proptest! {
        /// Accounts of polls that wait never have less than what is held for them by more than a tenth.
        #[test]
        fn what_is_held_for_polls_is_counted(
            count in 40_u32..600,
            topics in 1_u32..600,
            length in 1_usize..250,
        ) {
            let mut waiting = Waiting::new();
            let mut counted = 0;
            for slot in 0..count {
                let name = TopicName::new(&format!("{}{:0length$}", "t", slot % topics)).unwrap();
                counted += Waiting::bytes_of(&name);
                let address = Address { worker: 0, slot, generation: 1, stream: StreamRef::ONLY };
                waiting.add(name, address, slot, false);
            }
            let held = held_bytes(&waiting);
            proptest::prop_assert!(counted * 11 / 10 >= held, "{counted} counted, {held} held");
        }
    }

    #[test]
    fn ends_of_polls_that_are_gone_are_not_kept() {
        let mut waiting = Waiting::new();
        for generation in 0..10_000 {
            let address = Address { worker: 0, slot: 1, generation, stream: StreamRef::ONLY };
            waiting.add(TopicName::new("a").unwrap(), address, 50, false);
            waiting.leave(address);
        }
        assert!(waiting.ends.len() <= ENDS_SPARE + 2);
    }
}
