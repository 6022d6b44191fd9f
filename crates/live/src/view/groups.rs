//! Groups, found by interest, and the names and patterns that lead to them.
//!
//! It must never hold a group without readers.
//!
//! Readers that ask for the same are one group. A reader that has asked for much, bit by bit, has a group of
//! its own, which changes with it: a change costs what it changes.

use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt as _};

use super::covering::{AskedPatterns, Coverings};
use super::topics::Topics;
use crate::group::Group;
use crate::interest::Interest;
use crate::letter::Request;
use crate::name::TopicName;
use crate::pattern::Pattern;
use crate::reader::Reader;
use crate::topic::TopicId;

/// All groups of a worker.
pub(crate) struct Groups {
    groups: Vec<Option<Box<Group>>>,
    free: Vec<u32>,
    /// Groups that are no reader's own.
    by_interest: HashMap<Arc<Interest>, u32>,
    pub(crate) coverings: Coverings,
    /// Groups that asked for a topic that does not exist, by the digest of its name.
    awaiting: BTreeSet<(u64, u32)>,
    hasher: RandomState,
    /// Groups whose round is not over.
    pub(crate) waves: VecDeque<u32>,
    groups_max: usize,
    removed: u64,
    /// Connections whose account has become another.
    recharged: Vec<u32>,
}

/// What became of an interest that was asked for.
pub(crate) enum Found {
    /// The group of the interest is there.
    Group(u32),
    /// Its patterns are being compared with topics until this turn.
    Turn(u64),
    /// There are as many groups, or patterns, as may be.
    Full,
}

impl Groups {
    pub(crate) fn new(groups_max: usize) -> Self {
        Self {
            groups: Vec::new(),
            free: Vec::new(),
            by_interest: HashMap::new(),
            coverings: Coverings::new(),
            awaiting: BTreeSet::new(),
            hasher: RandomState::default(),
            waves: VecDeque::new(),
            groups_max,
            removed: 0,
            recharged: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len() - self.free.len()
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

    /// The group of an interest.
    pub(crate) fn find_or_add(
        &mut self,
        interest: &Arc<Interest>,
        client: u64,
        topics: &mut Topics,
        number: u64,
    ) -> Found {
        if let Some(group) = self.by_interest.get(interest) {
            return Found::Group(*group);
        }
        match self.add(interest, client, topics, number) {
            Found::Group(group) => {
                self.by_interest.insert(interest.clone(), group);
                Found::Group(group)
            }
            other => other,
        }
    }

    /// A group that is one reader's own.
    pub(crate) fn add_own(
        &mut self,
        interest: Interest,
        client: u64,
        topics: &mut Topics,
        number: u64,
    ) -> Found {
        let found = self.add(&Arc::new(interest), client, topics, number);
        if let Found::Group(group) = found {
            self.get_mut(group).is_own = true;
        }
        found
    }

    fn add(&mut self, interest: &Arc<Interest>, client: u64, topics: &mut Topics, number: u64) -> Found {
        if self.len() >= self.groups_max {
            return Found::Full;
        }
        let places = match self.coverings.ask(interest, client, topics) {
            AskedPatterns::Places(places) => places,
            AskedPatterns::Turn(turn) => return Found::Turn(turn),
            AskedPatterns::Full => return Found::Full,
        };
        let group = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() as u32 - 1
        });
        places.iter().for_each(|place| self.coverings.enter(*place, group));
        self.groups[group as usize] = Some(Box::new(Group::new(interest.clone(), places, number)));
        for name in &interest.names {
            self.connect(name, group, topics);
        }
        self.get_mut(group).topics.shrink_to_fit();
        Found::Group(group)
    }

    /// Enters the group at what leads to it by a name.
    fn connect(&mut self, name: &TopicName, group: u32, topics: &mut Topics) {
        match topics.id_of(name) {
            Some(id) => {
                topics.enter(id, group);
                self.get_mut(group).add_topic(id);
            }
            None => {
                self.awaiting.insert((self.hasher.hash_one(name), group));
            }
        }
    }

    fn disconnect(&mut self, name: &TopicName, group: u32, topics: &mut Topics) {
        self.awaiting.remove(&(self.hasher.hash_one(name), group));
        if let Some(id) = topics.id_of(name) {
            topics.leave(id, group);
            if let Some(entry) = self.groups[group as usize].as_mut() {
                entry.remove_topic(id);
            }
        }
    }

    /// A reader's own group asks for more: one name, or one pattern whose turn has come. Whether there is
    /// room.
    pub(crate) fn widen(&mut self, group: u32, channel: &Interest, client: u64, topics: &mut Topics) -> bool {
        let AskedPatterns::Places(places) = self.coverings.ask(channel, client, topics) else { return false };
        places.iter().for_each(|place| self.coverings.enter(*place, group));
        let entry = self.get_mut(group);
        entry.patterns.extend(places);
        entry.patterns.sort_unstable();
        entry.widen(channel);
        for name in &channel.names {
            self.connect(name, group, topics);
        }
        true
    }

