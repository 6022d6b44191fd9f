//! Topics as a worker knows them.
//!
//! It must never decide what leaves a ring: the hub tells.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::form::Form;
use crate::letter::{Made, Place, TopicFacts};
use crate::limits::RECENT_NUMBERS_MAX;
use crate::name::TopicName;
use crate::ring::{Entry, Ring};
use crate::topic::{Kind, TopicId};
use crate::update::{Bytes, Update};

/// A topic as a worker knows it.
#[derive(Debug)]
pub(crate) struct ViewTopic {
    pub(crate) name: TopicName,
    pub(crate) kind: Kind,
    pub(crate) ring: Ring,
    /// The groups it concerns, in order.
    pub(crate) groups: Vec<u32>,
}

/// All topics a worker knows.
#[derive(Debug)]
pub(crate) struct Topics {
    topics: HashMap<TopicId, ViewTopic>,
    names: HashMap<TopicName, TopicId>,
    /// Numbers of the last updates with their topics, oldest first.
    recent: VecDeque<(u64, TopicId)>,
    /// Everything behind this number stands in `recent`.
    recent_from: u64,
}

impl Default for Topics {
    fn default() -> Self {
        Self { topics: HashMap::new(), names: HashMap::new(), recent: VecDeque::new(), recent_from: 0 }
    }
}

impl Topics {
    pub(crate) fn get(&self, id: TopicId) -> Option<&ViewTopic> {
        self.topics.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: TopicId) -> Option<&mut ViewTopic> {
        self.topics.get_mut(&id)
    }

    pub(crate) fn id_of(&self, name: &TopicName) -> Option<TopicId> {
        self.names.get(name).copied()
    }

    pub(crate) fn find(&self, name: &TopicName) -> Option<&ViewTopic> {
        self.get(self.id_of(name)?)
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TopicId, &ViewTopic)> {
        self.topics.iter().map(|(id, topic)| (*id, topic))
    }

    pub(crate) fn add(&mut self, facts: &TopicFacts, groups: Vec<u32>) {
        let (name, kind) = (facts.name.clone(), facts.kind);
        self.names.insert(name.clone(), facts.id);
        self.topics.insert(facts.id, ViewTopic { name, kind, ring: Ring::default(), groups });
    }

    /// Puts an update into the rings of its topics; gives the groups it concerns, some maybe twice.
    pub(crate) fn push(&mut self, update: &Arc<Update>, made: &Made) -> Vec<u32> {
        let mut concerned = Vec::new();
        for (id, _) in &update.topics {
            let Some(topic) = self.topics.get_mut(id) else { continue };
            if topic.ring.dropped_to() >= update.number {
                continue;
            }
            topic.ring.push(Entry::new(update.clone(), made.clone()));
            concerned.extend_from_slice(&topic.groups);
            self.recent.push_back((update.number, *id));
        }
        while self.recent.len() > RECENT_NUMBERS_MAX {
            self.recent_from = self.recent.pop_front().map_or(self.recent_from, |(number, _)| number);
        }
        concerned
    }

    /// The topics with updates behind a number, some several times; `None` where it is less work to look at
    /// so many topics, or the number is too old.
    pub(crate) fn moved_since(&self, number: u64, topics: usize) -> Option<impl Iterator<Item = TopicId>> {
        if number < self.recent_from {
            return None;
        }
        let start = self.recent.partition_point(|(at, _)| *at <= number);
        let count = self.recent.len() - start;
        (count < topics).then(|| self.recent.range(start..).map(|(_, id)| *id))
    }

    pub(crate) fn drop_to(&mut self, place: Place) {
        if let Some(topic) = self.get_mut(place.topic) {
            topic.ring.drop_to(place.number, topic.kind == Kind::Log);
            // An introduction tells what was dropped before it tells the updates: the ring is still empty.
            topic.ring.begin_behind(place.number);
        }
    }

    pub(crate) fn add_form(&mut self, place: Place, form: Form, bytes: &Bytes) {
        let entry = self.get_mut(place.topic).and_then(|topic| topic.ring.find_mut(place.number));
        if let Some(entry) = entry {
            entry.add_form(form, bytes.clone());
        }
    }

    pub(crate) fn drop_forms(&mut self, place: Place) {
        let entry = self.get_mut(place.topic).and_then(|topic| topic.ring.find_mut(place.number));
        if let Some(entry) = entry {
            entry.drop_forms();
        }
    }

    pub(crate) fn forget(&mut self, id: TopicId) -> Option<ViewTopic> {
        let topic = self.topics.remove(&id)?;
        self.names.remove(&topic.name);
        Some(topic)
    }
}
