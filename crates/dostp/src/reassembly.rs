//! Messages under way: fragments in, whole messages or faults out, within bounds of memory.
//!
//! It owns the bytes of incomplete messages and their account. It must never read a clock, keep a message
//! beyond its time, or let one source take the room of all.
//!
//! Order of calls: [`Reassembly::add`] for each fragment, [`Reassembly::expire`] before it.

use std::collections::{HashMap, VecDeque};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

use crate::fault::{Drops, Fault};
use crate::header::{Flags, Header};
use crate::limits::{
    MESSAGE_AGE_MS_MAX, MESSAGE_BYTES_MAX, NODE_BYTES_MAX, NODE_MESSAGES_MAX, SOURCE_BYTES_MAX,
    SOURCE_MESSAGES_MAX,
};

/// The bounds of incomplete messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Bytes of one source.
    pub source_bytes_max: usize,
    /// Messages of one source.
    pub source_messages_max: usize,
    /// Most bytes of all peers together.
    pub node_bytes_max: usize,
    /// Most messages of all peers together.
    pub node_messages_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            message_bytes_max: MESSAGE_BYTES_MAX,
            source_bytes_max: SOURCE_BYTES_MAX,
            source_messages_max: SOURCE_MESSAGES_MAX,
            node_bytes_max: NODE_BYTES_MAX,
            node_messages_max: NODE_MESSAGES_MAX,
        }
    }
}

/// What names a message of one source: type, destination, both ports, message id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name(u128);

impl Name {
    #[inline]
    fn of(header: &Header) -> Self {
        Self(
            (header.kind as u128) << 64
                | u128::from(header.destination) << 48
                | u128::from(header.source_port) << 32
                | u128::from(header.destination_port) << 16
                | u128::from(header.message_id),
        )
    }
}

#[derive(Debug)]
struct Message {
    name: Name,
    /// Counted over all messages, so that the oldest is known.
    serial: u64,
    next_sequence: u8,
    /// What the account holds for it: the capacity of `bytes`, once it waits for the next fragment.
    held: usize,
    bytes: Vec<u8>,
}

/// Messages of a source, oldest first.
#[derive(Debug, Default)]
struct Source {
    messages: VecDeque<Message>,
    bytes: usize,
}

/// A message in the order of arrival; it may be gone by now.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    serial: u64,
    source: u16,
    begun_ms: u64,
}

/// All messages under way to one node.
#[derive(Debug)]
pub struct Reassembly {
    bounds: Bounds,
    sources: HashMap<u16, Source, SeedableRandomState>,
    arrivals: VecDeque<Arrival>,
    messages: usize,
    bytes: usize,
    serial: u64,
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// The fragment waits for the next.
    Stored,
    /// The message is complete.
    Message(Vec<u8>),
    /// The fragment was dropped, and its message if it had one.
    Dropped(Fault),
}

