//! A worker's view: what it knows of the hub's topics, and its groups of readers.
//!
//! It owns the groups, and changes what it knows of topics only when it reads a letter. So what a reader gets
//! when it joins, and what it gets by waves from there, have no seam. It must never share anything with
//! another worker that changes.
//!
//! Order: `read` a letter, then `Waves::go` until it has nothing left; `join` and `leave` at any time
//! between.

mod channels;
mod covering;
pub(crate) mod groups;
pub(crate) mod topics;

use std::sync::Arc;

use staunch_dictionary::Hash;

use crate::catch_up::{Batch, CatchUp};
use crate::form::{Form, Shape};
use crate::group::{Group, Moved};
use crate::interest::{Grants, Interest};
use crate::letter::{Letter, News, Request};
use crate::limits::{DIFFERENCES_PER_UPDATE_MAX, WORKER_BEHIND_MAX};
use crate::name::TopicName;
use crate::reader::{Marks, Reader, Start};
use crate::topic::TopicId;
use crate::update::Update;
use crate::version::{Epoch, Version};
pub use channels::First;
use groups::{Found, Groups};
use topics::{Topics, ViewTopic};

/// What a newcomer gets.
#[derive(Debug)]
pub enum Joined {
    /// The asker is a reader now; the batch is to be sent to it first.
    Reader(Reader, Batch),
    /// Something has to be done before: post the requests to the hub, join again when that is done, and then
    /// call [`View::waited`]. Until then the hub makes the form for every update, and the view keeps the
    /// patterns.
    Later(Awaited),
    /// There are as many groups, or patterns, as may be: 503.
    Full,
}

/// What a newcomer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Forms, which the hub makes: the next letter.
    Letter,
    /// Its patterns are compared with the topics: until [`View::compared_to`] is at least this.
    Turn(u64),
}

/// A worker's view.
pub struct View {
    epoch: Epoch,
    number: u64,
    topics: Topics,
    pub(crate) groups: Groups,
    /// How many readers have each form.
    forms: [u32; Form::COUNT],
    requests: Vec<Request>,
    letters: u64,
    /// Groups with readers for which forms are being made: they are looked at again with the next letter, for
    /// what was asked may be gone meanwhile.
    awaiting_forms: Vec<u32>,
    /// Readers that were given a snapshot because their version was not of this epoch, or from the future.
    unknown_versions: u64,
}

impl View {
    /// A view of nothing; the hub's introduction is its first letter.
    pub fn new(epoch: Epoch, groups_max: usize) -> Self {
        Self {
            epoch,
            number: 0,
            topics: Topics::default(),
            groups: Groups::new(groups_max),
            forms: [0; Form::COUNT],
            requests: Vec::new(),
            letters: 0,
            awaiting_forms: Vec::new(),
            unknown_versions: 0,
        }
    }

    /// The version of the last update it knows.
    pub fn version(&self) -> Version {
        Version { epoch: self.epoch, number: self.number }
    }

    /// Readers of all groups.
    pub fn readers(&self) -> u64 {
        self.forms.iter().map(|count| u64::from(*count)).sum()
    }

    /// Readers whose version was unknown.
    pub fn unknown_versions(&self) -> u64 {
        self.unknown_versions
    }

    /// The last update of a topic.
    pub fn last(&self, topic: &TopicName) -> Option<&Arc<Update>> {
        self.topics.find(topic)?.ring.last().map(|entry| &entry.update)
    }

    /// The number of the latest update of a topic whose value has this hash, of the last
    /// [`DIFFERENCES_PER_UPDATE_MAX`] that may be told as differences.
    pub fn number_of_hash(&self, topic: &TopicName, hash: &Hash) -> Option<u64> {
        let mut latest = self.topics.find(topic)?.ring.latest().take(DIFFERENCES_PER_UPDATE_MAX);
        let found = latest.find(|entry| entry.update.hash.as_deref() == Some(hash))?;
        Some(found.update.number)
    }

    /// The number of the update that its publisher called so, in a topic's ring, if it may be read.
    pub fn number_of_id(
        &self,
        topic: &TopicName,
        id: &str,
        may_read: impl Fn(&Update) -> bool,
    ) -> Option<u64> {
        self.topics.find(topic)?.ring.find_id(id, may_read)
    }

    #[cfg(test)]
    pub(crate) fn dropped_to(&self, topic: &str) -> u64 {
        let name = TopicName::new(topic).ok();
        name.and_then(|name| self.topics.find(&name)).map_or(0, |topic| topic.ring.dropped_to())
    }

