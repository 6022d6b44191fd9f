//! From a key to an entry: opens, reads, prepares and hands to the store.
//!
//! It owns the rule that content is whole: what is held was read between two equal stamps. It blocks on the
//! disk, so it is called from the loader's and the walk's threads only; a worker calls nothing but
//! [`Load::unheld`].
//!
//! Order within one load: a ticket, the watch, the open, the read, the store. So no change can fall between.

mod forgetting;
mod looking;
mod reaching;
mod tries;

use std::sync::Arc;

use staunch_dictionary::Hash;
use staunch_engine::FileStamp;
use xxhash_rust::xxh3::xxh3_64;

use super::branches::Branches;
use super::encoder::Encoder;
use super::entry::{Common, Content, Entry, Kind, OfferedDictionary};
use super::folder::Variant;
use super::freshness::Freshness;
use super::mime::MediaTypes;
use super::negotiate::Encoding;
use super::path::{Opened, Refusal, Root, folder_of};
use super::prepare;
use super::source::{FileSource, read_once, since_1970, source_of};
use super::store::{Room, Store, Ticket};
use super::versions::Versions;
use super::watch::Watch;
use super::{encode, fields, listing, mime};
use crate::config::SiteConfig;
use crate::limits::{
    ENCODED_LISTING_BYTES_MAX, HELD_FILE_BUDGET_PART, HELD_FILE_BYTES_MAX, UNHELD_READ_BYTES_MAX,
};
use crate::problem::Problem;
use crate::rules::{Rules, Ruling};
use crate::scripts::{is_script, shows_source};

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
/// The value of Vary where differences may exist.
const VARY_DICTIONARY: &str = "Accept-Encoding, Available-Dictionary";

/// Of what is answered by another path: that has its own.
const NO_STAMP: FileStamp = FileStamp { device: 0, inode: 0, size_bytes: 0, modified_ns: 0, changed_ns: 0 };

/// Everything a load needs.
pub(crate) struct Load {
    pub(crate) config: SiteConfig,
    pub(crate) root: Root,
    pub(crate) branches: Branches,
    pub(crate) store: Store,
    pub(crate) watch: Watch,
    pub(crate) encoder: Encoder,
    pub(crate) versions: Versions,
    pub(crate) rules: Option<Rules>,
    pub(crate) types: MediaTypes,
}

