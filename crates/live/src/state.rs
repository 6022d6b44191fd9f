//! What survives a restart: last values and rings, in a file.
//!
//! It owns when a batch is on the disk, and what is done with a file that cannot be read. It must never empty
//! a file: one that is damaged is set aside under another name.
//!
//! The store is redb: one file, transactions that are whole or not there after a crash, a lock against other
//! processes, no thread, and no dependency. fjall, the other one weighed, merges in threads of its own.
//!
//! Order: `StateStore::open`, `Hub::restore`, `introduce`, then `keep` for every letter before its
//! publications are answered, `sync` at the interval, `close`.

mod fault;
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

pub use fault::{StateFault, StateFaultKind};
pub(crate) use record::KeptUpdate;

use crate::letter::{Letter, News};
use crate::name::TopicName;
use crate::topic::TopicId;
use crate::version::Epoch;

/// What is written by this version; a higher number is refused.
const FORMAT: u64 = 1;
/// The file in the state folder.
const FILE: &str = "live.redb";
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const UPDATES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("updates");
/// What the store keeps in memory: values are in the hub already, so this is for its own pages.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// When a batch is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before `keep` returns.
    Always,
    /// When `sync` is called.
    Interval,
    /// When it is closed.
    Off,
}

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
    /// What its ring had, oldest first.
    pub(crate) updates: Vec<KeptUpdate>,
}

/// Where a hub's letters are kept.
pub trait StateKeeper {
    /// Keeps a letter.
    ///
    /// # Errors
    /// The disk refuses. What was kept before stands, and the letter is kept with the next one.
    fn keep(&mut self, letter: &Letter) -> Result<(), StateFault>;
    /// Brings to the disk what was kept.
    ///
    /// # Errors
    /// The disk refuses.
    fn sync(&mut self) -> Result<(), StateFault>;
}

/// The store.
pub struct StateStore {
    database: Database,
    path: PathBuf,
    sync: Sync,
    names: BTreeMap<TopicId, TopicName>,
    /// Letters that could not be kept so far.
    owed: Vec<Letter>,
}

impl StateStore {
    /// Opens the store in a folder, or begins one, and reads what it has. A damaged file is set aside.
    ///
    /// # Errors
    /// The file cannot be opened or written, is locked by another process, or of a newer format.
    pub fn open(folder: &Path, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        let path = folder.join(FILE);
        match Self::open_file(&path, sync) {
            Err(StateFault { kind: StateFaultKind::Damaged(_), .. }) => {
                let aside = set_aside(&path)?;
                let (state, _) = Self::open_file(&path, sync)?;
                Ok((state, KeptState { set_aside: Some(aside), ..KeptState::default() }))
            }
            other => other,
        }
    }

    fn open_file(path: &Path, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        let fault = |error: redb::Error| StateFault::of(path, error);
        let database = redb::Builder::new()
            .set_cache_size(CACHE_BYTES)
            .create(path)
            .map_err(|error| StateFault::opening(path, error))?;
        let kept = load(&database, path)?;
        let mut state =
            Self { database, path: path.to_owned(), sync, names: BTreeMap::new(), owed: Vec::new() };
        // Until it is closed, or every batch is synced, nobody knows how far the numbering went.
        state
            .write(Durability::Immediate, |facts, _| {
                facts.insert("format", FORMAT)?;
                facts.insert("is_exact", u64::from(sync == Sync::Always))?;
                Ok(())
            })
            .map_err(fault)?;
        Ok((state, kept))
    }

    /// Takes the topics of a hub that was restored, from its introduction: it will not tell of them again.
    pub fn introduce(&mut self, introduction: &Letter) {
        for news in introduction.news.iter() {
            if let News::Topic(topic) = news {
                self.names.insert(topic.id, topic.name.clone());
            }
        }
    }

    /// Ends well: the numbering goes on at the next start.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn close(mut self) -> Result<(), StateFault> {
        self.keep_owed(Durability::Immediate)?;
        self.write(Durability::Immediate, |facts, _| {
            facts.insert("is_exact", 1).map(|_| ()).map_err(Into::into)
        })
        .map_err(|error| StateFault::of(&self.path, error))
    }

    fn write(
        &mut self,
        durability: Durability,
        change: impl FnOnce(&mut Facts<'_>, &mut Updates<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let mut transaction: WriteTransaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut facts = transaction.open_table(FACTS)?;
            let mut updates = transaction.open_table(UPDATES)?;
            change(&mut facts, &mut updates)?;
        }
        Ok(transaction.commit()?)
    }

    fn keep_owed(&mut self, durability: Durability) -> Result<(), StateFault> {
        let owed = std::mem::take(&mut self.owed);
        let mut names = std::mem::take(&mut self.names);
        let written = self.write(durability, |facts, updates| {
            owed.iter().try_for_each(|letter| write_letter(letter, &mut names, facts, updates))
        });
        self.names = names;
        written.map_err(|error| {
            self.owed = owed;
            StateFault::of(&self.path, error)
        })
    }
}