    /// Takes what the view asks of the hub.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// Reads a letter of the hub. The groups it concerns begin a round.
    pub fn read(&mut self, letter: &Letter) {
        debug_assert_eq!(letter.epoch, self.epoch);
        self.letters += 1;
        for news in letter.news.iter() {
            match news {
                News::Topic(facts) => {
                    let groups = self.groups.groups_of_new_topic(&facts.name, facts.id);
                    let patterns = self.groups.coverings.of_new_topic(&facts.name, facts.id);
                    self.topics.add(facts, groups, patterns);
                }
                News::Update(update, made) => {
                    self.number = self.number.max(update.number);
                    for id in self.topics.push(update, made) {
                        self.mark(id, update.number);
                    }
                }
                News::Dropped(place) => self.topics.drop_to(*place),
                News::Forgotten(place) => self.forget(place.topic),
                News::Form(place, form, bytes) => self.topics.add_form(*place, *form, bytes),
                News::FormsDropped(place) => self.topics.drop_forms(*place),
            }
        }
        for group in std::mem::take(&mut self.awaiting_forms) {
            self.groups.mark_again(group);
        }
        self.number = self.number.max(letter.number);
        self.requests.push(Request::Read(self.number));
        self.step();
    }

    /// The groups that a topic concerns begin a round.
    fn mark(&mut self, id: TopicId, number: u64) {
        let Some(topic) = self.topics.get(id) else { return };
        let mut groups = topic.groups.clone();
        groups.extend(self.groups.coverings.groups(&topic.patterns));
        groups.into_iter().for_each(|group| self.groups.mark(group, number));
    }

    fn forget(&mut self, id: TopicId) {
        let Some(topic) = self.topics.forget(id) else { return };
        self.groups.forget_topic(&topic.name, id, &topic.groups);
        self.groups.coverings.forget(&topic.patterns, id);
    }

    /// Goes on comparing patterns with topics for a while: to be called by mail while [`View::has_work`].
    /// Reading a letter does it as well.
    pub fn step(&mut self) {
        self.groups.coverings.step(&mut self.topics);
    }

    /// Whether there is something for `step` to do.
    pub fn has_work(&self) -> bool {
        self.groups.coverings.has_work()
    }

    /// Those who wait for a turn up to this one may join.
    pub fn compared_to(&self) -> u64 {
        self.groups.coverings.compared_to()
    }

    /// What comparing patterns with topics has taken so far: 1 for a comparison, and more for long ones.
    pub fn work(&self) -> u64 {
        self.groups.coverings.work()
    }

    /// Bytes that a reader makes the view and the hub hold. What a group holds is in the account of its first
    /// reader.
    pub fn held_bytes(&self, reader: &Reader) -> usize {
        self.groups.held_bytes(reader)
    }

    /// Whether what a reader's group holds is never more than so many bytes, whoever has its account.
    pub fn is_small(&self, reader: &Reader, bytes_max: usize) -> bool {
        self.groups.is_small(reader, bytes_max)
    }

    /// Connections whose readers hold more than when [`View::held_bytes`] was asked last.
    pub fn take_recharged(&mut self) -> Vec<u32> {
        self.groups.take_recharged()
    }

    /// Makes a reader of a connection, for a client by whose number patterns are shared out. What it is owed
    /// up to now is in the batch; from there it is served by waves.
    pub fn join(
        &mut self,
        slot: u32,
        (interest, client): (&Arc<Interest>, u64),
        form: Form,
        start: Start,
        marks: Marks,
        generation: u32,
    ) -> Joined {
        let group = match self.groups.find_or_add(interest, client, &mut self.topics, self.number) {
            Found::Group(group) => group,
            Found::Turn(turn) => return Joined::Later(self.wait(interest, form, Awaited::Turn(turn))),
            Found::Full => return Joined::Full,
        };
        let catch_up = self.beginning(form, start);
        let batch = self.batch(group, catch_up);
        if !batch.missing.is_empty() {
            self.requests.push(Request::Make(batch.missing));
            let awaited = self.wait(interest, form, Awaited::Letter);
            self.groups.remove_if_empty(group, &mut self.topics);
            return Joined::Later(awaited);
        }
        self.count_form(form, true);
        self.groups.count_readers(interest, 1, &mut self.requests);
        let place = self.groups.get_mut(group).add(slot);
        let number = batch.number;
        let reader = Reader { number, group, place, generation, written_at_s: 0, form, marks };
        if number < self.number {
            self.groups.mark_again(group);
        }
        Joined::Reader(reader, batch)
    }

    /// Begins the waiting that [`View::waited`] ends.
    fn wait(&mut self, interest: &Interest, form: Form, awaited: Awaited) -> Awaited {
        self.count_form(form, true);
        self.groups.coverings.hold(interest);
        awaited
    }

