//! Reads all that the file of the store holds.
//!
//! It must never give half of a file: one record that cannot be read makes the file damaged.

use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable};

use super::fault::StateFault;
use super::layout::{FACTS, FORMAT, TOPICS, UPDATES, kind_of};
use super::record::{self, KeptUpdate};
use crate::name::TopicName;
use crate::topic::Kind;
use crate::version::Epoch;

/// Live data as the store had it when it was opened.
#[derive(Debug, Default)]
pub struct KeptState {
    /// Epoch in which the numbering goes on; none if the last number is not exact, or the store was empty.
    pub epoch: Option<Epoch>,
    /// Last number in the file.
    pub number: u64,
    /// Topics with their rings.
    pub topics: Vec<KeptTopic>,
    /// Number of the owner, if the file's name does not tell whose it is.
    pub(crate) owner: Option<u64>,
    /// New name of a damaged file that was set aside; none if the file was sound.
    pub set_aside: Option<PathBuf>,
}

/// A topic as the store had it.
#[derive(Debug)]
pub struct KeptTopic {
    /// The name of the topic.
    pub name: TopicName,
    /// Kind at the time of writing. A rule of the settings that fits the name counts instead.
    pub kind: Kind,
    /// The number of the last update that left its ring.
    pub(crate) dropped_to: u64,
    /// Updates of its ring, oldest first.
    pub(crate) updates: Vec<KeptUpdate>,
}

/// Reads topics and updates. An empty file gives an empty state; a newer or damaged one is a fault.
pub(super) fn load(database: &Database, path: &Path) -> Result<KeptState, StateFault> {
    let read = || -> Result<Read, redb::Error> {
        let transaction = database.begin_read()?;
        let facts = match transaction.open_table(FACTS) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Read::Empty),
            facts => facts?,
        };
        let fact = |name: &str| -> Result<Option<u64>, redb::Error> {
            Ok(facts.get(name)?.map(|fact| fact.value()))
        };
        match fact("format")? {
            None => return Ok(Read::Empty),
            Some(format) if format > FORMAT => return Ok(Read::Newer(format)),
            Some(_) => {}
        }
        let mut kept = KeptState { number: fact("number")?.unwrap_or(0), ..KeptState::default() };
        kept.owner = fact("owner")?;
        if fact("is_exact")? == Some(1) {
            kept.epoch = fact("epoch")?.map(Epoch);
        }
        for row in transaction.open_table(TOPICS)?.iter()? {
            let (name, facts) = row?;
            match topic(name.value(), facts.value()) {
                Some(topic) => kept.topics.push(topic),
                None => return Ok(Read::Damaged(format!("the topic {:?}", name.value()))),
            }
        }
        for row in transaction.open_table(UPDATES)?.iter()? {
            let (key, bytes) = row?;
            let (name, number) = key.value();
            let place = kept.topics.binary_search_by(|topic| topic.name.as_str().cmp(name));
            match (place, record::read(number, bytes.value())) {
                (Ok(place), Some(update)) => kept.topics[place].updates.push(update),
                _ => return Ok(Read::Damaged(format!("the record {number} of {name:?}"))),
            }
        }
        Ok(Read::Whole(kept))
    };
    match read().map_err(|error| StateFault::of(path, error))? {
        Read::Whole(kept) => Ok(kept),
        Read::Empty => Ok(KeptState::default()),
        Read::Newer(format) => Err(StateFault::newer(path, format)),
        Read::Damaged(what) => Err(StateFault::damaged(path, what)),
    }
}

/// Format and epoch of a file; none of one in which nothing was written.
pub(super) fn facts(database: &Database) -> Result<(Option<u64>, Option<u64>), redb::Error> {
    let facts = match database.begin_read()?.open_table(FACTS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok((None, None)),
        facts => facts?,
    };
    let fact =
        |name: &str| -> Result<Option<u64>, redb::Error> { Ok(facts.get(name)?.map(|fact| fact.value())) };
    Ok((fact("format")?, fact("epoch")?))
}

/// What a file turned out to be.
enum Read {
    Whole(KeptState),
    Empty,
    Newer(u64),
    Damaged(String),
}

/// The topic of a row, without updates; `None` if its kind or name cannot be.
fn topic(name: &str, (kind, dropped_to): (u8, u64)) -> Option<KeptTopic> {
    let kind = kind_of(kind)?;
    let name = TopicName::new(name).or_else(|_| TopicName::of_server(name)).ok()?;
    Some(KeptTopic { name, kind, dropped_to, updates: Vec::new() })
}