    /// A reader's own group asks for less.
    pub(crate) fn narrow(&mut self, group: u32, channel: &Interest, topics: &mut Topics) {
        for name in &channel.names {
            self.disconnect(name, group, topics);
        }
        for pattern in &channel.patterns {
            if let Some(place) = self.coverings.find(pattern) {
                self.get_mut(group).patterns.retain(|own| *own != place);
                self.leave_pattern(place, group);
            }
        }
        self.get_mut(group).narrow(channel);
    }

    fn leave_pattern(&mut self, place: u32, group: u32) {
        if let Some(next) = self.coverings.leave(place, group) {
            self.recharge(next);
        }
    }

    /// The first reader of a group has its account from now on, or more is in it.
    pub(crate) fn recharge(&mut self, group: u32) {
        let entry = self.groups[group as usize].as_ref();
        self.recharged.extend(entry.and_then(|entry| entry.readers.first()));
    }

    /// Connections whose account has become another since this was asked last.
    pub(crate) fn take_recharged(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.recharged)
    }

    /// Bytes that a reader makes the view and the hub hold: the first of a group has the group's account.
    pub(crate) fn held_bytes(&self, reader: &Reader) -> usize {
        let group = self.get(reader.group);
        if reader.place != 0 {
            return 0;
        }
        group.held_bytes() + self.coverings.held_bytes(&group.patterns, reader.group)
    }

    /// Whether a reader's group never holds more than so many bytes, whoever has its account: none of its
    /// patterns lists topics.
    pub(crate) fn is_small(&self, reader: &Reader, bytes_max: usize) -> bool {
        let group = self.get(reader.group);
        let lists_topics = |place: &u32| !self.coverings.covers_all(&[*place]);
        let patterns_bytes = self.coverings.bytes(&group.patterns);
        !group.patterns.iter().any(lists_topics) && group.held_bytes() + patterns_bytes <= bytes_max
    }

    /// Groups that a topic with this name concerns by its name, in order.
    pub(crate) fn groups_of_new_topic(&mut self, name: &TopicName, id: TopicId) -> Vec<u32> {
        let digest = self.hasher.hash_one(name);
        let asks = |group: &u32| self.get(*group).interest.names.binary_search(name).is_ok();
        let awaiting = self.awaiting.range((digest, 0)..=(digest, u32::MAX)).map(|(_, group)| *group);
        let groups: Vec<u32> = awaiting.filter(asks).collect();
        for group in &groups {
            self.awaiting.remove(&(digest, *group));
            self.get_mut(*group).add_topic(id);
        }
        groups
    }

    /// A topic is gone; its groups wait for the next of its name.
    pub(crate) fn forget_topic(&mut self, name: &TopicName, id: TopicId, groups: &[u32]) {
        let digest = self.hasher.hash_one(name);
        for group in groups {
            self.get_mut(*group).remove_topic(id);
            self.awaiting.insert((digest, *group));
        }
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
        if !entry.is_own {
            self.by_interest.remove(&entry.interest);
        }
        entry.topics.iter().for_each(|id| topics.leave(*id, group));
        for name in &entry.interest.names {
            self.awaiting.remove(&(self.hasher.hash_one(name), group));
        }
        for place in &entry.patterns {
            self.leave_pattern(*place, group);
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
            let names = own.names.iter().filter(|name| other.names.binary_search(name).is_err());
            let patterns = own.patterns.iter();
            let patterns = patterns.filter(|pattern| other.patterns.binary_search(pattern).is_err());
            tell(names, patterns, change, requests);
        }
    }

    /// Tells the hub of readers that came or left.
    pub(crate) fn count_readers(&self, interest: &Interest, change: i64, requests: &mut Vec<Request>) {
        tell(interest.names.iter(), interest.patterns.iter(), change, requests);
    }
}

/// What is to be told already is added up.
fn tell<'a>(
    names: impl Iterator<Item = &'a TopicName>,
    patterns: impl Iterator<Item = &'a Pattern>,
    change: i64,
    requests: &mut Vec<Request>,
) {
    for name in names {
        match requests.last_mut() {
            Some(Request::Readers(last, count)) if last == name => *count += change,
            _ => requests.push(Request::Readers(name.clone(), change)),
        }
    }
    for pattern in patterns {
        match requests.last_mut() {
            Some(Request::PatternReaders(last, count)) if last == pattern => *count += change,
            _ => requests.push(Request::PatternReaders(pattern.clone(), change)),
        }
    }
}
