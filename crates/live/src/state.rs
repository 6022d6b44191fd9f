//! What survives a restart: last values and rings, in a file.
//!
//! It owns when a batch is on the disk, and what is done with a file that cannot be read. It must never empty
//! a file: one that is damaged is set aside under another name.
//!
//! The store is redb: one file, transactions that are whole or not there after a crash, a lock against other
//! processes, no thread, and no dependency. fjall, the other one weighed, merges in threads of its own.
//!
//! Order: `StateStore::open`, `Hub::restore`, `agree`, then `keep` for every letter before its publications
//! are answered, `sync` at the interval, `release`. When `keep` or `sync` has failed, and after `release`,
//! `agree` comes before the next letter.

mod fault;
mod layout;
mod load;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, Durability, ReadableTable, WriteTransaction};

pub use fault::{StateFault, StateFaultKind};
pub use load::{KeptState, KeptTopic};
pub(crate) use record::KeptUpdate;

use crate::letter::{Letter, News};
use crate::name::TopicName;
use crate::topic::{Kind, TopicId};
use layout::{FACTS, FORMAT, TOPICS, UPDATES};

/// What the store keeps in memory: values are in the hub already, so this is for its own pages.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// When a batch is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before `keep` returns.
    Always,
    /// When `sync` is called.
    Interval,
    /// When the store is released.
    Off,
}

/// The store.
pub struct StateStore {
    /// The open file; none after a failed write and after `release`, until `agree` opens it again.
    database: Option<Database>,
    path: PathBuf,
    sync: Sync,
    /// Name and kind of every topic, for letters name a topic by its id alone.
    topics: BTreeMap<TopicId, (TopicName, Kind)>,
    /// Epoch and last number that this store has written: a file with other ones was written by another
    /// process.
    agreed: Option<(u64, u64)>,
}

/// The tables of the file, opened in one write transaction.
struct Tables<'a> {
    facts: redb::Table<'a, &'static str, u64>,
    topics: redb::Table<'a, &'static str, (u8, u64)>,
    updates: redb::Table<'a, (&'static str, u64), &'static [u8]>,
}

impl StateStore {
    /// Name of the file in the state folder.
    pub const FILE: &str = "live.redb";

    /// Whether the file is open: it is closed by a failed write, and by `release`.
    pub fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Opens the store in a folder, or begins one, and reads what it has. A damaged file is set aside.
    ///
    /// # Errors
    /// The file cannot be opened or written, is locked by another process, or of a newer format.
    pub fn open(folder: &Path, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        let path = folder.join(Self::FILE);
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
        let database = open_database(path)?;
        let kept = load::load(&database, path)?;
        let (topics, path) = (BTreeMap::new(), path.to_owned());
        Ok((Self { database: Some(database), path, sync, topics, agreed: None }, kept))
    }

    /// Makes the file hold exactly what the hub holds; takes the hub's introduction. Opens the file first if
    /// it is closed.
    ///
    /// # Errors
    /// The disk refuses, or another process has the file, or has written to it.
    pub fn agree(&mut self, introduction: &Letter) -> Result<(), StateFault> {
        if self.database.is_none() {
            self.database = Some(open_database(&self.path)?);
        }
        self.topics.clear();
        for news in introduction.news.iter() {
            if let News::Topic(topic) = news {
                self.topics.insert(topic.id, (topic.name.clone(), topic.kind));
            }
        }
        let (names, agreed) = (self.topics.clone(), self.agreed);
        if let Some((_, number)) = &mut self.agreed {
            *number = introduction.number;
        }
        let is_exact = u64::from(self.sync == Sync::Always);
        self.write(Durability::Immediate, |tables| {
            tables.check(agreed)?;
            // A crash may lose the last batches unless each of them is synced: then the last number in the
            // file is not exact, until `release` says that it is.
            tables.facts.insert("format", FORMAT)?;
            tables.facts.insert("is_exact", is_exact)?;
            tables.agree(introduction, &names)
        })?;
        self.agreed = Some((introduction.epoch.0, introduction.number));
        Ok(())
    }

