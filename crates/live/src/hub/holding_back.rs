//! What the hub does with publications that came too early for a topic with `every`.
//!
//! It must never let one that was held back follow a newer value.

use super::publication::{Content, Publication, PublishFault};
use super::{Hub, preparing};
use crate::name::TopicName;
use crate::topic::Kind;
use crate::update::Value;

impl Hub {
    /// Publishes all that is held back before its time: it would be lost with this hub.
    pub fn publish_held_back(&mut self, now_ms: u64) {
        self.number_held_back(u64::MAX, now_ms);
    }

    pub(super) fn number_held_back(&mut self, due_to_ms: u64, now_ms: u64) {
        let (due, freed) = self.held_back.take_due(due_to_ms);
        self.memory.release(freed);
        for mut publication in due {
            // What changed meanwhile may make it wrong, as a condition; then it is outdated.
            let prepared = self
                .leave_newer(&mut publication)
                .and_then(|()| preparing::prepare(&publication, &self.shelf, &self.settings, self.epoch));
            if let Ok(prepared) = prepared {
                self.number_it(publication, prepared, now_ms);
            }
        }
    }

    /// A patch of a value that is held back as that value with the patch: what it changes is not lost with
    /// the one that is outdated by it.
    pub(super) fn onto_held_back(&self, publication: Publication) -> Result<Publication, PublishFault> {
        let held = publication.topics.first().and_then(|topic| self.held_back.content(topic));
        match (&publication.content, held) {
            (Content::Patch(patch), Some((Content::Whole(value), private))) => {
                let value = preparing::patched(value, patch)?;
                let private = publication.private || private;
                Ok(Publication { content: Content::Whole(Value::Json(value)), private, ..publication })
            }
            (Content::Patch(_), Some(_)) => Err(PublishFault::NothingToPatch),
            (Content::Gone, Some((_, true))) => Ok(Publication { private: true, ..publication }),
            _ => Ok(publication),
        }
    }

    /// Those topics of a publication of which the latest value counts.
    pub(super) fn topics_of_values(&self, publication: &Publication) -> Vec<TopicName> {
        let is_log = |name: &&TopicName| {
            let new_kind = || self.settings.rules_of_new(name, publication.begins_log).kind;
            self.kind(name).unwrap_or_else(new_kind) == Kind::Log
        };
        publication.topics.iter().filter(|name| !is_log(name)).cloned().collect()
    }
}