type Facts<'a> = redb::Table<'a, &'static str, u64>;
type Updates<'a> = redb::Table<'a, (&'static str, u64), &'static [u8]>;

impl StateKeeper for StateStore {
    fn keep(&mut self, letter: &Letter) -> Result<(), StateFault> {
        self.owed.push(letter.clone());
        self.keep_owed(if self.sync == Sync::Always { Durability::Immediate } else { Durability::None })
    }

    fn sync(&mut self) -> Result<(), StateFault> {
        match self.sync {
            Sync::Off => Ok(()),
            Sync::Always | Sync::Interval => self.keep_owed(Durability::Immediate),
        }
    }
}

fn write_letter(
    letter: &Letter,
    names: &mut BTreeMap<TopicId, TopicName>,
    facts: &mut Facts<'_>,
    updates: &mut Updates<'_>,
) -> Result<(), redb::Error> {
    facts.insert("epoch", letter.epoch.0)?;
    facts.insert("number", letter.number)?;
    for news in letter.news.iter() {
        match news {
            News::Topic(topic) => {
                names.insert(topic.id, topic.name.clone());
            }
            News::Update(update, _) => {
                let record = record::write(update);
                for (id, name) in &update.topics {
                    names.entry(*id).or_insert_with(|| name.clone());
                    updates.insert((name.as_str(), update.number), &record[..])?;
                }
            }
            News::Dropped(place) | News::Forgotten(place) => {
                if let Some(name) = names.get(&place.topic) {
                    let range = (name.as_str(), 0)..=(name.as_str(), place.number);
                    updates.retain_in(range, |_, _| false)?;
                }
            }
            News::Form(..) => {}
        }
    }
    Ok(())
}

/// Reads all that a file has.
fn load(database: &Database, path: &Path) -> Result<KeptState, StateFault> {
    let fault = |error: redb::Error| StateFault::of(path, error);
    let transaction = database.begin_read().map_err(|error| fault(error.into()))?;
    let facts = match transaction.open_table(FACTS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(KeptState::default()),
        facts => facts.map_err(|error| fault(error.into()))?,
    };
    let fact = |name: &str| -> Result<Option<u64>, StateFault> {
        Ok(facts.get(name).map_err(|error| fault(error.into()))?.map(|value| value.value()))
    };
    match fact("format")? {
        Some(format) if format > FORMAT => return Err(StateFault::newer(path, format)),
        Some(_) => {}
        None => return Ok(KeptState::default()),
    }
    let updates = transaction.open_table(UPDATES).map_err(|error| fault(error.into()))?;
    let mut kept = KeptState::default();
    for row in updates.iter().map_err(|error| fault(error.into()))? {
        let (key, value) = row.map_err(|error| fault(error.into()))?;
        let (name, number) = key.value();
        let damaged = || StateFault::damaged(path, format!("the record {number} of {name:?}"));
        let update = record::read(number, value.value()).ok_or_else(damaged)?;
        match kept.topics.last_mut().filter(|topic| topic.name.as_str() == name) {
            Some(topic) => topic.updates.push(update),
            None => {
                let name =
                    TopicName::new(name).or_else(|_| TopicName::of_server(name)).map_err(|_| damaged())?;
                kept.topics.push(KeptTopic { name, updates: vec![update] });
            }
        }
    }
    kept.number = fact("number")?.unwrap_or(0);
    if fact("is_exact")? == Some(1) {
        kept.epoch = fact("epoch")?.map(Epoch);
    }
    Ok(kept)
}

/// Renames a damaged file, to the first name that is free.
fn set_aside(path: &Path) -> Result<PathBuf, StateFault> {
    let names = (1..).map(|number: u32| path.with_extension(format!("redb.damaged-{number}")));
    let Some(aside) = names.into_iter().find(|name| !name.exists()) else { return Ok(path.to_owned()) };
    std::fs::rename(path, &aside).map_err(|error| StateFault::io(path, error))?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
