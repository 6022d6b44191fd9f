//! Publications that came too early for a topic with `every`, until their time has come.
//!
//! It owns which of them still counts: of each topic that is no log the latest. The hub numbers them.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt as _};

use super::publication::{Content, Publication};
use crate::name::TopicName;
use crate::stamp::UpdateStamp;

/// What a publication costs beside its value and names, roughly.
const HELD_BYTES: usize = size_of::<Held>() + 96;

/// Publications that wait until their time has come.
#[derive(Debug)]
pub(crate) struct HeldBack {
    /// In the order in which they came.
    publications: BTreeMap<u64, Held>,
    /// Which of them has the latest value of a topic; none for logs.
    latest: HashMap<TopicName, u64>,
    count: u64,
}

#[derive(Debug)]
struct Held {
    due_ms: u64,
    bytes: usize,
    /// Its place among the updates of all nodes, where there are others: an own one as if it were numbered
    /// now.
    stamp: Option<UpdateStamp>,
    publication: Publication,
}

impl Default for HeldBack {
    fn default() -> Self {
        Self { publications: BTreeMap::new(), latest: HashMap::new(), count: 0 }
    }
}

impl HeldBack {
    /// Whether nothing is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.publications.is_empty()
    }

    /// Holds a publication back; gives the bytes that are held for it. `latest` are those of its topics of
    /// which the latest value counts, and [`HeldBack::outdate`] was called for them.
    pub(crate) fn add(
        &mut self,
        publication: Publication,
        stamp: Option<UpdateStamp>,
        latest: &[TopicName],
        due_ms: u64,
    ) -> usize {
        let bytes = HELD_BYTES + publication.bytes();
        self.count += 1;
        self.latest.extend(latest.iter().map(|topic| (topic.clone(), self.count)));
        self.publications.insert(self.count, Held { due_ms, bytes, stamp, publication });
        bytes
    }

    /// A newer value comes for these topics: what is held back for them counts no more. Gives the bytes that
    /// were held for it.
    pub(crate) fn outdate(&mut self, topics: &[TopicName]) -> usize {
        let mut freed = 0;
        for topic in topics {
            let Some(place) = self.latest.remove(topic) else { continue };
            let Some(held) = self.publications.get_mut(&place) else { continue };
            held.publication.topics.retain(|own| own != topic);
            if held.publication.topics.is_empty() {
                freed += held.bytes;
                self.publications.remove(&place);
            }
        }
        freed
    }

    /// What is held back as the latest of a topic, and whether it is private.
    pub(crate) fn content(&self, topic: &TopicName) -> Option<(&Content, bool)> {
        let held = &self.publications.get(self.latest.get(topic)?)?.publication;
        Some((&held.content, held.private))
    }

    /// The stamp of what is held back as the latest of a topic.
    pub(crate) fn stamp(&self, topic: &TopicName) -> Option<UpdateStamp> {
        self.publications.get(self.latest.get(topic)?)?.stamp
    }

    /// Publications whose time has come, in the order in which they came, and the bytes that were held.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> (Vec<Publication>, usize) {
        let is_due = |(_, held): &(&u64, &Held)| held.due_ms <= now_ms;
        let places: Vec<u64> = self.publications.iter().filter(is_due).map(|(place, _)| *place).collect();
        let (mut due, mut freed) = (Vec::new(), 0);
        for place in places {
            let Some(held) = self.publications.remove(&place) else { continue };
            for topic in &held.publication.topics {
                if self.latest.get(topic) == Some(&place) {
                    self.latest.remove(topic);
                }
            }
            freed += held.bytes;
            due.push(held.publication);
        }
        (due, freed)
    }

    /// When the next one is due.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.publications.values().map(|held| held.due_ms).min()
    }
}
