//! Topics as a worker knows them.
//!
//! It must never decide what leaves a ring: the hub tells.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::form::Form;
use crate::letter::{Made, TopicFacts, UpdateKey};
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
    /// The groups that ask for it by its name, in order.
    pub(crate) groups: Vec<u32>,
    /// Places of the patterns that cover it, in order, those that cover all aside.
    pub(crate) patterns: Vec<u32>,
}

/// All topics a worker knows.
#[derive(Debug)]
pub(crate) struct Topics {
    topics: HashMap<TopicId, ViewTopic>,
    /// In order, so that those with one beginning stand together.
    names: BTreeMap<TopicName, TopicId>,
    /// Numbers of the last updates with their topics, oldest first.
    recent: VecDeque<(u64, TopicId)>,
    /// Everything behind this number stands in `recent`.
    recent_from: u64,
}

impl Default for Topics {
    fn default() -> Self {
        Self { topics: HashMap::new(), names: BTreeMap::new(), recent: VecDeque::new(), recent_from: 0 }
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

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// All of them, in no order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TopicId> {
        self.topics.keys().copied()
    }

    /// Names with a beginning, in order, and only those behind `after`.
    pub(crate) fn beginning_with<'a>(
        &'a self,
        begin: &'a str,
        after: Option<&TopicName>,
    ) -> impl Iterator<Item = (&'a TopicName, TopicId)> {
        let from = after.map_or(Bound::Included(begin), |after| Bound::Excluded(after.as_str()));
        let range = self.names.range::<str, _>((from, Bound::Unbounded));
        range.take_while(move |(name, _)| name.as_str().starts_with(begin)).map(|(name, id)| (name, *id))
    }

    /// A group asks for a topic by its name.
    pub(crate) fn enter(&mut self, id: TopicId, group: u32) {
        insert(self.topics.get_mut(&id).map(|topic| &mut topic.groups), group);
    }

    /// A group asks for a topic no more.
    pub(crate) fn leave(&mut self, id: TopicId, group: u32) {
        remove(self.topics.get_mut(&id).map(|topic| &mut topic.groups), group);
    }

    /// The pattern of a place covers a topic.
    pub(crate) fn cover(&mut self, id: TopicId, place: u32) {
        insert(self.topics.get_mut(&id).map(|topic| &mut topic.patterns), place);
    }

    /// The pattern of a place covers a topic no more.
    pub(crate) fn uncover(&mut self, id: TopicId, place: u32) {
        remove(self.topics.get_mut(&id).map(|topic| &mut topic.patterns), place);
    }

    pub(crate) fn add(&mut self, facts: &TopicFacts, groups: Vec<u32>, patterns: Vec<u32>) {
        let (name, kind) = (facts.name.clone(), facts.kind);
        self.names.insert(name.clone(), facts.id);
        self.topics.insert(facts.id, ViewTopic { name, kind, ring: Ring::default(), groups, patterns });
    }

    /// Puts an update into the rings of its topics; gives those.
    pub(crate) fn push(&mut self, update: &Arc<Update>, made: &Made) -> Vec<TopicId> {
        let mut concerned = Vec::new();
        for (id, _) in &update.topics {
            let Some(topic) = self.topics.get_mut(id) else { continue };
            if topic.ring.dropped_to() >= update.number {
                continue;
            }
            topic.ring.push(Entry::new(update.clone(), made.clone()));
            concerned.push(*id);
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

    pub(crate) fn drop_to(&mut self, key: UpdateKey) {
        if let Some(topic) = self.get_mut(key.topic) {
            topic.ring.drop_to(key.number, topic.kind == Kind::Log);
            // An introduction tells what was dropped before it tells the updates: the ring is still empty.
            topic.ring.begin_behind(key.number);
        }
    }

    pub(crate) fn add_form(&mut self, key: UpdateKey, form: Form, bytes: &Bytes) {
        let entry = self.get_mut(key.topic).and_then(|topic| topic.ring.find_mut(key.number));
        if let Some(entry) = entry {
            entry.add_form(form, bytes.clone());
        }
    }

    pub(crate) fn drop_forms(&mut self, key: UpdateKey) {
        let entry = self.get_mut(key.topic).and_then(|topic| topic.ring.find_mut(key.number));
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

fn insert(places: Option<&mut Vec<u32>>, own: u32) {
    if let Some(places) = places
        && let Err(index) = places.binary_search(&own)
    {
        places.insert(index, own);
    }
}

fn remove(places: Option<&mut Vec<u32>>, own: u32) {
    if let Some(places) = places
        && let Ok(index) = places.binary_search(&own)
    {
        places.remove(index);
        if places.is_empty() {
            *places = Vec::new();
        }
    }
}
