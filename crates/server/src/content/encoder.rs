//! The encoder: threads that encode held content, that first which was asked for, then the smallest.
//!
//! It owns the order of work. It must never hold up a worker, nor a thread that answers: its threads step
//! back behind all others, and hints that come at a bad moment are dropped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::encode;
use super::entry::{Content, Entry};
use super::negotiate::Encoding;
use super::prepare;
use super::store::{Room, Store};
use crate::limits::ENCODER_HINTS_MAX;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    state: Mutex<State>,
    wished: Condvar,
    encodings: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Asked for, in the order of the asking; each key once.
    wanted: VecDeque<Arc<[u8]>>,
    wanted_once: HashSet<Arc<[u8]>>,
    /// The rest, the smallest first.
    others: BinaryHeap<Reverse<(usize, Arc<[u8]>)>>,
    /// Threads at work.
    busy: usize,
}

impl Encoder {
    /// Adds an entry that was just loaded, if it is worth encoding.
    pub(crate) fn add(&self, entry: &Entry, order: &[Encoding], room: Room) {
        let Some(content) = entry.content().filter(|content| is_waiting(content, order)) else { return };
        let mut state = self.lock();
        match room {
            Room::Made => state.want(&entry.key),
            Room::Found => state.others.push(Reverse((content.length_bytes(), Arc::clone(&entry.key)))),
        }
        drop(state);
        self.wished.notify_one();
    }

    /// A worker says that an entry is used. Never waits.
    pub(crate) fn hint(&self, key: &Arc<[u8]>) {
        if let Ok(mut state) = self.state.try_lock()
            && state.wanted.len() < ENCODER_HINTS_MAX
            && !state.others.is_empty()
        {
            state.want(key);
        }
    }

    /// What an encoder thread does, for ever.
    pub(crate) fn run(&self, store: &Store, order: &[Encoding]) -> ! {
        // Behind everyone else; where that is not allowed it works all the same.
        let _ = rustix::process::setpriority_process(None, 19);
        loop {
            let (key, room) = self.next();
            if let Some(entry) = store.get(&key).filter(|entry| !entry.is_settled()) {
                self.encode_entry(store, entry, order, room);
            }
            self.lock().busy -= 1;
        }
    }

    /// Encodings made since the start.
    pub(crate) fn encodings(&self) -> u64 {
        self.encodings.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.wanted.is_empty() && state.others.is_empty() && state.busy == 0
    }

    fn next(&self) -> (Arc<[u8]>, Room) {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.take() {
                state.busy += 1;
                return next;
            }
            state = self.wished.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Makes what is missing, one encoding after the other, the quickest first; each is used as soon as it is
    /// there.
    fn encode_entry(&self, store: &Store, mut entry: Arc<Entry>, order: &[Encoding], room: Room) {
        for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::Brotli] {
            let Some(content) = entry.content() else { return };
            if !order.contains(&encoding) || !is_waiting(content, &[encoding]) {
                continue;
            }
            // Text becomes about a third of its length: no work without hope of a place.
            if room == Room::Found && !store.has_room(content.length_bytes() as u64 / 3, 16) {
                return;
            }
            let Some(next) = with_encoding(content, encoding) else { continue };
            let next = Arc::new(entry.successor(next));
            if !store.replace(&entry, &next, room) {
                return;
            }
            self.encodings.fetch_add(1, Ordering::Relaxed);
            entry = next;
        }
        entry.settle();
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

    fn take(&mut self) -> Option<(Arc<[u8]>, Room)> {
        if let Some(key) = self.wanted.pop_front() {
            self.wanted_once.remove(&key);
            return Some((key, Room::Made));
        }
        self.others.pop().map(|Reverse((_, key))| (key, Room::Found))
    }
}

/// Whether an encoding is missing that would be worth the work.
fn is_waiting(content: &Content, order: &[Encoding]) -> bool {
    let held = content.identity().is_some_and(|identity| {
        identity.file.is_none() && encode::is_worthwhile(content.media, identity.body().len())
    });
    held && order.iter().any(|encoding| content.representations[encoding.place()].is_none())
}

fn with_encoding(content: &Content, encoding: Encoding) -> Option<Content> {
    let encoded = encode::encode(encoding, content.identity()?.body())?;
    let mut next = content.clone();
    next.representations[encoding.place()] = Some(prepare::held(&content.common(), Some(encoding), &encoded));
    Some(next)
}
