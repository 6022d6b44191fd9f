//! The hub: the one writer.
//!
//! It owns the numbering, every topic's value and ring, and the forms that somebody holds. It must never
//! wait: who owns it gives it publications, requests and the time, and takes a letter for all workers when a
//! batch is over.

mod differing;
mod held_back;
mod holding_back;
mod memory;
mod preparing;
mod publication;
mod readers;
mod settings;
mod shelf;
mod stamping;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use differing::DifferenceMade;
pub use publication::{Accepted, Content, Expected, Publication, PublishFault};
pub use settings::HubSettings;

use crate::encoder::Encoder;
use crate::form::{Form, FormSet};
use crate::letter::{Letter, Made, News, Request, TopicFacts, UpdateKey};
use crate::limits::WORKER_BEHIND_MAX;
use crate::name::TopicName;
use crate::ring::Entry;
use crate::state::{KeptState, KeptUpdate};
use crate::topic::{Kind, TopicId};
use crate::update::Update;
use crate::version::{Epoch, Version};
use held_back::HeldBack;
use memory::{ENTRY_BYTES, Memory, TOPIC_BYTES};
use preparing::Prepared;
use readers::{Counted, Holdings};
use shelf::{Moment, Shelf};

/// The one writer.
pub struct Hub {
    settings: HubSettings,
    epoch: Epoch,
    number: u64,
    /// The time of day in milliseconds since 1970, where updates are stamped.
    wall_ms: u64,
    shelf: Shelf,
    held_back: HeldBack,
    encoder: Encoder,
    holdings: Holdings,
    memory: Memory,
    news: Vec<News>,
}

impl Hub {
    /// A hub without topics, in an epoch that was drawn for it.
    pub fn new(settings: HubSettings, epoch: Epoch) -> Self {
        let holdings = Holdings::new(settings.workers);
        let memory = Memory::new(settings.live_memory_bytes);
        Self {
            settings,
            epoch,
            number: 0,
            wall_ms: 0,
            shelf: Shelf::default(),
            held_back: HeldBack::default(),
            encoder: Encoder::default(),
            holdings,
            memory,
            news: Vec::new(),
        }
    }

    /// A hub with what a store kept. Where the store did not keep the numbering, the epoch is the one drawn.
    pub fn restore(settings: HubSettings, kept: KeptState, drawn: Epoch, now_ms: u64) -> Self {
        let mut hub = Self::new(settings, kept.epoch.unwrap_or(drawn));
        let mut updates: Vec<KeptUpdate> = Vec::new();
        // A topic that was forgotten and begun anew is named by older updates, which other topics still hold.
        let mut held: BTreeSet<(u64, TopicName)> = BTreeSet::new();
        for topic in kept.topics {
            held.extend(topic.updates.iter().map(|update| (update.number, topic.name.clone())));
            let id = hub.topic_of(&topic.name, topic.kind == Kind::Log);
            hub.shelf.begin_behind(UpdateKey { topic: id, number: topic.dropped_to });
            updates.extend(topic.updates);
        }
        updates.sort_unstable_by_key(|update| update.number);
        updates.dedup_by_key(|update| update.number);
        for update in updates {
            hub.number = update.number;
            let number = update.number;
            let mut named = BTreeSet::new();
            let is_held =
                |name: &TopicName| held.contains(&(number, name.clone())) && named.insert(name.clone());
            let known = |name: TopicName| Some((hub.shelf.find(&name)?.0, name));
            let topics: Box<[_]> = update.topics.into_iter().filter(is_held).filter_map(known).collect();
            let hash = hub.hash_of(&topics, &update.value, update.private);
            let update = Arc::new(Update {
                number: update.number,
                topics,
                value: update.value,
                patch: update.patch,
                id: update.id,
                kind: update.kind,
                retry_ms: update.retry_ms,
                private: update.private,
                stamp: update.stamp.or_else(|| hub.stamp_of_kept(number)),
                is_foreign: false,
                hash,
            });
            hub.shelve(&update, &[].into(), now_ms);
        }
        hub.number = hub.number.max(kept.number);
        hub.news.clear();
        hub
    }

    /// The version of the last update.
    pub fn version(&self) -> Version {
        Version { epoch: self.epoch, number: self.number }
    }

    /// How often something was compressed.
    pub fn compressions(&self) -> u64 {
        self.encoder.compressions()
    }

    /// How many topics there are.
    pub fn topics(&self) -> usize {
        self.shelf.len()
    }

    /// Bytes of values, rings and forms. Of the last letter's forms there may be more than is allowed.
    pub fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// A topic's value and its version.
    pub fn value(&self, topic: &TopicName) -> Option<(Version, &Update)> {
        let last = self.shelf.find(topic)?.1.ring.last()?;
        Some((Version { epoch: self.epoch, number: last.update.number }, &last.update))
    }

