//! From a key to an entry: opens, reads, prepares and hands to the store.
//!
//! It owns the rule that content is whole: what is held was read between two equal stamps. It blocks on the
//! disk, so it is called from the loader's and the walk's threads only; a worker calls nothing but
//! [`Load::unheld`].
//!
//! Order within one load: a ticket, the watch, the open, the read, the store. So no change can fall between.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use staunch_engine::FileStamp;
use staunch_protocol::Status;
use xxhash_rust::xxh3::xxh3_64;

use super::encoder::Encoder;
use super::entry::{Common, Content, Entry, Kind, Representation};
use super::folder::Variant;
use super::freshness::Freshness;
use super::negotiate::Encoding;
use super::path::{Opened, Refusal, Root, folder_of, is_servable, stamp_of};
use super::prepare;
use super::store::{Room, Store, Ticket};
use super::watch::{Changes, Watch};
use super::{encode, fields, listing, mime};
use crate::config::SiteConfig;
use crate::limits::{
    ENCODED_LISTING_BYTES_MAX, HELD_FILE_BUDGET_PART, HELD_FILE_BYTES_MAX, READ_TRIES_MAX, STAMP_STEP_MS,
    UNHELD_READ_BYTES_MAX,
};
use crate::problem::Problem;
use crate::rules::attempts::{Candidate, Tries};
use crate::rules::{Rules, Ruling};

/// What a load has come to.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// This is there.
    Entry(Arc<Entry>),
    /// This is why nothing is.
    Problem(Problem),
}

/// The value of Vary where encodings may exist.
const VARY_ENCODING: &str = "Accept-Encoding";

/// Of what is answered by another path: that has its own.
const NO_STAMP: FileStamp = FileStamp { device: 0, inode: 0, size_bytes: 0, modified_ns: 0, changed_ns: 0 };

/// Everything a load needs.
pub(crate) struct Load {
    pub(crate) config: SiteConfig,
    pub(crate) root: Root,
    pub(crate) store: Store,
    pub(crate) watch: Watch,
    pub(crate) encoder: Encoder,
    pub(crate) rules: Option<Rules>,
}

impl Load {
    /// Loads what answers for a key. `moment` is when it was asked for.
    pub(crate) fn load(&self, key: &[u8], unix_s: u64, room: Room) -> Outcome {
        let Some(tries) = self.tries(key) else { return self.load_itself(key, unix_s, room) };
        let ticket = self.store.ticket(key);
        let mut watched = self.watch.cover(folder_of(key));
        let found = self.try_in_turn(tries, key, |candidate| watched &= self.cover_name(candidate));
        let target = match found {
            Ok(Some(candidate)) if candidate.path != folder_named(key) => candidate,
            Ok(_) => return self.load_itself(key, unix_s, room),
            Err(problem) => return Outcome::Problem(problem),
        };
        if target.is_own {
            let job = Job { key, ticket, watched, unix_s, room, ruling: self.ruling(key) };
            self.keep(&job, Kind::Alias(target.path.clone().into()), NO_STAMP);
        }
        self.load_itself(&target.path, unix_s, room)
    }

