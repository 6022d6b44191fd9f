//! What is held of a site's topics: a stamp and a handle each, and digests by which two nodes find out what
//! differs.
//!
//! It owns the marks of topics that ended. It must never hold a value: handles lead to those who do.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use siphasher::sip::SipHasher24;

use super::limits::{BUCKETS, MARK_MS, MARKS_MAX};
use super::stamp::Stamp;

/// Digests of all buckets.
pub(super) type Buckets = [u32; BUCKETS];

/// What is known of a topic.
#[derive(Debug)]
pub(super) enum TopicState<H> {
    /// The topic has a value.
    Held(H),
    /// The topic was deleted, and others are told so: the handle leads to the update that says it.
    Gone(H),
    /// The topic was forgotten here, after its own time; other nodes forget it after theirs.
    Forgotten,
}

/// A topic.
#[derive(Debug)]
pub(super) struct Entry<H> {
    pub(super) stamp: Stamp,
    pub(super) state: TopicState<H>,
}

/// The topics of a site and their digests.
#[derive(Debug)]
pub(super) struct Table<H> {
    topics: BTreeMap<Arc<str>, Entry<H>>,
    buckets: Box<Buckets>,
    digest: u64,
    held: usize,
    held_max: usize,
    /// Ends of topics in the order in which they came, each with the time at which it is forgotten.
    marks: VecDeque<(u64, Arc<str>, Stamp)>,
}

/// The bucket of a topic.
pub(super) fn bucket(topic: &str) -> usize {
    (hash(&[topic.as_bytes()]) % BUCKETS as u64) as usize
}

/// The digest of a site's name.
pub(super) fn name_digest(site: &str) -> u64 {
    hash(&[b"site", site.as_bytes()])
}

/// A hash that is equal on all nodes: it tells what differs, and protects nothing.
fn hash(parts: &[&[u8]]) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = SipHasher24::new_with_key(b"dostp fabric sum");
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

impl<H> Table<H> {
    /// An empty one, for so many topics with a value.
    pub(super) fn new(held_max: usize) -> Self {
        let (topics, marks) = (BTreeMap::new(), VecDeque::new());
        Self { topics, buckets: Box::new([0; BUCKETS]), digest: 0, held: 0, held_max, marks }
    }

    /// What is known of a topic.
    pub(super) fn stamp(&self, topic: &str) -> Option<Stamp> {
        self.topics.get(topic).map(|entry| entry.stamp)
    }

    /// Whether the update with this stamp is the last one of the topic, and told: a value or an end.
    pub(super) fn is_told(&self, topic: &str, stamp: Stamp) -> bool {
        let entry = self.topics.get(topic);
        entry.is_some_and(|entry| entry.stamp == stamp && !matches!(entry.state, TopicState::Forgotten))
    }

    /// Whether the topic was deleted, and that is remembered.
    pub(super) fn is_gone(&self, topic: &str) -> bool {
        self.topics.get(topic).is_some_and(|entry| matches!(entry.state, TopicState::Gone(_)))
    }