    /// Whether a worker is so far behind that publishing has to wait.
    pub fn is_held_back(&self) -> bool {
        self.number.saturating_sub(self.holdings.slowest_read_to()) >= WORKER_BEHIND_MAX as u64
    }

    /// Takes a publication: numbers it, or holds it back where a topic's `every_ms` asks for that.
    ///
    /// # Errors
    /// What is wrong with it, or which limit it meets; nothing was changed then.
    pub fn publish(&mut self, mut publication: Publication, now_ms: u64) -> Result<Accepted, PublishFault> {
        publication.name_topics_once();
        self.leave_newer(&mut publication)?;
        let publication = self.onto_held_back(publication)?;
        let prepared = preparing::prepare(&publication, &self.shelf, &self.settings, self.epoch)?;
        self.make_room(&publication, &prepared)?;
        let readers = publication.topics.iter().map(|topic| self.readers_of(topic)).sum();
        let due_ms = self.shelf.due_ms(&publication.topics, now_ms);
        if due_ms.is_some() || !self.held_back.is_empty() {
            let latest = self.topics_of_values(&publication);
            let freed = self.held_back.outdate(&latest);
            self.memory.release(freed);
            if let Some(due_ms) = due_ms {
                let private = prepared.private;
                let publication = Publication { content: prepared.value.into(), private, ..publication };
                let stamp = publication.stamp.or_else(|| self.stamp_of_own(&latest, self.number + 1));
                let bytes = self.held_back.add(publication, stamp, &latest, due_ms);
                self.memory.add(bytes);
                return Ok(Accepted { version: None, readers });
            }
        }
        let version = self.number_it(publication, prepared, now_ms);
        Ok(Accepted { version: Some(version), readers })
    }

    /// Publishes what was held back until now, and forgets topics whose time is over. Gives when to call
    /// again.
    pub fn tick(&mut self, now_ms: u64) -> Option<u64> {
        self.number_held_back(now_ms, now_ms);
        self.holdings.refresh();
        for id in self.shelf.outdated(now_ms, &mut self.holdings) {
            if let Some((name, freed)) = self.shelf.forget(id) {
                self.memory.free(freed);
                self.memory.forget_topic(&name);
            }
            self.news.push(News::Forgotten(UpdateKey { topic: id, number: self.number }));
        }
        self.shelf.next_due_ms().into_iter().chain(self.held_back.next_due_ms()).min()
    }

    /// Takes what a worker asks.
    pub fn request(&mut self, worker: usize, request: Request) {
        match request {
            Request::Hold(form) => self.holdings.hold(worker, form),
            Request::Release(form) => self.holdings.release(worker, form),
            Request::Make(wanted) => {
                self.make(&wanted);
            }
            Request::Readers(name, change) => self.holdings.count(&name, change),
            Request::PatternReaders(pattern, change) => self.holdings.count_pattern(pattern, change),
            Request::Read(number) => self.holdings.read(worker, number),
        }
    }

    /// The letter for all workers, if anything happened since the last one.
    pub fn take_letter(&mut self) -> Option<Letter> {
        self.holdings.refresh();
        if self.news.is_empty() {
            return None;
        }
        let news = std::mem::take(&mut self.news).into();
        self.memory.posted();
        Some(Letter { epoch: self.epoch, news, number: self.number })
    }

    /// All that a view has to know that begins now.
    pub fn introduction(&self) -> Letter {
        let mut news = Vec::new();
        let mut updates: Vec<&Entry> = Vec::new();
        for (id, topic) in self.shelf.in_order() {
            let facts = TopicFacts { id, name: topic.name.clone(), kind: topic.rules.kind };
            news.push(News::Topic(facts));
            updates.extend(topic.ring.after(0));
            if topic.ring.dropped_to() > 0 {
                news.push(News::Dropped(UpdateKey { topic: id, number: topic.ring.dropped_to() }));
            }
        }
        updates.sort_unstable_by_key(|entry| entry.update.number);
        updates.dedup_by_key(|entry| entry.update.number);
        news.extend(updates.iter().map(|entry| News::Update(entry.update.clone(), [].into())));
        Letter { epoch: self.epoch, news: news.into(), number: self.number }
    }

    fn number_it(&mut self, publication: Publication, prepared: Prepared, now_ms: u64) -> Version {
        self.number += 1;
        let number = self.number;
        let topics: Box<[(TopicId, TopicName)]> = publication
            .topics
            .iter()
            .map(|name| (self.topic_of(name, publication.begins_log), name.clone()))
            .collect();
        let hash = self.hash_of(&topics, &prepared.value, prepared.private);
        let update = Arc::new(Update {
            number,
            topics,
            value: prepared.value,
            patch: prepared.patch,
            id: publication.id,
            kind: publication.kind,
            retry_ms: publication.retry_ms,
            private: prepared.private,
            stamp: publication.stamp.or_else(|| self.stamp_of_own(&publication.topics, number)),
            is_foreign: publication.stamp.is_some(),
            hash,
        });
        let made = self.encoder.make(self.epoch, &update, self.holdings.forms());
        self.news.push(News::Update(update.clone(), made.clone()));
        self.shelve(&update, &made, now_ms);
        Version { epoch: self.epoch, number }
    }

