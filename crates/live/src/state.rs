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
pub(crate) mod record;
mod tables;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, Durability, WriteTransaction};

pub use fault::{StateFault, StateFaultKind};
pub(crate) use layout::{kind_code, kind_of};
pub use load::{KeptState, KeptTopic};
pub(crate) use record::KeptUpdate;

use crate::letter::Letter;
use layout::{FACTS, FORMAT, TOPICS, UPDATES};
use tables::{Names, Tables};

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

/// The store of a site's live data: a file of values and rings.
pub struct StateStore {
    /// The open file; none after a failed write and after `release`, until `agree` opens it again.
    database: Option<Database>,
    path: PathBuf,
    sync: Sync,
    topics: Names,
    /// Epoch and last number that this store has written: a file with other ones was written by another
    /// process.
    agreed: Option<(u64, u64)>,
    /// Number of the owner, if the file has a name that others might take.
    owner: Option<u64>,
    /// Another process may have had the file since this one wrote to it.
    is_left: bool,
}

/// A file that the store had under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// That name.
    pub path: PathBuf,
    /// Whether it gets the present name once it is open.
    pub is_renamed: bool,
    /// Number of its owner: a file that keeps its name is taken by nobody else from then on.
    pub owner: u64,
}

impl StateStore {
    /// Whether the file is open: it is closed by a failed write, and by `release`.
    pub fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Opens the store of this name, or begins one, and reads what it has. Where there is none, the file is
    /// taken that had a former name. A damaged file is set aside.
    ///
    /// # Errors
    /// The file cannot be opened or written, is locked by another process, or of a newer format.
    pub fn open(path: &Path, former: Option<&Former>, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        let Some(former) = former.filter(|former| !path.exists() && former.path.exists()) else {
            return Self::open_or_begin(path, sync);
        };
        let (mut state, kept) = Self::open_or_begin(&former.path, sync)?;
        if kept.owner.is_some_and(|owner| owner != former.owner) {
            drop(state);
            return Self::open_or_begin(path, sync);
        }
        // Only now: while another process has it open, its name stays.
        if former.is_renamed {
            std::fs::rename(&former.path, path).map_err(|error| StateFault::io(&former.path, error))?;
            sync_folder(path)?;
            state.path = path.to_owned();
        } else {
            state.owner = Some(former.owner);
        }
        Ok((state, kept))
    }

    fn open_or_begin(path: &Path, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        match Self::open_file(path, sync) {
            Err(StateFault { kind: StateFaultKind::Damaged(_), .. }) => {
                let aside = set_aside(path)?;
                let (state, _) = Self::open_file(path, sync)?;
                Ok((state, KeptState { set_aside: Some(aside), ..KeptState::default() }))
            }
            other => other,
        }
    }

    fn open_file(path: &Path, sync: Sync) -> Result<(Self, KeptState), StateFault> {
        let database = open_database(path, true)?;
        let kept = load::load(&database, path)?;
        let (topics, path) = (Names::new(), path.to_owned());
        Ok((
            Self { database: Some(database), path, sync, topics, agreed: None, owner: None, is_left: false },
            kept,
        ))
    }

    /// Another process may have the file from now on.
    pub fn leave(&mut self) {
        self.is_left = true;
    }

    /// Opens the file again if it is closed. A file that another process may have had is checked as at first,
    /// and set aside if it is not any more what this one wrote; gives its new name then.
    ///
    /// # Errors
    /// The disk refuses, or another process has the file.
    pub fn reopen(&mut self) -> Result<Option<PathBuf>, StateFault> {
        if self.database.is_some() {
            return Ok(None);
        }
        if !self.is_left {
            // What was written here is known to be sound: after a failed write redb repairs what it has to.
            self.database = Some(open_database(&self.path, false)?);
            return Ok(None);
        }
        if let Some(database) = self.open_left()? {
            self.database = Some(database);
            return Ok(None);
        }
        let aside = set_aside(&self.path)?;
        self.database = Some(open_database(&self.path, true)?);
        Ok(Some(aside))
    }

    /// The file, unless it is damaged, of a newer format, or of another epoch: then nobody can go on with
    /// what this process wrote, which is all in memory.
    fn open_left(&self) -> Result<Option<Database>, StateFault> {
        let opened = open_database(&self.path, true).and_then(|database| {
            let facts = load::facts(&database).map_err(|error| StateFault::of(&self.path, error))?;
            Ok((database, facts))
        });
        let (database, (format, epoch)) = match opened {
            Err(StateFault { kind: StateFaultKind::Damaged(_), .. }) => return Ok(None),
            opened => opened?,
        };
        let own = self.agreed.map(|(epoch, _)| epoch);
        let is_own = format.is_none_or(|format| format <= FORMAT) && (epoch.is_none() || epoch == own);
        Ok(is_own.then_some(database))
    }

    /// Makes the file hold exactly what the hub holds; takes the hub's introduction. Opens the file first if
    /// it is closed.
    ///
    /// # Errors
    /// The disk refuses, or another process has the file, or has written to it.
    pub fn agree(&mut self, introduction: &Letter) -> Result<(), StateFault> {
        self.reopen()?;
        let (topics, agreed) = (tables::names(introduction), self.agreed);
        if let Some((_, number)) = &mut self.agreed {
            *number = introduction.number;
        }
        let (is_exact, owner) = (u64::from(self.sync == Sync::Always), self.owner);
        self.write(Durability::Immediate, |tables| {
            tables.check(agreed)?;
            // A crash may lose the last batches unless each of them is synced: then the last number in the
            // file is not exact, until `release` says that it is.
            tables.facts.insert("format", FORMAT)?;
            match owner {
                Some(owner) => tables.facts.insert("owner", owner)?,
                None => tables.facts.remove("owner")?,
            };
            tables.facts.insert("is_exact", is_exact)?;
            tables.agree(introduction, &topics)
        })?;
        self.agreed = Some((introduction.epoch.0, introduction.number));
        (self.topics, self.is_left) = (topics, false);
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

/// Opens the file, or creates it with mode 600: private updates stand in it. With `is_verified` the checksum
/// of every page is, for redb panics later on a page that somebody else has damaged.
fn open_database(path: &Path, is_verified: bool) -> Result<Database, StateFault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(|error| StateFault::io(path, error))?;
    sync_folder(path)?;
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(is_verified);
    let opened = FileBackend::new(file).and_then(|file| builder.create_with_backend(file));
    opened.map_err(|error| StateFault::opening(path, error))
}

/// Syncs the folder of a file: a name that was just given is lost in a power loss without this.
fn sync_folder(path: &Path) -> Result<(), StateFault> {
    let folder = path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    folder.map_err(|error| StateFault::io(path, error))
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
