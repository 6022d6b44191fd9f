//! All topics, by number and by name.
//!
//! It must never number an update: the hub does.

use foldhash::{HashMap, HashMapExt as _};

use super::readers::{Counted, Holdings};
use crate::letter::UpdateKey;
use crate::name::TopicName;
use crate::ring::{Entry, Freed, Ring};
use crate::topic::{Kind, TopicId, TopicRules};

/// A topic as the hub knows it.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) rules: TopicRules,
    pub(crate) ring: Ring,
    pub(crate) counted: Counted,
    updated: Moment,
}

/// When an update came, and how old it was then.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    pub(crate) now_ms: u64,
    pub(crate) age_ms: u64,
}

impl Topic {
    /// When its time is over, if it has one.
    fn outdated_ms(&self) -> Option<u64> {
        let Moment { now_ms, age_ms } = self.updated;
        let keep_ms = self.rules.keep_ms;
        (keep_ms > 0).then_some(now_ms + keep_ms.saturating_sub(age_ms))
    }
}

/// All topics.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Topics that exist now, by number; the number of a forgotten topic is not used again.
    topics: HashMap<TopicId, Topic>,
    added: u32,
    names: HashMap<TopicName, TopicId>,
    /// Updates in all rings, and those of them that are no topic's value.
    entries: usize,
    spare_entries: usize,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { topics: HashMap::new(), added: 0, names: HashMap::new(), entries: 0, spare_entries: 0 }
    }
}

impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn find(&self, name: &TopicName) -> Option<(TopicId, &Topic)> {
        let id = *self.names.get(name)?;
        Some((id, self.topics.get(&id)?))
    }

    pub(crate) fn get(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(&id)
    }

    /// All topics, in no order.
    fn iter(&self) -> impl Iterator<Item = (TopicId, &Topic)> {
        self.topics.iter().map(|(id, topic)| (*id, topic))
    }

    /// All topics, in the order in which they began.
    pub(crate) fn in_order(&self) -> Vec<(TopicId, &Topic)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    pub(crate) fn add(&mut self, name: TopicName, rules: TopicRules) -> TopicId {
        let id = TopicId(self.added);
        self.added += 1;
        self.names.insert(name.clone(), id);
        let (ring, counted, updated) = (Ring::default(), Counted::default(), Moment::default());
        self.topics.insert(id, Topic { name, rules, ring, counted, updated });
        id
    }

    /// Marks all updates of a topic up to `key.number` as dropped before this process began; its ring is
    /// still empty.
    pub(crate) fn begin_behind(&mut self, key: UpdateKey) {
        if let Some(topic) = self.topics.get_mut(&key.topic) {
            topic.ring.begin_behind(key.number);
        }
    }

    /// Puts an update in its topic's ring; gives what left it and what that held.
    pub(crate) fn push(&mut self, id: TopicId, entry: Entry, moment: Moment) -> Option<(UpdateKey, Freed)> {
        let topic = self.topics.get_mut(&id)?;
        topic.updated = moment;
        topic.ring.push(entry);
        self.entries += 1;
        self.spare_entries += usize::from(topic.ring.len() > 1);
        let entries_max = match topic.rules.kind {
            Kind::Value if !topic.rules.dictionary => 1,
            Kind::Value | Kind::Log | Kind::Json => topic.rules.ring_entries.max(1),
        };
        let key = UpdateKey { topic: id, number: topic.ring.overflow(entries_max, topic.rules.ring_bytes)? };
        Some((key, self.drop_to(key)))
    }

    /// Lets a topic's updates up to a number go; gives what they held.
    pub(crate) fn drop_to(&mut self, key: UpdateKey) -> Freed {
        let Some(topic) = self.topics.get_mut(&key.topic) else { return Freed::default() };
        let before = topic.ring.len();
        let freed = topic.ring.drop_to(key.number, topic.rules.kind == Kind::Log);
        let dropped = before - topic.ring.len();
        self.entries -= dropped;
        self.spare_entries -= dropped - usize::from(before > 0 && topic.ring.len() == 0);
        freed
    }

    /// A topic that exists now.
    pub(crate) fn get_mut(&mut self, id: TopicId) -> Option<&mut Topic> {
        self.topics.get_mut(&id)
    }

    /// An update with its forms.
    pub(crate) fn entry_mut(&mut self, key: UpdateKey) -> Option<&mut Entry> {
        self.topics.get_mut(&key.topic)?.ring.find_mut(key.number)
    }

    /// Updates in all rings.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Those of them that are no topic's value.
    pub(crate) fn spare_entries(&self) -> usize {
        self.spare_entries
    }

    pub(crate) fn holds(&self, key: UpdateKey) -> bool {
        self.get(key.topic).is_some_and(|topic| topic.ring.dropped_to() < key.number)
    }

    pub(crate) fn is_value(&self, key: UpdateKey) -> bool {
        self.get(key.topic).is_some_and(|topic| topic.ring.last_number() == key.number)
    }

    /// When a publication may be numbered, if that is not now.
    pub(crate) fn due_ms(&self, topics: &[TopicName], now_ms: u64) -> Option<u64> {
        let due = topics.iter().filter_map(|name| {
            let (_, topic) = self.find(name)?;
            let limited = topic.rules.kind != Kind::Log && topic.rules.every_ms > 0;
            limited.then_some(topic.updated.now_ms + topic.rules.every_ms)
        });
        due.max().filter(|due_ms| *due_ms > now_ms)
    }

    /// When the next topic may be outdated.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.iter().filter_map(|(_, topic)| topic.outdated_ms()).min()
    }

    /// Topics that were neither updated nor read for as long as they are kept.
    pub(crate) fn outdated(&self, now_ms: u64, holdings: &mut Holdings) -> Vec<TopicId> {
        let mut outdated = |topic: &Topic| {
            topic.outdated_ms().is_some_and(|outdated_ms| outdated_ms <= now_ms)
                && !holdings.may_have_readers(&topic.name)
        };
        let mut all: Vec<_> = self.iter().filter(|(_, topic)| outdated(topic)).map(|(id, _)| id).collect();
        all.sort_unstable();
        all
    }

    /// Forgets a topic; gives its name and what its ring held.
    pub(crate) fn forget(&mut self, id: TopicId) -> Option<(TopicName, Freed)> {
        let freed = self.drop_to(UpdateKey { topic: id, number: u64::MAX });
        let topic = self.topics.remove(&id)?;
        self.names.remove(&topic.name);
        Some((topic.name, freed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_were_forgotten_leave_nothing() {
        let mut shelf = Shelf::default();
        let stays = shelf.add(TopicName::new("stays").unwrap(), TopicRules::default());
        for number in 0..1000 {
            let id = shelf.add(TopicName::new(&number.to_string()).unwrap(), TopicRules::default());
            assert!(shelf.forget(id).is_some() && shelf.get(id).is_none());
        }
        assert!(shelf.topics.capacity() < 100 && shelf.get(stays).is_some());
        let next = shelf.add(TopicName::new("next").unwrap(), TopicRules::default());
        assert!(next.0 == 1001, "no number comes twice");
    }
}