    /// Puts an update into the rings of its topics, then drops old updates where a ring or memory is full.
    fn shelve(&mut self, update: &Arc<Update>, made: &Made, now_ms: u64) {
        let moment = Moment { now_ms, age_ms: self.age_ms(update) };
        for (id, _) in &update.topics {
            // A restored update of several topics may have left the ring of one of them before the restart.
            if !self.shelf.holds(UpdateKey { topic: *id, number: update.number }) {
                continue;
            }
            self.let_differences_go(*id);
            let entry = Entry::new(update.clone(), made.clone());
            self.memory.keep(&entry, UpdateKey { topic: *id, number: update.number });
            if let Some((key, freed)) = self.shelf.push(*id, entry, moment) {
                self.memory.free(freed);
                self.news.push(News::Dropped(key));
            }
        }
        self.memory.tidy(&self.shelf);
        self.relieve(0);
        self.let_forms_go();
    }

    /// Makes room for a value that is longer than the one before in any of its topics, or a topic more.
    fn make_room(&mut self, publication: &Publication, prepared: &Prepared) -> Result<(), PublishFault> {
        let growing = prepared.growing_topics;
        let each = ENTRY_BYTES + prepared.bytes() + publication.text_bytes();
        let needed = growing * each + prepared.new_topics * TOPIC_BYTES;
        if growing == 0 || self.relieve(needed) { Ok(()) } else { Err(PublishFault::Memory) }
    }

    /// Lets the oldest updates of rings go until so many bytes more are there; whether they are.
    fn relieve(&mut self, needed: usize) -> bool {
        while self.memory.lacks(needed) {
            let Some(key) = self.memory.relieve(&mut self.shelf) else { return false };
            self.news.push(News::Dropped(key));
        }
        true
    }

    fn topic_of(&mut self, name: &TopicName, begins_log: bool) -> TopicId {
        if let Some((id, _)) = self.shelf.find(name) {
            return id;
        }
        let rules = self.settings.rules_of_new(name, begins_log);
        let kind = rules.kind;
        let id = self.shelf.add(name.clone(), rules);
        self.memory.keep_topic(name);
        self.news.push(News::Topic(TopicFacts { id, name: name.clone(), kind }));
        id
    }

    /// Makes the forms of one delivery, which come with one letter; gives of how many bytes of values they
    /// were made. Where there is no room for them, older forms go, or these with a later letter.
    pub fn make(&mut self, wanted: &[(UpdateKey, Form)]) -> usize {
        let made = wanted.iter().map(|(key, form)| self.make_later(*key, *form)).sum();
        self.memory.tidy(&self.shelf);
        self.let_forms_go();
        made
    }

    /// While more is held than may be: lets forms go that stand in no letter which is still to be posted.
    pub fn let_forms_go(&mut self) {
        while let Some(key) = self.memory.relieve_forms(&mut self.shelf) {
            self.news.push(News::FormsDropped(key));
        }
    }

    fn readers_of(&mut self, name: &TopicName) -> u64 {
        let id = self.shelf.find(name).map(|(id, _)| id);
        match id.and_then(|id| self.shelf.get_mut(id)) {
            Some(topic) => self.holdings.readers_of(name, &mut topic.counted),
            None => self.holdings.readers_of(name, &mut Counted::default()),
        }
    }

    fn make_later(&mut self, key: UpdateKey, form: Form) -> usize {
        let Some(entry) = self.shelf.entry_mut(key) else { return 0 };
        let (mut from_bytes, mut added_bytes) = (0, 0);
        if entry.form(form).is_none() {
            from_bytes = entry.update.value.bytes().len();
            let mut wanted = FormSet::default();
            wanted.insert(if entry.update.patch.is_none() { form.whole() } else { form });
            for (form, bytes) in self.encoder.make(self.epoch, &entry.update, wanted).iter() {
                added_bytes += entry.add_form(*form, bytes.clone());
            }
        }
        if let Some(bytes) = entry.form(form) {
            self.news.push(News::Form(key, form, bytes.clone()));
            self.memory.want(key, added_bytes);
        }
        from_bytes
    }

    /// The kind of a topic, if it exists.
    pub fn kind(&self, topic: &TopicName) -> Option<Kind> {
        self.shelf.find(topic).map(|(_, topic)| topic.rules.kind)
    }
}

#[cfg(test)]
mod tests;
