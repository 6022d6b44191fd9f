//! The tables of the file within one write transaction, and what is done to them.
//!
//! It must never change a table but by a letter of the hub, or by its introduction.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use redb::ReadableTable as _;

use super::layout::kind_code;
use super::record;
use crate::letter::{Letter, News};
use crate::name::TopicName;
use crate::topic::{Kind, TopicId};

/// Name and kind of every topic, for letters name a topic by its id alone.
pub(super) type Names = BTreeMap<TopicId, (TopicName, Kind)>;

/// Those that an introduction tells of.
pub(super) fn names(introduction: &Letter) -> Names {
    let named = introduction.news.iter().filter_map(|news| match news {
        News::Topic(topic) => Some((topic.id, (topic.name.clone(), topic.kind))),
        _ => None,
    });
    named.collect()
}

/// The tables of the file, opened in one write transaction.
pub(super) struct Tables<'a> {
    pub(super) facts: redb::Table<'a, &'static str, u64>,
    pub(super) topics: redb::Table<'a, &'static str, (u8, u64)>,
    pub(super) updates: redb::Table<'a, (&'static str, u64), &'static [u8]>,
}

impl Tables<'_> {
    /// Fails if another process has written to the file since this store did, so that no number is given out
    /// twice. Takes the epoch and number this store wrote last; none at the first `agree`. A file that was
    /// removed meanwhile has neither, and passes.
    pub(super) fn check(&self, agreed: Option<(u64, u64)>) -> Result<(), redb::Error> {
        let Some((epoch, number)) = agreed else { return Ok(()) };
        let fact = |name: &str| -> Result<Option<u64>, redb::Error> {
            Ok(self.facts.get(name)?.map(|value| value.value()))
        };
        let is_own = fact("epoch")?.is_none_or(|own| own == epoch);
        if is_own && fact("number")?.is_none_or(|last| last <= number) {
            return Ok(());
        }
        Err(redb::Error::Io(io::Error::other("another server has written to it; restart this one")))
    }

    /// Makes topics and updates those of an introduction: removes what the hub has not, adds what the file
    /// has not. Takes the hub's topics by id.
    pub(super) fn agree(&mut self, introduction: &Letter, names: &Names) -> Result<(), redb::Error> {
        let known: BTreeSet<&str> = names.values().map(|(name, _)| name.as_str()).collect();
        self.topics.retain(|name, _| known.contains(name))?;
        let dropped: BTreeMap<&str, u64> = introduction
            .news
            .iter()
            .filter_map(|news| match news {
                News::Dropped(place) => Some((names.get(&place.topic)?.0.as_str(), place.number)),
                _ => None,
            })
            .collect();
        let left = |name: &str| dropped.get(name).copied().unwrap_or(0);
        let newest = introduction.number;
        self.updates
            .retain(|(name, number), _| known.contains(name) && number > left(name) && number <= newest)?;
        for (name, kind) in names.values() {
            self.topics.insert(name.as_str(), (kind_code(*kind), left(name.as_str())))?;
        }
        for news in introduction.news.iter() {
            let News::Update(update, _) = news else { continue };
            let mut record = None;
            for (_, name) in &update.topics {
                let is_there = self.updates.get((name.as_str(), update.number))?.is_some();
                if !is_there && update.number > left(name.as_str()) {
                    let record = record.get_or_insert_with(|| record::write(update));
                    self.updates.insert((name.as_str(), update.number), &record[..])?;
                }
            }
        }
        self.number(introduction)
    }

    /// Writes a letter; `names` gets the topics that it begins, and loses those that it forgets.
    pub(super) fn write(&mut self, letter: &Letter, names: &mut Names) -> Result<(), redb::Error> {
        let mut dropped: BTreeMap<TopicId, u64> = BTreeMap::new();
        for news in letter.news.iter() {
            if let News::Dropped(place) = news {
                dropped.insert(place.topic, place.number);
            }
        }
        for news in letter.news.iter() {
            match news {
                News::Topic(topic) => {
                    self.topics.insert(topic.name.as_str(), (kind_code(topic.kind), 0))?;
                    names.insert(topic.id, (topic.name.clone(), topic.kind));
                }
                News::Update(update, _) => {
                    let record = record::write(update);
                    // An update that leaves the ring within the same letter is not written at all.
                    let stays = |id| dropped.get(id).is_none_or(|number| *number < update.number);
                    for (_, name) in update.topics.iter().filter(|(id, _)| stays(id)) {
                        self.updates.insert((name.as_str(), update.number), &record[..])?;
                    }
                }
                News::Forgotten(place) => {
                    dropped.remove(&place.topic);
                    if let Some((name, _)) = names.remove(&place.topic) {
                        self.drop_to(name.as_str(), place.number)?;
                        self.topics.remove(name.as_str())?;
                    }
                }
                News::Dropped(_) | News::Form(..) | News::FormsDropped(_) => {}
            }
        }
        for (id, number) in dropped {
            if let Some((name, kind)) = names.get(&id) {
                self.drop_to(name.as_str(), number)?;
                self.topics.insert(name.as_str(), (kind_code(*kind), number))?;
            }
        }
        self.number(letter)
    }

    /// Removes a topic's updates up to a number.
    fn drop_to(&mut self, name: &str, number: u64) -> Result<(), redb::Error> {
        Ok(self.updates.retain_in((name, 0)..=(name, number), |_, _| false)?)
    }

    /// Writes the epoch and the last number.
    fn number(&mut self, letter: &Letter) -> Result<(), redb::Error> {
        self.facts.insert("epoch", letter.epoch.0)?;
        self.facts.insert("number", letter.number)?;
        Ok(())
    }
}
