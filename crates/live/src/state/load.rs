//! What a file has, read as a whole.
//!
//! It must never give half of a file: what cannot be read makes all of it damaged.

use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable};

use super::fault::StateFault;
use super::layout::{FACTS, FORMAT, TOPICS, UPDATES};
use super::record::{self, KeptUpdate};
use crate::name::TopicName;
use crate::topic::Kind;
use crate::version::Epoch;

/// What was kept.
#[derive(Debug, Default)]
pub struct KeptState {
    /// The numbering goes on; none where it is not known how far it went, or nothing was kept.
    pub epoch: Option<Epoch>,
    /// The last number.
    pub number: u64,
    /// Topics with their rings.
    pub topics: Vec<KeptTopic>,
    /// A damaged file was set aside under this name.
    pub set_aside: Option<PathBuf>,
}

/// A topic that was kept.
#[derive(Debug)]
pub struct KeptTopic {
    /// Its name.
    pub name: TopicName,
    /// What it was; a rule that fits says what it is.
    pub kind: Kind,
    /// The number of the last update that left its ring.
    pub(crate) dropped_to: u64,
    /// What its ring had, oldest first.
    pub(crate) updates: Vec<KeptUpdate>,
}

/// Reads all that a file has.
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

/// How a file was found.
enum Read {
    Whole(KeptState),
    Empty,
    Newer(u64),
    Damaged(String),
}

fn topic(name: &str, (kind, dropped_to): (u8, u64)) -> Option<KeptTopic> {
    let kind = match kind {
        0 => Kind::Value,
        1 => Kind::Log,
        2 => Kind::Json,
        _ => return None,
    };
    let name = TopicName::new(name).or_else(|_| TopicName::of_server(name)).ok()?;
    Some(KeptTopic { name, kind, dropped_to, updates: Vec::new() })
}