    fn load_itself(&self, key: &[u8], unix_s: u64, room: Room) -> Outcome {
        let ticket = self.store.ticket(key);
        if let Some((folder, variant)) = Variant::of_key(key) {
            let ruling = self.ruling(folder);
            let job = Job { key, ticket, watched: self.watch.cover(folder), unix_s, room, ruling };
            return self.load_listing(&job, folder, variant);
        }
        let watched = self.watch.cover(folder_of(key));
        let opened = match self.root.open_beneath(key) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Problem(problem(refusal)),
        };
        let ruling = self.ruling(key);
        let job = Job { key, ticket, watched: watched && opened.direct, unix_s, room, ruling };
        match (opened.folder, key.ends_with(b"/")) {
            (true, true) => self.load_folder(&job, &opened),
            (true, false) => self.keep(&job, Kind::Slashless, opened.stamp),
            (false, _) => self.load_file(&job, opened),
        }
    }

    /// Reads what answers for a path for one answer, holding nothing.
    pub(crate) fn unheld(&self, path: &[u8]) -> Outcome {
        let Some(tries) = self.tries(path) else { return self.unheld_itself(path) };
        match self.try_in_turn(tries, path, |_| ()) {
            Ok(Some(candidate)) if candidate.path != folder_named(path) => {
                self.unheld_itself(&candidate.path)
            }
            Ok(_) => self.unheld_itself(path),
            Err(problem) => Outcome::Problem(problem),
        }
    }

    fn tries(&self, key: &[u8]) -> Option<&Tries> {
        self.rules.as_ref().filter(|_| Variant::of_key(key).is_none())?.tries(key)
    }

    /// What answers for a path: nothing but itself, or the first candidate that is there. `look` is called
    /// before each look at one.
    ///
    /// # Errors
    /// What is answered if nothing is there, or it could not be told.
    fn try_in_turn(
        &self,
        tries: &Tries,
        path: &[u8],
        mut look: impl FnMut(&[u8]),
    ) -> Result<Option<Candidate>, Problem> {
        if self.is_there(path)? {
            return Ok(None);
        }
        for candidate in tries.candidates(path) {
            // The path itself was not there, and must never be answered by itself.
            if candidate.path == path {
                continue;
            }
            look(&candidate.path);
            if is_servable(&candidate.path, self.config.dotfiles) && self.is_there(&candidate.path)? {
                return Ok(Some(candidate));
            }
        }
        Err(match tries.status {
            Status::FORBIDDEN => Problem::Forbidden,
            Status::GONE => Problem::Gone,
            _ => Problem::NotFound,
        })
    }

    /// Whether a file stands at a path, or, where it ends with a slash, a folder with an index file or a
    /// listing. What may not be read is there.
    fn is_there(&self, path: &[u8]) -> Result<bool, Problem> {
        match self.root.open_beneath(path) {
            Ok(opened) if opened.folder => {
                let ruling = self.ruling(path);
                let listed = ruling.and_then(|ruling| ruling.listing).unwrap_or(self.config.listing);
                Ok(path.ends_with(b"/") && (listed || self.index_of(path).is_some()))
            }
            Ok(_) | Err(Refusal::Forbidden) => Ok(true),
            Err(Refusal::NotFound) => Ok(false),
            Err(refusal) => Err(problem(refusal)),
        }
    }

    /// Sees to it that it is seen when something appears at a path, or goes. False if it may not be.
    fn cover_name(&self, path: &[u8]) -> bool {
        let beside = path.strip_suffix(b"/").unwrap_or(path);
        self.watch.cover(folder_of(path)) || (beside != path && self.watch.cover(folder_of(beside)))
    }

    fn unheld_itself(&self, path: &[u8]) -> Outcome {
        let ruling = self.ruling(path);
        let entry = |key: &[u8], kind, stamp| {
            Outcome::Entry(Arc::new(
                Entry::new(key.into(), kind, stamp, Freshness::Watched).under(ruling.clone()),
            ))
        };
        match self.root.open_beneath(path) {
            Err(refusal) => Outcome::Problem(problem(refusal)),
            Ok(opened) if !opened.folder => match self.unheld_content(path, opened, ruling.as_deref()) {
                Ok((content, stamp)) => entry(path, Kind::Content(content), stamp),
                Err(problem) => Outcome::Problem(problem),
            },
            Ok(opened) if !path.ends_with(b"/") => entry(path, Kind::Slashless, opened.stamp),
            Ok(opened) => match self.index_of(path) {
                Some(index) => self.unheld_itself(&index),
                None => entry(path, Kind::Folder, opened.stamp),
            },
        }
    }

    /// Largest file that is held, in bytes.
    pub(crate) fn held_file_bytes_max(&self) -> u64 {
        HELD_FILE_BYTES_MAX.min(self.config.cache_bytes_max / HELD_FILE_BUDGET_PART)
    }

    /// Has everything forgotten that changes touch.
    pub(crate) fn forget(&self, changes: &Changes) {
        let mut listed = HashSet::new();
        for (folder, name) in &changes.names {
            self.store.remove(&[folder, &name[..]].concat());
            let side =
                Encoding::ALL.iter().find_map(|encoding| name.strip_suffix(encoding.extension().as_bytes()));
            if let Some(stem) = side {
                self.store.remove(&[folder, stem].concat());
            }
            if self.config.index.iter().any(|index| index.as_bytes() == name) {
                self.store.remove(folder);
                self.forget_answered_by(folder);
            }
            self.forget_answered_by(&[folder, &name[..]].concat());
            self.forget_answered_by(&[folder, &name[..], b"/"].concat());
            // A folder's own listing, and that it stands in: its time is changed too.
            listed.insert(&**folder);
            listed.insert(folder_of(folder.strip_suffix(b"/").unwrap_or(folder)));
        }
        for folder in listed.into_iter().filter(|folder| !folder.is_empty()) {
            for variant in Variant::all() {
                self.store.remove(&variant.key(folder));
            }
        }
        let tries = self.rules.as_ref().is_some_and(|rules| rules.all_tries().next().is_some());
        if changes.everything || !changes.trees.is_empty() {
            // What is in a tree may answer for paths anywhere.
            self.store.remove_where(|key| tries || changes.contains_tree_of(key));
        }
    }

    /// Has the paths forgotten for which what stands at another may answer, or no longer.
    fn forget_answered_by(&self, changed: &[u8]) {
        for tries in self.rules.iter().flat_map(|rules| rules.all_tries()) {
            tries.answered_by(changed).for_each(|path| _ = self.store.remove(&path));
        }
    }

    fn load_listing(&self, job: &Job<'_>, folder: &[u8], variant: Variant) -> Outcome {
        let opened = match self.root.open_beneath(folder) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Problem(problem(refusal)),
        };
        let entries = match listing::read_folder(self.root.folder(), folder, self.config.dotfiles, &|_| false)
        {
            Ok(entries) => entries,
            Err(_) => return Outcome::Problem(Problem::Failed),
        };
        let Variant { json, order, descending } = variant;
        let (media, body) = match json {
            true => (&mime::JSON, listing::json(&entries, order, descending)),
            false => (&mime::HTML, listing::html(folder, &entries, order, descending)),
        };
        let vary = if self.config.encodings.is_empty() { "Accept" } else { "Accept, Accept-Encoding" };
        let common = Common { media, modified_unix_s: None, vary: Some(vary), ruling: job.ruling.as_deref() };
        let mut content = Content::of_identity(&common, prepare::held(&common, None, &body));
        if is_long_listing(job.key, &content) && !self.config.no_cache {
            for &encoding in &self.config.encodings {
                content.representations[encoding.place()] = encode::encode_quickly(encoding, &body)
                    .map(|encoded| prepare::held(&common, Some(encoding), &encoded));
            }
        }
        let job = Job { watched: job.watched && opened.direct, ..job.clone() };
        self.keep(&job, Kind::Content(content), opened.stamp)
    }

    fn load_folder(&self, job: &Job<'_>, opened: &Opened) -> Outcome {
        match self.index_of(job.key) {
            Some(index) => {
                self.keep(job, Kind::Alias(index.clone()), opened.stamp);
                self.load_itself(&index, job.unix_s, job.room)
            }
            None => self.keep(job, Kind::Folder, opened.stamp),
        }
    }

    /// The first index file of a folder.
    fn index_of(&self, folder: &[u8]) -> Option<Box<[u8]>> {
        let candidates = self.config.index.iter().map(|name| [folder, name.as_bytes()].concat());
        let exists = |path: &Vec<u8>| self.root.open_beneath(path).is_ok_and(|opened| !opened.folder);
        candidates.into_iter().find(exists).map(Vec::into_boxed_slice)
    }

    fn load_file(&self, job: &Job<'_>, opened: Opened) -> Outcome {
        let sides = self.side_files(job.key, &opened.stamp);
        let direct = sides.iter().all(|(_, side)| side.direct);
        let job = Job { watched: job.watched && direct, ..job.clone() };
        if let Some(held) = self.still_true(&job, &opened.stamp, hash_of(&sides)) {
            return Outcome::Entry(held);
        }
        match self.content(&job, opened, sides) {
            Ok((content, stamp)) => self.keep(&job, Kind::Content(content), stamp),
            Err(problem) => Outcome::Problem(problem),
        }
    }

    /// The entry that is held, if it is what would be read again; it counts as checked then.
    fn still_true(&self, job: &Job<'_>, stamp: &FileStamp, side_files: u64) -> Option<Arc<Entry>> {
        let held = self.store.get(job.key)?;
        let same = held.stamp == *stamp && held.content()?.side_files == side_files;
        same.then(|| {
            held.freshness.renew(job.unix_s);
            held
        })
    }

    fn keep(&self, job: &Job<'_>, kind: Kind, stamp: FileStamp) -> Outcome {
        let entry = Entry::new(job.key.into(), kind, stamp, Freshness::new(job.watched, job.unix_s));
        let entry = Arc::new(entry.under(job.ruling.clone()));
        let is_encoded = entry.content().is_some_and(|content| is_long_listing(job.key, content));
        if is_encoded {
            entry.settle();
        }
        if self.store.insert(job.ticket, &entry, job.room) && !is_encoded {
            self.encoder.add(&entry, &self.config.encodings, job.room);
        }
        Outcome::Entry(entry)
    }

    fn content(
        &self,
        job: &Job<'_>,
        opened: Opened,
        sides: Vec<(Encoding, Opened)>,
    ) -> Result<(Content, FileStamp), Problem> {
        let side_files = hash_of(&sides);
        let source = self.source(opened)?;
        let media = mime::of_name(job.key);
        let varies = !self.config.encodings.is_empty() && (media.encodable || !sides.is_empty());
        let stamp = *source.stamp();
        let vary = varies.then_some(VARY_ENCODING);
        let common = Common { media, modified_unix_s: modified(&stamp), vary, ruling: job.ruling.as_deref() };
        let mut content = Content::of_identity(&common, source.representation(&common, None));
        content.side_files = side_files;
        for (encoding, side) in sides {
            let representation = self.source(side)?.representation(&common, Some(encoding));
            content.representations[encoding.place()] = Some(representation);
        }
        Ok((content, stamp))
    }

    fn unheld_content(
        &self,
        path: &[u8],
        opened: Opened,
        ruling: Option<&Ruling>,
    ) -> Result<(Content, FileStamp), Problem> {
        let media = mime::of_name(path);
        let stamp = opened.stamp;
        let common = Common { media, modified_unix_s: modified(&stamp), vary: None, ruling };
        let read = if stamp.size_bytes <= UNHELD_READ_BYTES_MAX {
            read_once(&opened.file, &stamp)
        } else {
            Ok(None)
        };
        let representation = match read.map_err(|_| Problem::Failed)? {
            Some(bytes) => prepare::unheld(&common, &bytes, &stamp),
            None => prepare::in_file(&common, None, Arc::new(opened.file), stamp),
        };
        Ok((Content::of_identity(&common, representation), stamp))
    }

    fn ruling(&self, path: &[u8]) -> Option<Arc<Ruling>> {
        self.rules.as_ref()?.of(path)
    }

    /// Prepared files beside the file that are not older, and smaller.
    fn side_files(&self, key: &[u8], stamp: &FileStamp) -> Vec<(Encoding, Opened)> {
        let beside = |encoding: &Encoding| {
            let side = self.root.open_beneath(&[key, encoding.extension().as_bytes()].concat()).ok()?;
            let good = !side.folder
                && side.stamp.modified_ns >= stamp.modified_ns
                && (1..stamp.size_bytes).contains(&side.stamp.size_bytes);
            good.then_some((*encoding, side))
        };
        self.config.encodings.iter().filter_map(beside).collect()
    }

    /// Reads a file if it is small enough to be held and stays still.
    fn source(&self, opened: Opened) -> Result<Source, Problem> {
        let mut stamp = opened.stamp;
        for _ in 0..READ_TRIES_MAX {
            if stamp.size_bytes > self.held_file_bytes_max() {
                break;
            }
            let bytes = read_once(&opened.file, &stamp).map_err(|_| Problem::Failed)?;
            wait_for_next_stamp(&stamp);
            let after = stamp_of(&opened.file).map_err(|_| Problem::Failed)?;
            if let (Some(bytes), true) = (bytes, after == stamp) {
                return Ok(Source::Read(bytes, stamp));
            }
            stamp = after;
        }
        Ok(Source::Open(opened.file, stamp))
    }
}

