//! Groups, found by interest, and the names and patterns that lead to them.
//!
//! It must never hold a group without readers.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::topics::Topics;
use crate::group::Group;
use crate::interest::Interest;
use crate::letter::Request;
use crate::limits::PATTERNS_MAX;
use crate::name::TopicName;
use crate::pattern::Pattern;
use crate::topic::TopicId;

/// All groups of a worker.
pub(crate) struct Groups {
    groups: Vec<Option<Box<Group>>>,
    free: Vec<u32>,
    by_interest: HashMap<Arc<Interest>, u32>,
    by_pattern: HashMap<Pattern, Vec<u32>>,
    /// Groups that asked for a topic that does not exist.
    awaiting: HashMap<TopicName, Vec<u32>>,
    /// Groups whose round is not over.
    pub(crate) waves: VecDeque<u32>,
    groups_max: usize,
    removed: u64,
}

impl Groups {
    pub(crate) fn new(groups_max: usize) -> Self {
        Self {
            groups: Vec::new(),
            free: Vec::new(),
            by_interest: HashMap::new(),
            by_pattern: HashMap::new(),
            awaiting: HashMap::new(),
            waves: VecDeque::new(),
            groups_max,
            removed: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_interest.len()
    }

    /// How many groups are gone: their numbers may be used again.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// A group that exists. Readers and topics name no other.
    pub(crate) fn get(&self, group: u32) -> &Group {
        self.groups[group as usize].as_deref().expect("a reader's group exists")
    }

    pub(crate) fn get_mut(&mut self, group: u32) -> &mut Group {
        self.groups[group as usize].as_deref_mut().expect("a reader's group exists")
    }

    /// The group of an interest; `None` if it is new, and there are as many groups or patterns as may be.
    pub(crate) fn find_or_add(
        &mut self,
        interest: &Arc<Interest>,
        topics: &mut Topics,
        number: u64,
    ) -> Option<u32> {
        if let Some(group) = self.by_interest.get(interest) {
            return Some(*group);
        }
        let new = interest.patterns.iter().filter(|pattern| !self.by_pattern.contains_key(pattern));
        if self.len() >= self.groups_max || self.by_pattern.len() + new.count() > PATTERNS_MAX {
            return None;
        }
        let group = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() as u32 - 1
        });
        let found = self.connect(group, interest, topics);
        self.by_interest.insert(interest.clone(), group);
        self.groups[group as usize] = Some(Box::new(Group::new(interest.clone(), found, number)));
        Some(group)
    }

    /// Enters the group at everything that leads to it; gives its topics, in order.
    fn connect(&mut self, group: u32, interest: &Interest, topics: &mut Topics) -> Vec<TopicId> {
        let mut found: Vec<TopicId> = Vec::new();
        for name in &interest.names {
            match topics.id_of(name) {
                Some(id) => found.push(id),
                None => self.await_name(name, group),
            }
        }
        for pattern in &interest.patterns {
            self.by_pattern.entry(pattern.clone()).or_default().push(group);
            found.extend(topics.iter().filter(|(_, topic)| pattern.matches(&topic.name)).map(|(id, _)| id));
        }
        found.sort_unstable();
        found.dedup();
        found.shrink_to_fit();
        for id in &found {
            if let Some(topic) = topics.get_mut(*id)
                && let Err(place) = topic.groups.binary_search(&group)
            {
                topic.groups.insert(place, group);
            }
        }
        found
    }

    /// The group gets the topic of this name when there is one.
    pub(crate) fn await_name(&mut self, name: &TopicName, group: u32) {
        if self.get_names(group).is_none_or(|names| names.binary_search(name).is_ok()) {
            self.awaiting.entry(name.clone()).or_default().push(group);
        }
    }

    fn get_names(&self, group: u32) -> Option<&[TopicName]> {
        Some(&self.groups.get(group as usize)?.as_ref()?.interest.names)
    }

    /// Groups that a topic with this name concerns, in order.
    pub(crate) fn groups_of_new_topic(&mut self, name: &TopicName) -> Vec<u32> {
        let mut groups = self.awaiting.remove(name).unwrap_or_default();
        for (_, of_pattern) in self.by_pattern.iter().filter(|(pattern, _)| pattern.matches(name)) {
            groups.extend_from_slice(of_pattern);
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The group has something to send: a round begins.
    pub(crate) fn mark(&mut self, group: u32, number: u64) {
        let entry = self.get_mut(group);
        entry.begin_round(number);
        if !entry.queued && !entry.is_settled() {
            entry.queued = true;
            self.waves.push_back(group);
        }
    }

    /// Another round for a group that may be gone, with nothing new.
    pub(crate) fn mark_again(&mut self, group: u32) {
        if let Some(number) = self.groups[group as usize].as_ref().map(|entry| entry.number) {
            self.mark(group, number);
        }
    }

    pub(crate) fn remove_if_empty(&mut self, group: u32, topics: &mut Topics) {
        if !self.get(group).readers.is_empty() {
            return;
        }
        let Some(entry) = self.groups[group as usize].take() else { return };
        self.by_interest.remove(&entry.interest);
        for id in &entry.topics {
            if let Some(topic) = topics.get_mut(*id)
                && let Ok(place) = topic.groups.binary_search(&group)
            {
                topic.groups.remove(place);
            }
        }
        for pattern in &entry.interest.patterns {
            remove_from(&mut self.by_pattern, pattern, group);
        }
        for name in &entry.interest.names {
            remove_from(&mut self.awaiting, name, group);
        }
        if entry.queued {
            self.waves.retain(|queued| *queued != group);
        }
        self.free.push(group);
        self.removed += 1;
    }

    /// Tells the hub of a reader that went from one group to another: of what one of them alone asks for.
    pub(crate) fn count_change(&self, from: u32, to: u32, requests: &mut Vec<Request>) {
        let (from, to) = (&self.get(from).interest, &self.get(to).interest);
        for (own, other, change) in [(from, to, -1), (to, from, 1)] {
            for name in own.names.iter().filter(|name| other.names.binary_search(name).is_err()) {
                requests.push(Request::Readers(name.clone(), change));
            }
            for pattern in
                own.patterns.iter().filter(|pattern| other.patterns.binary_search(pattern).is_err())
            {
                requests.push(Request::PatternReaders(pattern.clone(), change));
            }
        }
    }

    /// Tells the hub of readers that came or left. What is to be told already is added up.
    pub(crate) fn count_readers(&self, group: u32, change: i64, requests: &mut Vec<Request>) {
        let interest = &self.get(group).interest;
        for name in &interest.names {
            match requests.last_mut() {
                Some(Request::Readers(last, count)) if last == name => *count += change,
                _ => requests.push(Request::Readers(name.clone(), change)),
            }
        }
        for pattern in &interest.patterns {
            match requests.last_mut() {
                Some(Request::PatternReaders(last, count)) if last == pattern => *count += change,
                _ => requests.push(Request::PatternReaders(pattern.clone(), change)),
            }
        }
    }
}

fn remove_from<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<u32>>, key: &K, group: u32) {
    let Some(groups) = map.get_mut(key) else { return };
    groups.retain(|entry| *entry != group);
    if groups.is_empty() {
        map.remove(key);
    }
}
