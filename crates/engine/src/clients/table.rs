//! How many connections each client has, and how many requests it may still make: one table for all workers,
//! because the kernel spreads a client's connections over them.
//!
//! It never waits: every place is two atomic words, and whoever finds no way in after a few attempts is told
//! so. It must never grow: a place is given to another client as soon as it says nothing any more, with no
//! connection counted and the whole burst of requests earned back.
//!
//! # Exactness
//! The client's tag and its count stand in one word, so that a count can never go to the next client of the
//! place. A client has one place: places are only given away by whoever holds the client's bucket by its
//! version, and only if that did not change while looking. Two clients are taken for one with a chance of
//! 2^-39 times the places of two buckets; a request more or less may be counted when a place changes hands.

use std::hash::{BuildHasher, RandomState};
use std::hint::spin_loop;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock};

use staunch_netio::UNIX_PEER;

use super::policy::ClientRate;
use super::trusted::bits;
use crate::limits::{CLIENT_ATTEMPTS_MAX, CLIENT_BUCKETS_COUNT};

/// Places a bucket: with its version they fill two cache lines.
const PLACES: usize = 7;
/// Low bits of a word: the connections counted.
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The table of a process, made when it is first needed. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ClientTable(Arc<OnceLock<Table>>);

impl ClientTable {
    pub(crate) fn get(&self) -> &Table {
        self.0.get_or_init(|| Table::new(CLIENT_BUCKETS_COUNT))
    }
}

/// A client: an address, or all addresses of a prefix of IPv6, or all who come by socket files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(u128);

impl Client {
    /// No prefix of addresses: `::` would be the one of `::1`, too.
    const BY_FILES: Self = Self(u128::MAX);

    /// The client of an address.
    pub(crate) fn new(address: IpAddr, prefix_ipv6: u8) -> Self {
        if address == UNIX_PEER {
            return Self::BY_FILES;
        }
        let address = address.to_canonical();
        let free_bits = if address.is_ipv4() { 0 } else { 128 - u32::from(prefix_ipv6.min(128)) };
        Self(bits(address) & u128::MAX.checked_shl(free_bits).unwrap_or(0))
    }
}

/// A connection that is counted. It has to be given back.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket {
    place: u32,
}

/// What came of counting a connection.
#[derive(Debug)]
pub(crate) enum Entry {
    /// The connection is counted: its ticket, and how many the client has with it.
    Counted(Ticket, u64),
    /// The client has as many already.
    TooMany,
    /// There is no place for the client.
    NoPlace,
}

/// What came of asking for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The request may be made.
    Granted,
    /// The request comes too soon.
    TooSoon,
    /// There is no place for the client.
    NoPlace,
}

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    keys: RandomState,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Bucket {
    /// Odd while somebody gives a client of this bucket a place.
    version: AtomicU64,
    places: [ClientCell; PLACES],
}

const _: () = assert!(size_of::<Bucket>() == 128);

#[derive(Debug, Default)]
struct ClientCell {
    /// Tag and count; 0 before the first client.
    word: AtomicU64,
    /// When the client will have earned back its whole burst of requests, in nanoseconds.
    whole_ns: AtomicU64,
}

impl ClientCell {
    fn is_of(&self, tag: u64) -> bool {
        self.word.load(Acquire) >> COUNT_BITS == tag
    }

    /// Whether losing it changes nothing for its client.
    fn says_nothing(&self, word: u64, now_ns: u64) -> bool {
        word & COUNT_MASK == 0 && self.whole_ns.load(Relaxed) <= now_ns
    }
}

impl Table {
    fn new(buckets: usize) -> Self {
        assert!(buckets.is_power_of_two() && buckets > 1);
        Self { buckets: (0..buckets).map(|_| Bucket::default()).collect(), keys: RandomState::new() }
    }

