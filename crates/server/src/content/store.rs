//! The store: from a path to its entry, without a lock.
//!
//! It owns the index, the budget and the rule of truth: what was read before a change was reported is never
//! taken in after it. Readers see immutable snapshots of small shards; writers take turns behind one lock and
//! replace one shard at a time. It must never read a file, and a reader must never wait for it.
//!
//! Order of calls for a writer: [`Store::ticket`], then read the disk, then [`Store::insert`].

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::{ArcSwap, Guard};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

use super::entry::Entry;
use super::ring::Ring;
use super::spare_keys::is_spare;
use crate::limits::{OPEN_FILES_MAX, SPARE_BUDGET_PART, STORE_SHARDS, WALK_BUDGET_SIXTEENTHS};

/// A shard of the index: hashes and entries in ascending order of the hashes.
type Shard = Vec<(u64, Arc<Entry>)>;

/// The map from paths to entries, read without a lock.
#[derive(Debug)]
pub(crate) struct Store {
    shards: Box<[ArcSwap<Shard>]>,
    hasher: RandomState,
    writer: Mutex<Writer>,
    /// For reports only; written by the writer of the turn.
    held_bytes: AtomicU64,
}

/// What only the writer of the turn sees.
#[derive(Debug)]
struct Writer {
    blocks: Ring,
    files: Ring,
    /// Former versions and differences, which give way before all else.
    spare: Ring,
    bytes_max: u64,
    /// How often something was removed from each shard because it changed.
    removals: Vec<u32>,
    entries: usize,
    closed: bool,
}

/// An entry found, borrowed from a snapshot that lives as long as this.
pub(crate) struct Found {
    shard: Guard<Arc<Shard>>,
    index: usize,
}

impl Deref for Found {
    type Target = Arc<Entry>;

    #[inline]
    fn deref(&self) -> &Arc<Entry> {
        &self.shard[self.index].1
    }
}

/// Proof of when a read began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    hash: u64,
    removals: u32,
}

/// How an entry may get its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// What was asked for: others go, those first that were not used.
    Made,
    /// What was not asked for: only if there is room, some of which is kept for others.
    Found,
}

impl Store {
    /// An empty store for so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let empty = Arc::new(Shard::new());
        let shards = (0..STORE_SHARDS).map(|_| ArcSwap::new(Arc::clone(&empty))).collect();
        let writer = Writer {
            blocks: Ring::new(0, bytes_max),
            files: Ring::new(1, OPEN_FILES_MAX as u64),
            spare: Ring::new(2, bytes_max / SPARE_BUDGET_PART),
            bytes_max,
            removals: vec![0; STORE_SHARDS],
            entries: 0,
            closed: false,
        };
        let held_bytes = AtomicU64::new(0);
        Self { shards, hasher: RandomState::default(), writer: Mutex::new(writer), held_bytes }
    }

    /// The entry under a key. Takes no lock, allocates nothing, and writes nothing that others read.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<Found> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[shard_of(hash)].load();
        let index = position(&shard, hash, key).ok()?;
        Some(Found { shard, index })
    }

    /// All entries at this moment.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        let of_shard = |shard: &ArcSwap<Shard>| shard.load_full();
        let shards = self.shards.iter().map(of_shard);
        shards
            .flat_map(|shard| shard.iter().map(|(_, entry)| Arc::clone(entry)).collect::<Vec<_>>())
            .collect()
    }

    /// The entry under a key, to keep.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Arc<Entry>> {
        self.find(key).map(|found| Arc::clone(&found))
    }

    /// To be taken before reading what will be inserted under the key.
    pub(crate) fn ticket(&self, key: &[u8]) -> Ticket {
        let hash = self.hasher.hash_one(key);
        Ticket { hash, removals: self.lock().removals[shard_of(hash)] }
    }

    /// Takes an entry in, in place of the one that is there. Gives false, and changes nothing, if a change
    /// was reported since the ticket was taken or there is no room.
    pub(crate) fn insert(&self, ticket: Ticket, entry: &Arc<Entry>, room: Room) -> bool {
        let mut writer = self.lock();
        if writer.removals[shard_of(ticket.hash)] != ticket.removals {
            return false;
        }
        self.put(&mut writer, ticket.hash, entry, room)
    }

    /// Puts an entry in place of `old`. Gives false, and changes nothing, if that is not there any more or
    /// there is no room.
    pub(crate) fn replace(&self, old: &Arc<Entry>, new: &Arc<Entry>, room: Room) -> bool {
        let mut writer = self.lock();
        let current = self.find(&old.key).is_some_and(|found| Arc::ptr_eq(&found, old));
        current && self.put(&mut writer, self.hasher.hash_one(&*new.key), new, room)
    }

    /// Removes what is under a key because it has changed, and gives it back. Reads under way will not be
    /// taken in.
    pub(crate) fn remove(&self, key: &[u8]) -> Option<Arc<Entry>> {
        let hash = self.hasher.hash_one(key);
        let mut writer = self.lock();
        writer.removals[shard_of(hash)] = writer.removals[shard_of(hash)].wrapping_add(1);
        self.take_out(&mut writer, hash, key)
    }

    /// Removes every entry whose key is chosen, because it has changed. No read under way will be taken in.
    pub(crate) fn remove_where(&self, chosen: impl Fn(&[u8]) -> bool) {
        let mut writer = self.lock();
        for removals in &mut writer.removals {
            *removals = removals.wrapping_add(1);
        }
        for shard in &self.shards {
            for (hash, entry) in shard.load_full().iter() {
                if chosen(&entry.key) {
                    self.take_out(&mut writer, *hash, &entry.key);
                }
            }
        }
    }

    /// Lets everything go and takes nothing in any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.remove_where(|_| true);
    }

    /// Whether so many bytes more have room within so many sixteenths of the budget.
    pub(crate) fn has_room(&self, cost_bytes: u64, sixteenths: u64) -> bool {
        self.lock().blocks.has_room(cost_bytes, sixteenths)
    }

    /// How many bytes are held, by the last writer's count.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// How many entries are held.
    pub(crate) fn entries(&self) -> usize {
        self.lock().entries
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A writer that panicked left at worst a wrong count, not a wrong answer.
        self.writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn put(&self, writer: &mut Writer, hash: u64, entry: &Arc<Entry>, room: Room) -> bool {
        let (cost, key) = (entry.cost_bytes(), &*entry.key);
        if is_spare(key) && !writer.closed && !self.make_spare_room(writer, entry, cost) {
            return false;
        }
        if writer.closed
            || !writer.blocks.could_hold(cost)
            || (room == Room::Found && !writer.blocks.has_room(cost, sixteenths(entry)))
        {
            return false;
        }
        let shard = &self.shards[shard_of(hash)];
        let mut next = Shard::clone(&shard.load());
        match position(&next, hash, key) {
            Ok(index) => {
                // In one step: at no time is a reader told that there is nothing.
                let (_, old) = std::mem::replace(&mut next[index], (hash, Arc::clone(entry)));
                writer.forget(&old);
            }
            Err(index) => next.insert(index, (hash, Arc::clone(entry))),
        }
        writer.take_in(entry);
        shard.store(Arc::new(next));
        self.make_room(writer, entry);
        self.held_bytes.store(writer.held_bytes(), Ordering::Relaxed);
        true
    }

    fn make_room(&self, writer: &mut Writer, spared: &Arc<Entry>) {
        while writer.is_over() {
            let spare = writer.spare.next_victim(spared);
            let Some(victim) = spare.or_else(|| writer.blocks.next_victim(spared)) else { break };
            self.take_out(writer, self.hasher.hash_one(&*victim.key), &victim.key);
        }
        while writer.files.is_over() {
            let Some(victim) = writer.files.next_victim(spared) else { break };
            self.take_out(writer, self.hasher.hash_one(&*victim.key), &victim.key);
        }
    }

    /// Makes room for what is spare, by what is spare alone.
    fn make_spare_room(&self, writer: &mut Writer, entry: &Arc<Entry>, cost: u64) -> bool {
        while !writer.has_spare_room(cost) {
            let Some(victim) = writer.spare.next_victim(entry) else { return false };
            self.take_out(writer, self.hasher.hash_one(&*victim.key), &victim.key);
        }
        true
    }

    fn take_out(&self, writer: &mut Writer, hash: u64, key: &[u8]) -> Option<Arc<Entry>> {
        let shard = &self.shards[shard_of(hash)];
        let current = shard.load();
        let index = position(&current, hash, key).ok()?;
        let mut next = Shard::clone(&current);
        let (_, entry) = next.remove(index);
        shard.store(Arc::new(next));
        writer.forget(&entry);
        self.held_bytes.store(writer.held_bytes(), Ordering::Relaxed);
        Some(entry)
    }
}

