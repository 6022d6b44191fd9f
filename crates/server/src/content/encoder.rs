//! The encoder: what of a site is to be encoded, that first which was asked for, then the smallest.
//!
//! It owns the order of work; the threads are those of all sites. It must never hold up a worker, nor a
//! thread that answers: hints that come at a bad moment are dropped. Order of calls for a thread: `take`,
//! then `encode` what was taken.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use staunch_dictionary::Hash;

use super::encode;
use super::entry::{Content, Entry, FileBody};
use super::negotiate::Encoding;
use super::prepare;
use super::signal::Signal;
use super::source::read_still;
use super::store::{Room, Store};
use super::versions::Versions;
use crate::limits::{DIFFERENCES_WANTED_MAX, ENCODER_HINTS_MAX};

/// The order in which content of a site is encoded.
#[derive(Debug)]
pub(crate) struct Encoder {
    state: Mutex<State>,
    /// Wakes a thread.
    signal: Arc<Signal>,
    /// Longest text that is encoded although it stays in its file.
    file_bytes_max: u64,
    encodings: AtomicU64,
}

/// Something to encode.
#[derive(Debug)]
pub(crate) struct Wish {
    key: Arc<[u8]>,
    room: Room,
    /// The version to which the difference is wished, if not an encoding.
    dictionary: Option<Hash>,
}

#[derive(Debug, Default)]
struct State {
    /// Differences asked for, in the order of the asking; each once. They are soon done, and made in turn
    /// with the rest.
    differences: VecDeque<(Arc<[u8]>, Hash)>,
    /// Whether the wish that was taken last is one for a difference.
    was_difference: bool,
    /// Asked for, in the order of the asking; each key once.
    wanted: VecDeque<Arc<[u8]>>,
    wanted_once: HashSet<Arc<[u8]>>,
    /// The rest, the smallest first.
    others: BinaryHeap<Reverse<(usize, Arc<[u8]>)>>,
    /// Threads at work.
    busy: usize,
}

impl Encoder {
    /// Nothing to do yet; `signal` is rung when there is.
    pub(crate) fn new(signal: Arc<Signal>, file_bytes_max: u64) -> Self {
        Self { state: Mutex::default(), signal, file_bytes_max, encodings: AtomicU64::new(0) }
    }

    /// Adds an entry that was just loaded, if it is worth encoding. What stays in its file waits until it is
    /// asked for: a folder may be full of it.
    pub(crate) fn add(&self, entry: &Entry, order: &[Encoding], room: Room) {
        let waiting = |content: &&Content| self.is_waiting(content, order);
        let Some(content) = entry.content().filter(waiting) else { return };
        let mut state = self.lock();
        match room {
            Room::Made => state.want(&entry.key),
            Room::Found if content.file().is_some() => return,
            Room::Found => state.others.push(Reverse((content.length_bytes(), Arc::clone(&entry.key)))),
        }
        drop(state);
        self.signal.ring();
    }

    /// A worker says that an entry is used. Never waits.
    #[cold]
    pub(crate) fn hint(&self, entry: &Entry, order: &[Encoding]) {
        let is_in_file = entry.content().is_some_and(|content| content.file().is_some());
        if is_in_file && !entry.content().is_some_and(|content| self.is_waiting(content, order)) {
            return entry.settle();
        }
        if let Ok(mut state) = self.state.try_lock()
            && state.wanted.len() < ENCODER_HINTS_MAX
            && (is_in_file || !state.others.is_empty())
        {
            state.want(&entry.key);
            drop(state);
            if is_in_file {
                self.signal.ring();
            }
        }
    }