    /// Topics with a value.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Ends of topics that are remembered.
    pub(super) fn marks(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// A topic has a value. `false` if there is no room for one more.
    pub(super) fn hold(&mut self, topic: &str, stamp: Stamp, handle: H) -> bool {
        let is_new =
            || !self.topics.get(topic).is_some_and(|entry| matches!(entry.state, TopicState::Held(_)));
        if self.held >= self.held_max && is_new() {
            return false;
        }
        self.put(topic, Entry { stamp, state: TopicState::Held(handle) });
        true
    }

    /// A topic ended: it was deleted by the update that a handle leads to, or forgotten here.
    pub(super) fn end(&mut self, topic: &str, stamp: Stamp, deleted: Option<H>, now_ms: u64) {
        let state = deleted.map_or(TopicState::Forgotten, TopicState::Gone);
        let name = self.put(topic, Entry { stamp, state });
        self.marks.push_back((now_ms.saturating_add(MARK_MS), name, stamp));
        self.tidy(now_ms);
    }

    /// Forgets marks whose time is over, and the oldest ones if there are too many.
    pub(super) fn tidy(&mut self, now_ms: u64) {
        while let Some((until_ms, _, _)) = self.marks.front()
            && (*until_ms <= now_ms || self.marks.len() > MARKS_MAX)
        {
            let Some((_, name, stamp)) = self.marks.pop_front() else { return };
            let is_mark =
                |entry: &Entry<H>| entry.stamp == stamp && !matches!(entry.state, TopicState::Held(_));
            if self.topics.get(&name).is_some_and(is_mark) {
                self.topics.remove(&name);
            }
        }
    }

    /// Forgets every value; marks stay.
    pub(super) fn clear(&mut self) {
        self.topics.retain(|_, entry| !matches!(entry.state, TopicState::Held(_)));
        (*self.buckets, self.digest, self.held) = ([0; BUCKETS], 0, 0);
    }

    /// Topics behind a name, in the order of their names.
    pub(super) fn behind(&self, cursor: &str) -> impl Iterator<Item = (&Arc<str>, &Entry<H>)> {
        self.topics.range::<str, _>((Bound::Excluded(cursor), Bound::Unbounded))
    }

    fn put(&mut self, topic: &str, entry: Entry<H>) -> Arc<str> {
        self.count(topic, &entry, true);
        if let Some(known) = self.topics.get_mut(topic) {
            let before = std::mem::replace(known, entry);
            self.count(topic, &before, false);
            let (name, _) = self.topics.get_key_value(topic).unzip();
            return name.map_or_else(|| topic.into(), Arc::clone);
        }
        let name: Arc<str> = topic.into();
        self.topics.insert(Arc::clone(&name), entry);
        name
    }

    /// Adds a value to the digests, or takes it out of them: both are the same sum.
    fn count(&mut self, topic: &str, entry: &Entry<H>, is_new: bool) {
        if !matches!(entry.state, TopicState::Held(_)) {
            return;
        }
        let digest = hash(&[topic.as_bytes(), &entry.stamp.bytes()]);
        self.digest ^= digest;
        self.buckets[bucket(topic)] ^= digest as u32;
        self.held = if is_new { self.held + 1 } else { self.held - 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(ms: u64) -> Stamp {
        Stamp { ms, node: 1, sequence: 0 }
    }

    #[test]
    fn digests_tell_what_is_held_whatever_led_there() {
        let (mut one, mut other) = (Table::new(9), Table::new(9));
        assert!(one.hold("a", stamp(1), ()) && one.hold("b", stamp(2), ()) && one.hold("a", stamp(3), ()));
        assert!(other.hold("a", stamp(3), ()));
        assert_ne!(one.digest(), other.digest());
        let differing: Vec<usize> =
            (0..BUCKETS).filter(|place| one.buckets()[*place] != other.buckets()[*place]).collect();
        assert_eq!(differing, [bucket("b")]);
        one.end("b", stamp(4), Some(()), 0);
        assert_eq!((one.digest(), one.buckets(), one.held()), (other.digest(), other.buckets(), 1));
        one.clear();
        assert_eq!((one.digest(), one.held(), one.marks(), one.stamp("b")), (0, 0, 1, Some(stamp(4))));
    }

    #[test]
    fn marks_and_values_are_bounded() {
        let mut table = Table::new(2);
        assert!(table.hold("a", stamp(1), ()) && table.hold("b", stamp(1), ()));
        assert!(!table.hold("c", stamp(1), ()) && table.hold("a", stamp(2), ()));
        (0..MARKS_MAX as u64 + 5)
            .for_each(|number| table.end(&number.to_string(), stamp(number), Some(()), 0));
        assert_eq!((table.marks(), table.stamp("4"), table.stamp("5")), (MARKS_MAX, None, Some(stamp(5))));
        // A topic that came back is not forgotten with its mark.
        table.end("a", stamp(3), None, 0);
        assert!(table.hold("a", stamp(4), ()));
        table.tidy(MARK_MS);
        assert_eq!((table.marks(), table.held(), table.stamp("a")), (0, 2, Some(stamp(4))));
    }
}
