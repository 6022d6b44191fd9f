//! Readers that change what they ask for, channel by channel: those of WebSockets.
//!
//! It owns the step from one group to another. It must never move a reader that is owed something: who is
//! moved stands at the view's number, and lacks nothing before it.
//!
//! Order: `is_owed` says that the reader lacks nothing; `first` gives what the new channel owes; then at once
//! `join` from now on, or `widen` by [`crate::Waves`].

use std::sync::Arc;

use super::covering::AskedPatterns;
use super::groups::Found;
use super::{Awaited, View};
use crate::catch_up::Batch;
use crate::form::Form;
use crate::group::Moved;
use crate::interest::{Grants, Interest};
use crate::letter::Request;
use crate::limits::SHARED_INTERESTS_MAX;
use crate::name::TopicName;
use crate::reader::{Reader, Start};
use crate::topic::TopicId;
use crate::update::Update;

/// What a channel owes at first.
#[derive(Debug)]
pub enum First {
    /// To be sent before anything newer. If it does not reach the view's number there is more behind it.
    Batch(Batch),
    /// Something has to be done before: ask again when it is, and then call [`View::waited`].
    Later(Awaited),
    /// There are as many patterns as may be.
    Full,
}

/// A reader as it is behind a change, and who has taken its place in the list that it has left.
type Changed = (Reader, Option<Moved>);

impl View {
    /// What is owed to somebody who asks for this from a start on. Nobody becomes a reader by it.
    pub fn first(&mut self, (interest, client): (&Interest, u64), form: Form, start: Start) -> First {
        let places = match self.groups.coverings.ask(interest, client, &mut self.topics) {
            AskedPatterns::Places(places) => places,
            AskedPatterns::Turn(turn) => return First::Later(self.wait(interest, form, Awaited::Turn(turn))),
            AskedPatterns::Full => return First::Full,
        };
        let mut ids: Vec<TopicId> =
            interest.names.iter().filter_map(|name| self.topics.id_of(name)).collect();
        ids.sort_unstable();
        let catch_up = self.beginning(form, start);
        let batch = self.collect(&ids, &places, &interest.grants, catch_up);
        if batch.missing.is_empty() {
            return First::Batch(batch);
        }
        self.requests.push(Request::Make(batch.missing));
        First::Later(self.wait(interest, form, Awaited::Letter))
    }

    /// Whether a reader asks for all of this.
    pub fn reads(&self, reader: &Reader, channel: &Interest) -> bool {
        self.groups.get(reader.group).interest.includes(channel)
    }

    /// How many names and patterns a reader asks for, and how many of them are patterns.
    pub fn counts(&self, reader: &Reader) -> (usize, usize) {
        let interest = &self.groups.get(reader.group).interest;
        (interest.count(), interest.patterns_count())
    }

    /// Whether a reader lacks something of what is known here.
    pub fn is_owed(&self, reader: &Reader) -> bool {
        self.is_behind(reader)
    }

    /// The last updates of a topic behind a number that may be read with these grants, oldest first.
    pub fn history(&self, topic: &TopicName, after: u64, grants: &Grants) -> Vec<&Arc<Update>> {
        let Some(topic) = self.topics.find(topic) else { return Vec::new() };
        let updates = topic.ring.after(after).map(|entry| &entry.update);
        updates.filter(|update| grants.may_read(update)).collect()
    }

    /// A reader that is owed nothing asks for one channel more, which owes nothing any more. `None` if there
    /// is no room.
    pub(crate) fn widen(
        &mut self,
        slot: u32,
        reader: &Reader,
        (channel, client): (&Interest, u64),
    ) -> Option<Changed> {
        debug_assert!(!self.is_behind(reader), "what is owed to a reader would be lost");
        let group = self.groups.get(reader.group);
        if group.is_own {
            if !self.groups.widen(reader.group, channel, client, &mut self.topics) {
                return None;
            }
            self.groups.count_readers(channel, 1, &mut self.requests);
            return Some((Reader { number: self.number, ..*reader }, None));
        }
        let wider = group.interest.with(channel);
        if wider.count() <= SHARED_INTERESTS_MAX {
            return self.change(slot, reader, (&Arc::new(wider), client));
        }
        let found = self.groups.add_own(wider, client, &mut self.topics, self.number);
        self.move_to(slot, reader, found)
    }

    /// A reader that is owed nothing asks for one channel less; something is left. `None` if there is no
    /// room.
    pub(crate) fn narrow(
        &mut self,
        slot: u32,
        reader: &Reader,
        (channel, client): (&Interest, u64),
    ) -> Option<Changed> {
        debug_assert!(!self.is_behind(reader), "what is owed to a reader would be lost");
        let group = self.groups.get(reader.group);
        if group.is_own {
            self.groups.count_readers(channel, -1, &mut self.requests);
            self.groups.narrow(reader.group, channel, &mut self.topics);
            return Some((*reader, None));
        }
        let left = group.interest.without(channel)?;
        self.change(slot, reader, (&Arc::new(left), client))
    }

    /// A reader that is owed nothing has other grants. `None` if there is no room.
    pub(crate) fn grant(
        &mut self,
        slot: u32,
        reader: &Reader,
        (grants, client): (Grants, u64),
    ) -> Option<Changed> {
        let group = self.groups.get_mut(reader.group);
        if group.is_own {
            Arc::make_mut(&mut group.interest).grants = grants;
            return Some((*reader, None));
        }
        let granted = group.interest.granted(grants);
        self.change(slot, reader, (&Arc::new(granted), client))
    }

    /// Puts a reader into the group of another interest.
    fn change(
        &mut self,
        slot: u32,
        reader: &Reader,
        (interest, client): (&Arc<Interest>, u64),
    ) -> Option<Changed> {
        let found = self.groups.find_or_add(interest, client, &mut self.topics, self.number);
        self.move_to(slot, reader, found)
    }

    fn move_to(&mut self, slot: u32, reader: &Reader, found: Found) -> Option<Changed> {
        let Found::Group(group) = found else { return None };
        let number = self.number;
        if group == reader.group {
            return Some((Reader { number, ..*reader }, None));
        }
        self.groups.count_change(reader.group, group, &mut self.requests);
        let place = self.groups.get_mut(group).add(slot);
        let moved = self.step_out(reader);
        Some((Reader { number, group, place, ..*reader }, moved))
    }
}

#[cfg(test)]
mod tests;