    /// A worker says that a difference to a version would have been the answer. Never waits.
    #[cold]
    pub(crate) fn ask_for_difference(&self, key: &Arc<[u8]>, dictionary: Hash) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let is_wanted = state.differences.iter().any(|(path, hash)| *hash == dictionary && path == key);
        if !is_wanted && state.differences.len() < DIFFERENCES_WANTED_MAX {
            state.differences.push_back((Arc::clone(key), dictionary));
            drop(state);
            self.signal.ring();
        }
    }

    /// What is to be done next, if anything.
    pub(crate) fn take(&self) -> Option<Wish> {
        let mut state = self.lock();
        let wish = match state.was_difference {
            true => state.take().or_else(|| state.take_difference()),
            false => state.take_difference().or_else(|| state.take()),
        }?;
        state.was_difference = wish.dictionary.is_some();
        state.busy += 1;
        Some(wish)
    }

    /// Does what was taken.
    pub(crate) fn encode(&self, wish: &Wish, store: &Store, versions: &Versions, order: &[Encoding]) {
        if let Some(dictionary) = &wish.dictionary {
            versions.make(store, &wish.key, dictionary);
        } else if let Some(entry) = store.get(&wish.key).filter(|entry| !entry.is_settled()) {
            self.encode_entry(store, entry, order, wish.room);
        }
        self.lock().busy -= 1;
    }

    /// Encodings made since the start.
    pub(crate) fn encodings(&self) -> u64 {
        self.encodings.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.differences.is_empty() && state.wanted.is_empty() && state.others.is_empty() && state.busy == 0
    }

    /// Makes what is missing, one encoding after the other, the quickest first; each is used as soon as it is
    /// there.
    fn encode_entry(&self, store: &Store, mut entry: Arc<Entry>, order: &[Encoding], room: Room) {
        let Ok(read) = entry.content().and_then(Content::file).map(read_file).transpose() else { return };
        for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::Brotli] {
            let Some(content) = entry.content() else { return };
            if !order.contains(&encoding) || !self.is_waiting(content, &[encoding]) {
                continue;
            }
            // Text becomes about a third of its length: no work without hope of a place.
            if room == Room::Found && !store.has_room(content.length_bytes() as u64 / 3, 16) {
                return;
            }
            let Some(next) = with_encoding(&entry, content, encoding, read.as_deref()) else { continue };
            let next = Arc::new(entry.successor(next));
            if !store.replace(&entry, &next, room) {
                // Tried again in vain each time it is used, if it is still there and too long for any room.
                if room == Room::Made {
                    entry.settle();
                }
                return;
            }
            self.encodings.fetch_add(1, Ordering::Relaxed);
            entry = next;
        }
        entry.settle();
    }

    /// Whether an encoding is missing that would be worth the work.
    fn is_waiting(&self, content: &Content, order: &[Encoding]) -> bool {
        let is_worthwhile = match content.file() {
            Some(body) => content.media.encodable && body.stamp.size_bytes <= self.file_bytes_max,
            None => encode::is_worthwhile(&content.media, content.length_bytes()),
        };
        is_worthwhile && order.iter().any(|encoding| content.representations[encoding.place()].is_none())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn want(&mut self, key: &Arc<[u8]>) {
        if self.wanted_once.insert(Arc::clone(key)) {
            self.wanted.push_back(Arc::clone(key));
        }
    }

    fn take(&mut self) -> Option<Wish> {
        if let Some(key) = self.wanted.pop_front() {
            self.wanted_once.remove(&key);
            return Some(Wish { key, room: Room::Made, dictionary: None });
        }
        self.others.pop().map(|Reverse((_, key))| Wish { key, room: Room::Found, dictionary: None })
    }

    fn take_difference(&mut self) -> Option<Wish> {
        let (key, dictionary) = self.differences.pop_front()?;
        Some(Wish { key, room: Room::Made, dictionary: Some(dictionary) })
    }
}

/// The bytes of a body that stays in its file; an error where it cannot be read, or was changed since: then
/// its entry is told or found to be another.
fn read_file(body: &FileBody) -> Result<Vec<u8>, ()> {
    read_still(&body.file, &body.stamp).map_err(drop)?.map_err(drop)
}

/// Content with an encoding more, made of the identity that is held, or of what was read of its file.
fn with_encoding(
    entry: &Entry,
    content: &Content,
    encoding: Encoding,
    read: Option<&[u8]>,
) -> Option<Content> {
    let encoded = match read {
        Some(body) => encode::encode_large(encoding, body)?,
        None => encode::encode(encoding, content.identity()?.body())?,
    };
    let mut next = content.clone();
    let common = content.common(entry.ruling.as_deref());
    next.representations[encoding.place()] = Some(prepare::held(&common, Some(encoding), &encoded));
    Some(next)
}