impl Reassembly {
    /// Empty. The seed keeps strangers from choosing sources that collide in the table.
    pub fn new(bounds: Bounds, seed: u64) -> Self {
        Self {
            bounds,
            sources: HashMap::with_hasher(SeedableRandomState::with_seed(seed, SharedSeed::global_fixed())),
            arrivals: VecDeque::new(),
            messages: 0,
            bytes: 0,
            serial: 0,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Messages under way.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Takes a fragment that is not a whole message. Every message or fragment that is dropped is counted.
    pub fn add(&mut self, header: &Header, payload: &[u8], now_ms: u64, drops: &mut Drops) -> Added {
        let added = if header.flags.has(Flags::FIRST) {
            self.begin(header, payload, now_ms, drops)
        } else {
            self.append(header, payload, drops)
        };
        // A message that had to make room was counted with the others that had to.
        if let Added::Dropped(fault) = added
            && fault != Fault::Room
        {
            drops.count(fault);
        }
        added
    }

    fn append(&mut self, header: &Header, payload: &[u8], drops: &mut Drops) -> Added {
        let name = Name::of(header);
        let Some(source) = self.sources.get_mut(&header.source) else { return Added::Dropped(Fault::Orphan) };
        let Some(place) = source.find(name) else { return Added::Dropped(Fault::Orphan) };
        let message = &mut source.messages[place];
        let fault = if message.next_sequence != header.sequence {
            Fault::Order
        } else if message.bytes.len() + payload.len() > self.bounds.message_bytes_max {
            Fault::Size
        } else {
            message.next_sequence = message.next_sequence.wrapping_add(1);
            append(&mut message.bytes, payload, self.bounds.message_bytes_max);
            if header.flags.has(Flags::FINAL) {
                return self
                    .remove(header.source, name)
                    .map_or(Added::Dropped(Fault::Orphan), Added::Message);
            }
            let grown = message.bytes.capacity() - message.held;
            if grown == 0 {
                return Added::Stored;
            }
            let serial = message.serial;
            message.held += grown;
            source.bytes += grown;
            self.bytes += grown;
            let within =
                source.bytes <= self.bounds.source_bytes_max && self.bytes <= self.bounds.node_bytes_max;
            return if within { Added::Stored } else { self.make_room(header.source, serial, drops) };
        };
        self.remove(header.source, name);
        Added::Dropped(fault)
    }

    /// A whole message came with this name: what was under way is void.
    pub fn void(&mut self, header: &Header) -> bool {
        self.messages > 0 && self.remove(header.source, Name::of(header)).is_some()
    }

    /// Drops what is too old, and says how many.
    pub fn expire(&mut self, now_ms: u64) -> usize {
        let mut expired = 0;
        while let Some(&oldest) = self.arrivals.front() {
            if self.has_serial(oldest.source, oldest.serial) {
                if now_ms < oldest.begun_ms + MESSAGE_AGE_MS_MAX {
                    break;
                }
                self.drop_oldest_of(oldest.source);
                expired += 1;
            }
            self.arrivals.pop_front();
        }
        expired
    }

    /// When [`Reassembly::expire`] has something to do at the earliest.
    pub fn expiry_ms(&self) -> Option<u64> {
        self.arrivals.front().map(|oldest| oldest.begun_ms + MESSAGE_AGE_MS_MAX)
    }

    /// Drops all of a source.
    pub fn forget(&mut self, source: u16) {
        if let Some(gone) = self.sources.remove(&source) {
            self.messages -= gone.messages.len();
            self.bytes -= gone.bytes;
        }
    }

    fn begin(&mut self, header: &Header, payload: &[u8], now_ms: u64, drops: &mut Drops) -> Added {
        let name = Name::of(header);
        if self.remove(header.source, name).is_some() {
            drops.count(Fault::Order);
        }
        if payload.len() > self.bounds.message_bytes_max {
            return Added::Dropped(Fault::Size);
        }
        self.serial += 1;
        let serial = self.serial;
        let bytes = payload.to_vec();
        let held = bytes.capacity();
        let source = self.sources.entry(header.source).or_default();
        source.messages.push_back(Message { name, serial, next_sequence: 1, held, bytes });
        source.bytes += held;
        self.bytes += held;
        self.messages += 1;
        self.tidy_arrivals();
        self.arrivals.push_back(Arrival { serial, source: header.source, begun_ms: now_ms });
        self.make_room(header.source, serial, drops)
    }

    /// Drops the oldest messages of this source, then of all, until both are within their bounds, and says
    /// whether the message with this serial is still there.
    fn make_room(&mut self, from: u16, serial: u64, drops: &mut Drops) -> Added {
        while self.sources.get(&from).is_some_and(|source| {
            source.bytes > self.bounds.source_bytes_max
                || source.messages.len() > self.bounds.source_messages_max
        }) {
            self.drop_oldest_of(from);
            drops.count(Fault::Room);
        }
        while self.bytes > self.bounds.node_bytes_max || self.messages > self.bounds.node_messages_max {
            let Some(oldest) = self.arrivals.pop_front() else { break };
            // A source's messages begin in the order of arrival: the oldest of all is the first of its own.
            if self.has_serial(oldest.source, oldest.serial) {
                self.drop_oldest_of(oldest.source);
                drops.count(Fault::Room);
            }
        }
        if self.has_serial(from, serial) { Added::Stored } else { Added::Dropped(Fault::Room) }
    }

    fn has_serial(&self, source: u16, serial: u64) -> bool {
        self.sources.get(&source).is_some_and(|source| {
            source.messages.binary_search_by_key(&serial, |message| message.serial).is_ok()
        })
    }

    fn drop_oldest_of(&mut self, from: u16) {
        let Some(source) = self.sources.get_mut(&from) else { return };
        if let Some(oldest) = source.messages.pop_front() {
            source.bytes -= oldest.held;
            self.bytes -= oldest.held;
            self.messages -= 1;
        }
        if source.messages.is_empty() {
            self.sources.remove(&from);
        }
    }

    /// Takes a message out, with its bytes.
    fn remove(&mut self, from: u16, name: Name) -> Option<Vec<u8>> {
        let source = self.sources.get_mut(&from)?;
        let message = source.messages.remove(source.find(name)?)?;
        source.bytes -= message.held;
        self.bytes -= message.held;
        self.messages -= 1;
        if source.messages.is_empty() {
            self.sources.remove(&from);
        }
        Some(message.bytes)
    }

    /// Forgets arrivals of messages that are gone, when they are more than the others.
    fn tidy_arrivals(&mut self) {
        if self.arrivals.len() < 2 * self.messages + 64 {
            return;
        }
        let arrivals = std::mem::take(&mut self.arrivals);
        self.arrivals =
            arrivals.into_iter().filter(|arrival| self.has_serial(arrival.source, arrival.serial)).collect();
    }
}

/// Appends, and never makes room for more than a message may have: a bound of a source has to hold one.
#[inline]
fn append(bytes: &mut Vec<u8>, payload: &[u8], bytes_max: usize) {
    let needed = bytes.len() + payload.len();
    if needed > bytes.capacity() {
        let wanted = (2 * bytes.capacity()).clamp(needed, bytes_max);
        bytes.reserve_exact(wanted - bytes.len());
    }
    bytes.extend_from_slice(payload);
}

impl Source {
    #[inline]
    fn find(&self, name: Name) -> Option<usize> {
        // Fragments come in order: most often the message that was begun last goes on.
        let last = self.messages.len().checked_sub(1)?;
        if self.messages[last].name == name {
            return Some(last);
        }
        self.messages.iter().position(|message| message.name == name)
    }
}

#[cfg(test)]
mod tests;
