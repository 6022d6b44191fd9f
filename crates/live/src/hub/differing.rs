//! Values as differences to the values before them: which may be told so, and each made once.
//!
//! This module owns the bounds of the differences that readers ask for. It must never tell one of a private
//! value, nor from it: it would tell whether a guess of that is right.

use staunch_dictionary::{Hash, level_for, make};

use super::Hub;
use crate::letter::UpdateKey;
use crate::limits::{DIFFERENCE_VALUE_BYTES_MAX, DIFFERENCE_VALUE_BYTES_MIN};
use crate::name::TopicName;
use crate::ring::{Entry, Freed};
use crate::topic::TopicId;
use crate::update::{Bytes, Value};

/// The outcome of a wish for a difference.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DifferenceMade {
    /// The body of an answer, with its head (RFC 9842, section 4); none if the value is to be sent otherwise.
    pub body: Option<Bytes>,
    /// Bytes of the values that were gone through for it: none where it was made before.
    pub of_bytes: usize,
}

impl Hub {
    /// The value of a topic, if it is still that of update `number`, as the difference to that of update
    /// `from`, if the ring still has that.
    pub fn difference(&mut self, topic: &TopicName, number: u64, from: u64) -> DifferenceMade {
        let nothing = DifferenceMade::default();
        let Some((id, topic)) = self.shelf.find(topic) else { return nothing };
        let Some(last) = topic.ring.last().filter(|last| last.update.number == number) else {
            return nothing;
        };
        if let Some(made) = last.differences().and_then(|differences| differences.find(from)) {
            return DifferenceMade { body: made.body.clone(), of_bytes: 0 };
        }
        let former = topic.ring.after(from.saturating_sub(1)).next();
        let Some(former) = former.filter(|former| former.update.number == from) else { return nothing };
        let (Some(hash), true) = (&former.update.hash, last.update.hash.is_some()) else { return nothing };
        let [before, now] = [former, last].map(|entry| entry.update.value.bytes());
        let of_bytes = before.len() + now.len();
        let has_room = last.differences().is_none_or(|differences| differences.has_room(of_bytes));
        if !has_room || self.memory.is_full() {
            return nothing;
        }
        let body: Option<Bytes> = make(before, hash, now, level_for(now.len())).map(Into::into);
        let key = UpdateKey { topic: id, number };
        if let Some(entry) = self.shelf.entry_mut(key) {
            let added = entry.add_difference(from, of_bytes, body.clone());
            self.memory.want(key, added);
        }
        DifferenceMade { body, of_bytes }
    }

    /// The hash of a value that later ones may be told as differences to.
    pub(super) fn hash_of(
        &self,
        topics: &[(TopicId, TopicName)],
        value: &Value,
        is_private: bool,
    ) -> Option<Box<Hash>> {
        let has_rule = |id: &TopicId| self.shelf.get(*id).is_some_and(|topic| topic.rules.dictionary);
        let fits = (DIFFERENCE_VALUE_BYTES_MIN..=DIFFERENCE_VALUE_BYTES_MAX).contains(&value.bytes().len());
        let is_told = fits && !is_private && topics.iter().any(|(id, _)| has_rule(id));
        is_told.then(|| Box::new(Hash::of(value.bytes())))
    }

    /// A topic is about to have another value: nobody asks for the differences that lead to the one so far.
    pub(super) fn let_differences_go(&mut self, id: TopicId) {
        let last = self.shelf.get_mut(id).and_then(|topic| topic.ring.last_mut());
        let forms = last.map_or(0, Entry::drop_differences);
        self.memory.free(Freed { updates: 0, forms });
    }
}