    fn beginning(&mut self, form: Form, start: Start) -> CatchUp {
        // Another worker may be ahead of this one: who comes from there waits for what it has not seen, and
        // is not sent back. No worker is further behind than the hub lets it be.
        let ahead_max = 2 * WORKER_BEHIND_MAX as u64;
        let known =
            |version: Version| version.epoch == self.epoch && version.number <= self.number + ahead_max;
        let (from, is_fresh) = match start {
            // A reader of differences needs the value they are differences from.
            Start::Now if form.shape() != Shape::Patch => (self.number, true),
            Start::After(version) if known(version) => (version.number, false),
            Start::After(_) => {
                self.unknown_versions += 1;
                (0, true)
            }
            Start::Now | Start::Values | Start::Snapshot => (0, true),
        };
        let skips_logs = start == Start::Values;
        CatchUp { from, to: self.number, form, is_fresh, skips_logs }
    }

    /// What a group's reader is owed.
    pub(crate) fn batch(&self, group: u32, catch_up: CatchUp) -> Batch {
        let Group { interest, topics, patterns, .. } = self.groups.get(group);
        self.collect(topics, patterns, &interest.grants, catch_up)
    }

    /// What is owed of topics, and of those that patterns cover. Looks at all of them, or at what happened
    /// lately, whichever is less.
    fn collect(&self, topics: &[TopicId], patterns: &[u32], grants: &Grants, catch_up: CatchUp) -> Batch {
        let coverings = &self.groups.coverings;
        let has_all = coverings.covers_all(patterns);
        let count = if has_all { self.topics.len() } else { topics.len() + coverings.topics_count(patterns) };
        let is_covered =
            |topic: &ViewTopic| topic.patterns.iter().any(|own| patterns.binary_search(own).is_ok());
        let concerns = |id: &TopicId| {
            has_all || topics.binary_search(id).is_ok() || self.topics.get(*id).is_some_and(is_covered)
        };
        let mut concerned: Vec<TopicId> = match self.topics.moved_since(catch_up.from, count) {
            Some(moved) => moved.filter(concerns).collect(),
            None if has_all => self.topics.ids().collect(),
            None if patterns.is_empty() => {
                return catch_up.collect(grants, &self.topics, topics.iter().copied());
            }
            None => topics.iter().copied().chain(coverings.topics(patterns)).collect(),
        };
        concerned.sort_unstable();
        concerned.dedup();
        catch_up.collect(grants, &self.topics, concerned.into_iter())
    }

    /// What a reader is owed now.
    pub(crate) fn owed(&self, reader: &Reader) -> Batch {
        let (from, form) = (reader.number, reader.form);
        let catch_up = CatchUp { from, to: self.number, form, is_fresh: false, skips_logs: false };
        self.batch(reader.group, catch_up)
    }

    /// Whether something may be owed to a reader.
    pub(crate) fn is_behind(&self, reader: &Reader) -> bool {
        reader.number < self.groups.get(reader.group).number
    }

    /// Asks the hub for forms that readers have and updates lack.
    pub(crate) fn ask(&mut self, group: u32, batch: &mut Batch) {
        self.awaiting_forms.push(group);
        self.requests.push(Request::Make(std::mem::take(&mut batch.missing)));
    }

    /// Ends the waiting that [`Joined::Later`] began: to be called after the connection has joined again, or
    /// when it is gone.
    pub fn waited(&mut self, interest: &Interest, form: Form) {
        self.count_form(form, false);
        self.groups.coverings.release(interest);
    }

    /// Changes with every letter, and with every group that is gone: what was made of the view before counts
    /// no more.
    pub(crate) fn edition(&self) -> (u64, u64) {
        (self.letters, self.groups.removed())
    }

    /// Takes a reader out. The connection that has taken its place in the list has to be told by
    /// [`Reader::moved_to`], and looked at if the wave has passed that place: both is done by `Waves::leave`.
    pub(crate) fn leave(&mut self, reader: &Reader) -> Option<Moved> {
        self.count_form(reader.form, false);
        let interest = Arc::clone(&self.groups.get(reader.group).interest);
        self.groups.count_readers(&interest, -1, &mut self.requests);
        self.step_out(reader)
    }

    /// Takes a reader from its group's list.
    fn step_out(&mut self, reader: &Reader) -> Option<Moved> {
        let moved = self.groups.get_mut(reader.group).remove(reader.place);
        if reader.place == 0 {
            self.groups.recharge(reader.group);
        }
        self.groups.remove_if_empty(reader.group, &mut self.topics);
        moved
    }

    fn count_form(&mut self, form: Form, more: bool) {
        let count = &mut self.forms[form.index()];
        let before = *count;
        *count = if more { before + 1 } else { before.saturating_sub(1) };
        match (before, *count) {
            (0, 1) => self.requests.push(Request::Hold(form)),
            (1, 0) => self.requests.push(Request::Release(form)),
            _ => {}
        }
    }
}

impl Reader {
    /// The reader's place in its group's list is another one now.
    pub(crate) fn moved_to(&mut self, place: u32) {
        self.place = place;
    }
}

#[cfg(test)]
mod tests;