impl Writer {
    /// Entries with an open file are counted, those with a body in memory weighed.
    fn take_in(&mut self, entry: &Arc<Entry>) {
        if is_spare(&entry.key) {
            return self.spare.add(entry, entry.cost_bytes());
        }
        if entry.keeps_file() {
            self.files.add(entry, 1);
        }
        if entry.is_weighed() {
            self.blocks.add(entry, entry.cost_bytes());
        }
        self.entries += 1;
    }

    fn forget(&mut self, entry: &Entry) {
        if is_spare(&entry.key) {
            return self.spare.remove(entry, entry.cost_bytes());
        }
        if entry.keeps_file() {
            self.files.remove(entry, 1);
        }
        if entry.is_weighed() {
            self.blocks.remove(entry, entry.cost_bytes());
        }
        self.entries -= 1;
    }

    fn held_bytes(&self) -> u64 {
        self.blocks.held() + self.spare.held()
    }

    fn is_over(&self) -> bool {
        self.held_bytes() > self.bytes_max
    }

    fn has_spare_room(&self, cost: u64) -> bool {
        self.spare.has_room(cost, 16) && self.held_bytes().saturating_add(cost) <= self.bytes_max
    }
}

/// What nobody has asked for leaves room for others; more representations of what is held may use all of it.
fn sixteenths(entry: &Entry) -> u64 {
    if entry.content().is_some_and(|content| content.encodings() > 0) { 16 } else { WALK_BUDGET_SIXTEENTHS }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    // The upper bits choose the shard, so that the entries of one shard still differ in the lower ones.
    (hash >> (64 - STORE_SHARDS.trailing_zeros())) as usize
}

/// Where a key stands in a shard, or where it would be inserted.
#[inline]
fn position(shard: &Shard, hash: u64, key: &[u8]) -> Result<usize, usize> {
    let start = shard.partition_point(|&(other, _)| other < hash);
    let same = shard[start..].iter().take_while(|&&(other, _)| other == hash);
    for (offset, (_, entry)) in same.enumerate() {
        if *entry.key == *key {
            return Ok(start + offset);
        }
    }
    Err(start)
}

#[cfg(test)]
#[path = "store/tests.rs"]
mod tests;
