//! Readers that change what they ask for, channel by channel: those of WebSockets.
//!
//! It owns the step from one group to another. It must never move a reader that is owed something: who is
//! moved stands at the view's number, and lacks nothing before it.
//!
//! Order: `is_owed` says that the reader lacks nothing; `first` gives what the new channel owes; then at once
//! `join` from now on, or `change` by [`crate::Waves`].

use std::sync::Arc;

use super::View;
use crate::catch_up::Batch;
use crate::form::Form;
use crate::group::Moved;
use crate::interest::{Grants, Interest};
use crate::letter::Request;
use crate::name::TopicName;
use crate::reader::{Reader, Start};
use crate::update::Update;

/// What a channel owes at first.
#[derive(Debug)]
pub enum First {
    /// To be sent before anything newer. If it does not reach the view's number there is more behind it.
    Batch(Batch),
    /// Forms have to be made before: ask again when a letter came, and then call [`View::waited`].
    Later,
    /// There are as many groups, or patterns, as may be.
    Full,
}

impl View {
    /// What is owed to somebody who asks for this from a start on. Nobody becomes a reader by it.
    pub fn first(&mut self, interest: &Arc<Interest>, form: Form, start: Start) -> First {
        let Some(group) = self.groups.find_or_add(interest, &mut self.topics, self.number) else {
            return First::Full;
        };
        let batch = self.first_batch(group, form, start);
        self.groups.remove_if_empty(group, &mut self.topics);
        if batch.missing.is_empty() {
            return First::Batch(batch);
        }
        self.count_form(form, true);
        self.requests.push(Request::Make(batch.missing));
        First::Later
    }

    /// What a reader asks for.
    pub fn interest(&self, reader: &Reader) -> Arc<Interest> {
        Arc::clone(&self.groups.get(reader.group).interest)
    }

    /// Whether a reader lacks something of what is known here.
    pub fn is_owed(&self, reader: &Reader) -> bool {
        self.is_behind(reader)
    }

    /// The last updates of a topic behind a number that may be read with these grants, oldest first.
    pub fn history(&self, topic: &TopicName, after: u64, grants: &Grants) -> Vec<&Arc<Update>> {
        let may_read =
            |update: &&Arc<Update>| !update.private || update.topics().any(|topic| grants.cover(topic));
        let Some(topic) = self.topics.find(topic) else { return Vec::new() };
        topic.ring.after(after).map(|entry| &entry.update).filter(may_read).collect()
    }

    /// Puts a reader that is owed nothing into the group of another interest: the reader as it is then, and
    /// who has taken its place in the list. `None` if there are as many groups, or patterns, as may be.
    pub(crate) fn change(
        &mut self,
        slot: u32,
        reader: &Reader,
        interest: &Arc<Interest>,
    ) -> Option<(Reader, Option<Moved>)> {
        debug_assert!(!self.is_behind(reader), "what is owed to a reader would be lost");
        let number = self.number;
        let group = self.groups.find_or_add(interest, &mut self.topics, number)?;
        if group == reader.group {
            return Some((Reader { number, ..*reader }, None));
        }
        self.groups.count_change(reader.group, group, &mut self.requests);
        let place = self.groups.get_mut(group).add(slot);
        let moved = self.groups.get_mut(reader.group).remove(reader.place);
        self.groups.remove_if_empty(reader.group, &mut self.topics);
        Some((Reader { number, group, place, ..*reader }, moved))
    }
}

#[cfg(test)]
mod tests;
