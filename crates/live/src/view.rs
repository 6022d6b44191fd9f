//! A worker's view: what it knows of the hub's topics, and its groups of readers.
//!
//! It owns the groups, and changes what it knows of topics only when it reads a letter. So what a reader gets
//! when it joins, and what it gets by waves from there, have no seam. It must never share anything with
//! another worker that changes.
//!
//! Order: `read` a letter, then `Waves::go` until it has nothing left; `join` and `leave` at any time
//! between.

mod channels;
pub(crate) mod groups;
pub(crate) mod topics;

use std::sync::Arc;

use crate::catch_up::{Batch, CatchUp};
use crate::form::{Form, Shape};
use crate::group::Moved;
use crate::interest::Interest;
use crate::letter::{Letter, News, Request};
use crate::limits::WORKER_BEHIND_MAX;
use crate::name::TopicName;
use crate::reader::{Marks, Reader, Start};
use crate::update::Update;
use crate::version::{Epoch, Version};
pub use channels::First;
use groups::Groups;
use topics::Topics;

/// What a newcomer gets.
#[derive(Debug)]
pub enum Joined {
    /// It is a reader now; the batch is to be sent to it first.
    Reader(Reader, Batch),
    /// Forms have to be made before: post the requests to the hub, join again when a letter came, and then
    /// call [`View::waited`]. Until then the hub makes the form for every update.
    Later,
    /// There are as many groups, or patterns, as may be: 503.
    Full,
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
                    let groups = self.groups.groups_of_new_topic(&facts.name);
                    groups.iter().for_each(|group| self.groups.get_mut(*group).add_topic(facts.id));
                    self.topics.add(facts, groups);
                }
                News::Update(update, made) => {
                    self.number = self.number.max(update.number);
                    for group in self.topics.push(update, made) {
                        self.groups.mark(group, update.number);
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
    }

    fn forget(&mut self, id: crate::topic::TopicId) {
        let Some(topic) = self.topics.forget(id) else { return };
        for group in topic.groups {
            self.groups.get_mut(group).remove_topic(id);
            self.groups.await_name(&topic.name, group);
        }
    }

    /// Makes a reader of a connection. What it is owed up to now is in the batch; from there it is served by
    /// waves.
    pub fn join(
        &mut self,
        slot: u32,
        interest: &Arc<Interest>,
        form: Form,
        start: Start,
        marks: Marks,
        generation: u32,
    ) -> Joined {
        let Some(group) = self.groups.find_or_add(interest, &mut self.topics, self.number) else {
            return Joined::Full;
        };
        let batch = self.first_batch(group, form, start);
        if !batch.missing.is_empty() {
            self.count_form(form, true);
            self.requests.push(Request::Make(batch.missing));
            self.groups.remove_if_empty(group, &mut self.topics);
            return Joined::Later;
        }
        self.count_form(form, true);
        self.groups.count_readers(group, 1, &mut self.requests);
        let place = self.groups.get_mut(group).add(slot);
        let number = batch.number;
        let reader = Reader { number, group, place, generation, written_at_s: 0, form, marks };
        if number < self.number {
            self.groups.mark_again(group);
        }
        Joined::Reader(reader, batch)
    }

    fn first_batch(&mut self, group: u32, form: Form, start: Start) -> Batch {
        // Another worker may be ahead of this one: who comes from there waits for what it has not seen, and
        // is not sent back. No worker is further behind than the hub lets it be.
        let ahead_max = 2 * WORKER_BEHIND_MAX as u64;
        let known =
            |version: Version| version.epoch == self.epoch && version.number <= self.number + ahead_max;
        let (from, is_fresh) = match start {
            // Who wants differences needs the value they are differences from.
            Start::Now if form.shape() != Shape::Patch => (self.number, true),
            Start::After(version) if known(version) => (version.number, false),
            Start::After(_) => {
                self.unknown_versions += 1;
                (0, true)
            }
            Start::Now | Start::Values | Start::Snapshot => (0, true),
        };
        let skips_logs = start == Start::Values;
        self.batch(group, CatchUp { from, to: self.number, form, is_fresh, skips_logs })
    }

    /// What a group's reader is owed. Looks at its topics, or at what happened lately, whichever is less.
    pub(crate) fn batch(&self, group: u32, catch_up: CatchUp) -> Batch {
        let group_of = self.groups.get(group);
        match self.topics.moved_since(catch_up.from, group_of.topics.len()) {
            Some(moved) => {
                let concerns = |id: &crate::topic::TopicId| group_of.topics.binary_search(id).is_ok();
                let mut moved: Vec<_> = moved.filter(concerns).collect();
                moved.sort_unstable();
                moved.dedup();
                catch_up.collect(group_of, &self.topics, moved.into_iter())
            }
            None => catch_up.collect(group_of, &self.topics, group_of.topics.iter().copied()),
        }
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
    pub fn waited(&mut self, form: Form) {
        self.count_form(form, false);
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
        self.groups.count_readers(reader.group, -1, &mut self.requests);
        let moved = self.groups.get_mut(reader.group).remove(reader.place);
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