    /// Writes a letter's topics and updates in one transaction; it is synced at once with `Sync::Always`.
    ///
    /// # Errors
    /// The write fails, and the file is closed. The next `agree` writes what the letter told.
    pub fn keep(&mut self, letter: &Letter) -> Result<(), StateFault> {
        let mut topics = std::mem::take(&mut self.topics);
        let durability = if self.sync == Sync::Always { Durability::Immediate } else { Durability::None };
        // Before the write: one that fails at its end may stand in the file all the same.
        self.agreed = Some((letter.epoch.0, letter.number));
        let kept = self.write(durability, |tables| tables.write(letter, &mut topics));
        self.topics = topics;
        kept
    }

    /// Syncs all letters that were written so far.
    ///
    /// # Errors
    /// The sync fails, and the file is closed.
    pub fn sync(&mut self) -> Result<(), StateFault> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    /// Syncs and closes the file, for another process or the next start, which goes on with the numbering.
    ///
    /// # Errors
    /// The write fails now, or the file was closed already.
    pub fn release(&mut self) -> Result<(), StateFault> {
        let written =
            self.write(Durability::Immediate, |tables| Ok(tables.facts.insert("is_exact", 1).map(drop)?));
        self.database = None;
        written
    }

    /// Runs `change` in one transaction with this durability. If it fails the file is closed, for redb takes
    /// nothing more after a failed write; `agree` opens it again.
    fn write(
        &mut self,
        durability: Durability,
        change: impl FnOnce(&mut Tables<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), StateFault> {
        let database = self.database.as_ref().ok_or_else(|| StateFault::closed(&self.path))?;
        let written = write(database, durability, change);
        written.map_err(|error| {
            self.database = None;
            StateFault::of(&self.path, error)
        })
    }
}

fn write(
    database: &Database,
    durability: Durability,
    change: impl FnOnce(&mut Tables<'_>) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let mut transaction: WriteTransaction = database.begin_write()?;
    transaction.set_durability(durability)?;
    {
        let facts = transaction.open_table(FACTS)?;
        let topics = transaction.open_table(TOPICS)?;
        let updates = transaction.open_table(UPDATES)?;
        change(&mut Tables { facts, topics, updates })?;
    }
    Ok(transaction.commit()?)
}

impl Tables<'_> {
    /// Fails if another process has written to the file since this store did, so that no number is given out
    /// twice. Takes the epoch and number this store wrote last; none at the first `agree`. A file that was
    /// removed meanwhile has neither, and passes.
    fn check(&self, agreed: Option<(u64, u64)>) -> Result<(), redb::Error> {
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
    fn agree(
        &mut self,
        introduction: &Letter,
        names: &BTreeMap<TopicId, (TopicName, Kind)>,
    ) -> Result<(), redb::Error> {
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
            for (_, name) in &update.topics {
                let is_there = self.updates.get((name.as_str(), update.number))?.is_some();
                if !is_there && update.number > left(name.as_str()) {
                    self.updates.insert((name.as_str(), update.number), &record::write(update)[..])?;
                }
            }
        }
        self.number(introduction)
    }

    /// Writes a letter; `names` gets the topics that it begins, and loses those that it forgets.
    fn write(
        &mut self,
        letter: &Letter,
        names: &mut BTreeMap<TopicId, (TopicName, Kind)>,
    ) -> Result<(), redb::Error> {
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
                News::Dropped(_) | News::Form(..) => {}
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

/// The kind as the table of topics has it; `load::topic` reads it back.
fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Value => 0,
        Kind::Log => 1,
        Kind::Json => 2,
    }
}

/// Opens the file, or creates it with mode 600: private updates stand in it. The checksum of every page is
/// verified first, for redb panics later on a damaged page.
fn open_database(path: &Path) -> Result<Database, StateFault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(|error| StateFault::io(path, error))?;
    // A file that was just created, or its predecessor's new name, is lost in a power loss without this.
    let folder = path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    folder.map_err(|error| StateFault::io(path, error))?;
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    let opened = FileBackend::new(file).and_then(|file| builder.create_with_backend(file));
    opened.map_err(|error| StateFault::opening(path, error))
}

/// Renames a damaged file, to the first name that is free.
fn set_aside(path: &Path) -> Result<PathBuf, StateFault> {
    let names = (1..).map(|number: u32| path.with_extension(format!("redb.damaged-{number}")));
    let no_name = || StateFault::io(path, io::Error::other("no name is free to set it aside"));
    let aside = names.into_iter().find(|name| !name.exists()).ok_or_else(no_name)?;
    std::fs::rename(path, &aside).map_err(|error| StateFault::io(path, error))?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