/// The folder a path names without its closing slash: it answers by a redirect.
fn folder_named(path: &[u8]) -> Vec<u8> {
    [path, b"/"].concat()
}

/// One load under way.
#[derive(Clone)]
struct Job<'a> {
    key: &'a [u8],
    ticket: Ticket,
    watched: bool,
    unix_s: u64,
    room: Room,
    ruling: Option<Arc<Ruling>>,
}

/// A file's bytes, or the file.
enum Source {
    Read(Vec<u8>, FileStamp),
    Open(OwnedFd, FileStamp),
}

impl Source {
    fn stamp(&self) -> &FileStamp {
        match self {
            Self::Read(_, stamp) | Self::Open(_, stamp) => stamp,
        }
    }

    fn representation(self, common: &Common<'_>, encoding: Option<Encoding>) -> Representation {
        match self {
            Self::Read(bytes, _) => prepare::held(common, encoding, &bytes),
            Self::Open(file, stamp) => prepare::in_file(common, encoding, Arc::new(file), stamp),
        }
    }
}

/// Reads as many bytes as the stamp says there are; `None` if there are more or fewer.
fn read_once(file: &OwnedFd, stamp: &FileStamp) -> Result<Option<Vec<u8>>, Errno> {
    // One byte more, so that a file which has grown shows it.
    let mut bytes = vec![0; stamp.size_bytes as usize + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            // A read of the right length that had room for more has met the end.
            Ok(count) if (filled + count) as u64 == stamp.size_bytes => {
                filled += count;
                break;
            }
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok((filled as u64 == stamp.size_bytes).then_some(bytes))
}

/// Whether it is a listing that is encoded as it is made, not by the encoder.
fn is_long_listing(key: &[u8], content: &Content) -> bool {
    Variant::of_key(key).is_some() && content.length_bytes() > ENCODED_LISTING_BYTES_MAX
}

/// The Last-Modified of what has this stamp.
fn modified(stamp: &FileStamp) -> Option<i64> {
    fields::last_modified(stamp.modified_ns, since_1970().as_secs() as i64)
}

/// Two changes within one step of the file system's clock leave the same stamp. A file that has just changed
/// is looked at again when the next change would show.
fn wait_for_next_stamp(stamp: &FileStamp) {
    let now_ns = since_1970().as_nanos() as i128;
    let step_ns = i128::from(STAMP_STEP_MS) * 1_000_000;
    let age_ns = now_ns - stamp.changed_ns;
    if (0..step_ns).contains(&age_ns) {
        // tidy: allow(clock): a loader thread waits for the file system's clock; no worker does.
        std::thread::sleep(Duration::from_nanos((step_ns - age_ns) as u64));
    }
}

fn hash_of(sides: &[(Encoding, Opened)]) -> u64 {
    let mut bytes = Vec::new();
    for (encoding, side) in sides {
        bytes.push(encoding.place() as u8);
        bytes.extend_from_slice(&side.stamp.inode.to_le_bytes());
        bytes.extend_from_slice(&side.stamp.size_bytes.to_le_bytes());
        bytes.extend_from_slice(&side.stamp.modified_ns.to_le_bytes());
    }
    if bytes.is_empty() { 0 } else { xxh3_64(&bytes) }
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::NotFound => Problem::NotFound,
        Refusal::Forbidden => Problem::Forbidden,
        Refusal::Exhausted => Problem::Overloaded,
        Refusal::Failed => Problem::Failed,
    }
}

fn since_1970() -> Duration {
    // tidy: allow(clock): times of files are compared with the time of day, off the workers.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