    /// Counts a connection, if the client has fewer than so many.
    pub(crate) fn enter(&self, client: Client, connections_max: u64, now_ns: u64) -> Entry {
        let whereabouts = self.whereabouts(client);
        for _ in 0..CLIENT_ATTEMPTS_MAX {
            let Some(index) = self.find_or_give(whereabouts, now_ns) else { break };
            let word = &self.place(index).word;
            let mut seen = word.load(Acquire);
            while seen >> COUNT_BITS == whereabouts.tag {
                let count = seen & COUNT_MASK;
                if count >= connections_max.min(COUNT_MASK) {
                    return Entry::TooMany;
                }
                match word.compare_exchange_weak(seen, seen + 1, AcqRel, Acquire) {
                    Ok(_) => return Entry::Counted(Ticket { place: index }, count + 1),
                    Err(now) => seen = now,
                }
            }
        }
        Entry::NoPlace
    }

    /// The connection is over.
    pub(crate) fn leave(&self, ticket: Ticket) {
        // While it is counted the place is not given away.
        let before = self.place(ticket.place).word.fetch_sub(1, AcqRel);
        debug_assert!(before & COUNT_MASK > 0, "a connection left that was not counted");
    }

    /// Asks for one request of a client.
    pub(crate) fn ask(&self, client: Client, rate: ClientRate, now_ns: u64) -> Turn {
        let whereabouts = self.whereabouts(client);
        let Some(index) = self.find_or_give(whereabouts, now_ns) else { return Turn::NoPlace };
        let latest_ns = now_ns + rate.interval_ns * rate.burst;
        let grant = |whole_ns: u64| {
            Some(whole_ns.max(now_ns) + rate.interval_ns).filter(|next_ns| *next_ns <= latest_ns)
        };
        match self.place(index).whole_ns.fetch_update(AcqRel, Acquire, grant) {
            Ok(_) => Turn::Granted,
            Err(_) => Turn::TooSoon,
        }
    }

    /// The client's place, given to it if it has none.
    fn find_or_give(&self, whereabouts: Whereabouts, now_ns: u64) -> Option<u32> {
        let version = &self.buckets[whereabouts.bucket].version;
        for _ in 0..CLIENT_ATTEMPTS_MAX {
            let seen = version.load(Acquire);
            if let Some(index) = self.places_of(whereabouts).find(|i| self.place(*i).is_of(whereabouts.tag)) {
                return Some(index);
            }
            let even = seen & 1 == 0;
            if even && version.compare_exchange(seen, seen + 1, AcqRel, Relaxed).is_ok() {
                let given = self.places_of(whereabouts).find(|i| self.give(*i, whereabouts.tag, now_ns));
                version.store(seen + 2, Release);
                return given;
            }
            spin_loop();
        }
        None
    }

    /// Gives a place to a client, unless it still says something of another.
    fn give(&self, index: u32, tag: u64, now_ns: u64) -> bool {
        let place = self.place(index);
        let seen = place.word.load(Acquire);
        place.says_nothing(seen, now_ns)
            && place.word.compare_exchange(seen, tag << COUNT_BITS, AcqRel, Relaxed).is_ok()
    }

    fn place(&self, index: u32) -> &ClientCell {
        &self.buckets[index as usize / PLACES].places[index as usize % PLACES]
    }

    /// The places of a client's two buckets.
    fn places_of(&self, whereabouts: Whereabouts) -> impl Iterator<Item = u32> {
        [whereabouts.bucket, whereabouts.other]
            .into_iter()
            .flat_map(|bucket| (bucket * PLACES) as u32..((bucket + 1) * PLACES) as u32)
    }

    fn whereabouts(&self, client: Client) -> Whereabouts {
        let hash = self.keys.hash_one(client.0);
        let mask = self.buckets.len() - 1;
        // Never 0, which stands for nobody.
        let tag = hash >> COUNT_BITS | 1;
        let bucket = hash as usize & mask;
        Whereabouts { tag, bucket, other: bucket ^ ((tag as usize & mask) | 1) }
    }
}

/// Where a client may stand, and what its words begin with.
#[derive(Debug, Clone, Copy)]
struct Whereabouts {
    tag: u64,
    bucket: usize,
    other: usize,
}

#[cfg(test)]
mod tests;