impl Load {
    /// Loads what answers for a key. `moment` is when it was asked for.
    pub(crate) fn load(&self, key: &[u8], unix_s: u64, room: Room) -> Outcome {
        let Some(tries) = self.tries(key) else { return self.load_itself(key, unix_s, room) };
        let ticket = self.store.ticket(key);
        let mut watched = self.cover(folder_of(key));
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
            let job = Job { key, ticket, watched: self.cover(folder), unix_s, room, ruling };
            return self.load_listing(&job, folder, variant);
        }
        let watched = self.cover(folder_of(key));
        let opened = match self.open_beneath(key) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Problem(problem(refusal)),
        };
        let ruling = self.ruling(key);
        let job = Job { key, ticket, watched: watched && opened.direct, unix_s, room, ruling };
        match (opened.folder, key.ends_with(b"/")) {
            (true, true) => self.load_folder(&job, &opened),
            (true, false) => self.keep(&job, Kind::Slashless, opened.stamp),
            (false, _) if self.hides(key) => self.load_script(&job, &opened.stamp),
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

    fn unheld_itself(&self, path: &[u8]) -> Outcome {
        let ruling = self.ruling(path);
        let entry = |key: &[u8], kind, stamp| {
            Outcome::Entry(Arc::new(
                Entry::new(key.into(), kind, stamp, Freshness::new(true, 0)).under(ruling.clone()),
            ))
        };
        match self.open_beneath(path) {
            Err(refusal) => Outcome::Problem(problem(refusal)),
            Ok(opened) if !opened.folder && self.hides(path) => match self.runs(path) {
                true => entry(path, Kind::Script, opened.stamp),
                false => Outcome::Problem(Problem::NotFound),
            },
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

    fn load_listing(&self, job: &Job<'_>, folder: &[u8], variant: Variant) -> Outcome {
        let opened = match self.open_beneath(folder) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Problem(problem(refusal)),
        };
        let Some((root, within)) = self.folder_of(folder) else {
            return Outcome::Problem(Problem::Overloaded);
        };
        let entries = match listing::read_folder(root, within, self.config.dotfiles, &|_| false) {
            Ok(entries) => entries,
            Err(_) => return Outcome::Problem(Problem::Failed),
        };
        let Variant { json, order, descending } = variant;
        let (media, body) = match json {
            true => (&mime::JSON, listing::json(&entries, order, descending)),
            false => (&mime::HTML, listing::html(folder, &entries, order, descending)),
        };
        let vary = if self.config.encodings.is_empty() { "Accept" } else { "Accept, Accept-Encoding" };
        let common = Common {
            media,
            modified_unix_s: None,
            vary: Some(vary),
            offer: None,
            ruling: job.ruling.as_deref(),
        };
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

    /// A file that is not served, because it may be the source of a script: it is run, or is not there.
    fn load_script(&self, job: &Job<'_>, stamp: &FileStamp) -> Outcome {
        if !self.runs(job.key) {
            return Outcome::Problem(Problem::NotFound);
        }
        match self.store.get(job.key).filter(|held| held.stamp == *stamp) {
            Some(held) if matches!(held.kind, Kind::Script) => {
                held.freshness.renew(job.unix_s);
                Outcome::Entry(held)
            }
            _ => self.keep(job, Kind::Script, *stamp),
        }
    }

    /// Whether a file at this path is never served: an application runs the scripts of the site.
    fn hides(&self, path: &[u8]) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.scripts.is_some()) && shows_source(path)
    }

    /// Whether a file at this path that is not served is run: scripts are those of the root. What stands in a
    /// branch may be what somebody has uploaded.
    fn runs(&self, path: &[u8]) -> bool {
        is_script(path) && !self.is_in_branch(path)
    }

    /// The first index file of a folder.
    fn index_of(&self, folder: &[u8]) -> Option<Box<[u8]>> {
        let candidates = self.config.index.iter().map(|name| [folder, name.as_bytes()].concat());
        let exists = |path: &Vec<u8>| {
            let is_shown = !self.hides(path) || self.runs(path);
            is_shown && self.open_beneath(path).is_ok_and(|opened| !opened.folder)
        };
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
        let before = self.store.get(job.key);
        if self.store.insert(job.ticket, &entry, job.room) {
            self.note_version(before.as_deref(), &entry);
            if !is_encoded {
                self.encoder.add(&entry, &self.config.encodings, job.room);
            }
        }
        Outcome::Entry(entry)
    }

    /// Keeps what an entry has replaced as a former version, if it is a dictionary.
    fn note_version(&self, before: Option<&Entry>, entry: &Entry) {
        if entry.content().is_some_and(|content| content.told.is_some()) {
            self.versions.note(&self.store, entry);
        }
        if let Some(before) = before {
            self.keep_former(before, Some(entry));
        }
    }

    /// Keeps an entry that is no longer current as a former version, if it is a dictionary and `next` is
    /// another.
    fn keep_former(&self, entry: &Entry, next: Option<&Entry>) {
        let hash = |entry: &Entry| Some(entry.content()?.told.as_ref()?.hash);
        if hash(entry).is_some() && hash(entry) != next.and_then(hash) {
            self.versions.keep_former(&self.store, entry);
        }
    }

    /// Removes what has changed; if it is a dictionary, it is a former version now.
    fn remove(&self, key: &[u8]) {
        if let Some(entry) = self.store.remove(key) {
            self.keep_former(&entry, None);
        }
    }

    fn content(
        &self,
        job: &Job<'_>,
        opened: Opened,
        sides: Vec<(Encoding, Opened)>,
    ) -> Result<(Content, FileStamp), Problem> {
        let side_files = hash_of(&sides);
        let source = source_of(opened, self.held_file_bytes_max())?;
        let media = &self.types.of_name(job.key);
        let varies = !self.config.encodings.is_empty() && (media.encodable || !sides.is_empty());
        let stamp = *source.stamp();
        let told = self.told(job, &source);
        let vary = if told.is_some() { Some(VARY_DICTIONARY) } else { varies.then_some(VARY_ENCODING) };
        let offer = told.as_ref().map(|told| &*told.offer);
        let (modified_unix_s, ruling) = (modified(&stamp), job.ruling.as_deref());
        let common = Common { media, modified_unix_s, vary, offer, ruling };
        let mut content = Content::of_identity(&common, source.representation(&common, None));
        content.side_files = side_files;
        content.told.clone_from(&told);
        for (encoding, side) in sides {
            let representation =
                source_of(side, self.held_file_bytes_max())?.representation(&common, Some(encoding));
            content.representations[encoding.place()] = Some(representation);
        }
        Ok((content, stamp))
    }

    /// Words told of content that is a dictionary: only of what is held, and not empty.
    fn told(&self, job: &Job<'_>, source: &FileSource) -> Option<Arc<OfferedDictionary>> {
        let rule = job.ruling.as_deref()?.dictionary.as_deref()?;
        let FileSource::Read(bytes, _) = source else { return None };
        let offer = rule.offer(job.key, &self.config.index).filter(|_| !bytes.is_empty())?;
        Some(Arc::new(OfferedDictionary { hash: Hash::of(bytes), offer }))
    }

    fn unheld_content(
        &self,
        path: &[u8],
        opened: Opened,
        ruling: Option<&Ruling>,
    ) -> Result<(Content, FileStamp), Problem> {
        let media = &self.types.of_name(path);
        let stamp = opened.stamp;
        let common = Common { media, modified_unix_s: modified(&stamp), vary: None, offer: None, ruling };
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
            let side = self.open_beneath(&[key, encoding.extension().as_bytes()].concat()).ok()?;
            let good = !side.folder
                && side.stamp.modified_ns >= stamp.modified_ns
                && (1..stamp.size_bytes).contains(&side.stamp.size_bytes);
            good.then_some((*encoding, side))
        };
        self.config.encodings.iter().filter_map(beside).collect()
    }
}

/// The folder a path names without its closing slash: it answers by a redirect.
fn folder_named(path: &[u8]) -> Vec<u8> {
    [path, b"/"].concat()
}

/// A load under way.
#[derive(Clone)]
struct Job<'a> {
    key: &'a [u8],
    ticket: Ticket,
    watched: bool,
    unix_s: u64,
    room: Room,
    ruling: Option<Arc<Ruling>>,
}

/// Whether it is a listing that is encoded as it is made, not by the encoder.
fn is_long_listing(key: &[u8], content: &Content) -> bool {
    Variant::of_key(key).is_some() && content.length_bytes() > ENCODED_LISTING_BYTES_MAX
}

/// The Last-Modified of what has this stamp.
fn modified(stamp: &FileStamp) -> Option<i64> {
    fields::last_modified(stamp.modified_ns, since_1970().as_secs() as i64)
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
