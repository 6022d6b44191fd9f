//! The share of each client: of the links of a worker, and of the line of an application.
//!
//! This module owns how much one client may hold while others are there. It must never count a client that
//! it cannot tell from others (one without an address, or a trusted proxy that names nobody), nor keep a word
//! of a client that holds nothing.
//!
//! A client alone is held back by nothing but a reserve of links, so that whoever comes next finds room. All
//! workers know whether there were several lately. Links are counted by each worker for itself, for each has
//! a number of its own that it may open; a line is shared by all workers, and so is its count, behind a lock
//! that is taken only while requests wait.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use staunch_engine::UNIX_PEER;

use crate::limits::{
    PROXY_CLIENT_LINE_MIN, PROXY_CLIENT_LINKS_MIN, PROXY_CLIENT_PART, PROXY_LINE_CROWDED_MS,
    PROXY_LINKS_RESERVED_PART, PROXY_OTHERS_SEEN_MS,
};

/// Time after which it is looked again whether more than one client is there, in milliseconds: workers write
/// to memory that they share once in so long.
const SEEN_EVERY_MS: u64 = 1_000;

/// Between two lines for the operator, in milliseconds.
const NOTICE_MS: u64 = 1_000;

/// A client, as its share is counted: an address, or all addresses of a prefix of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShareOwner(u128);

impl ShareOwner {
    /// The client at an address; `None` without one.
    pub(super) fn at(client: Option<IpAddr>, ipv6_bits: u8) -> Option<Self> {
        let client = client.filter(|client| *client != UNIX_PEER)?;
        Some(Self(match client.to_canonical() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => {
                let free_bits = 128 - u32::from(ipv6_bits.min(128));
                address.to_bits() & u128::MAX.checked_shl(free_bits).unwrap_or(0)
            }
        }))
    }

    /// A number other than 0 that other clients hardly have.
    fn mark(self) -> u64 {
        ((self.0 >> 64) as u64 ^ self.0 as u64).max(1)
    }
}

/// Whether more than one client was there lately, for all workers.
#[derive(Debug, Default)]
pub(super) struct ClientsSeen {
    /// The mark of the client that was noted last; 0 before the first.
    last: AtomicU64,
    /// The moment in which another client asked than the one before, in milliseconds of the workers' clock;
    /// 0: never.
    changed_ms: AtomicU64,
}

impl ClientsSeen {
    /// A client has asked.
    pub(super) fn note(&self, owner: ShareOwner, now_ms: u64) {
        let changed_ms = self.changed_ms.load(Relaxed);
        let is_known = changed_ms > 0 && now_ms.saturating_sub(changed_ms) < SEEN_EVERY_MS;
        if is_known || self.last.load(Relaxed) == owner.mark() {
            return;
        }
        if self.last.swap(owner.mark(), Relaxed) != 0 {
            self.changed_ms.store(now_ms.max(1), Relaxed);
        }
    }

    /// Whether there was more than one.
    pub(super) fn are_several(&self, now_ms: u64) -> bool {
        let changed_ms = self.changed_ms.load(Relaxed);
        changed_ms > 0 && now_ms.saturating_sub(changed_ms) < PROXY_OTHERS_SEEN_MS
    }
}

/// So much a client holds, of so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) held: u32,
    pub(super) of: u32,
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.held, self.of)
    }
}

/// Counts of requests that were refused so, since the start.
#[derive(Debug, Default)]
pub(super) struct ExcessCounts {
    pub(super) links: AtomicU64,
    pub(super) line: AtomicU64,
    /// The moment in which the operator was told last, in milliseconds of the workers' clock; 0: never.
    told_ms: AtomicU64,
}

impl ExcessCounts {
    /// Counts a client that has its share of links. Whether the operator is to be told: once a second.
    pub(super) fn count_links(&self, now_ms: u64) -> bool {
        self.links.fetch_add(1, Relaxed);
        self.claims_notice(now_ms)
    }

    /// Counts a client that has its share of a line. Whether the operator is to be told: once a second.
    pub(super) fn count_line(&self, now_ms: u64) -> bool {
        self.line.fetch_add(1, Relaxed);
        self.claims_notice(now_ms)
    }

    fn claims_notice(&self, now_ms: u64) -> bool {
        let told_ms = self.told_ms.load(Relaxed);
        let is_due = told_ms == 0 || now_ms.saturating_sub(told_ms) >= NOTICE_MS;
        is_due && self.told_ms.compare_exchange(told_ms, now_ms.max(1), Relaxed, Relaxed).is_ok()
    }
}

/// How many each client holds: no more clients than there are things to hold.
#[derive(Debug, Default)]
struct Holders {
    all: u32,
    of_clients: HashMap<ShareOwner, u32>,
}

impl Holders {
    fn enter(&mut self, owner: Option<ShareOwner>) {
        self.all += 1;
        if let Some(owner) = owner {
            *self.of_clients.entry(owner).or_default() += 1;
        }
    }

    fn leave(&mut self, owner: Option<ShareOwner>) {
        self.all -= 1;
        if let Some(owner) = owner
            && let Some(count) = self.of_clients.get_mut(&owner)
        {
            *count -= 1;
            if *count == 0 {
                self.of_clients.remove(&owner);
            }
        }
    }

    fn of(&self, owner: ShareOwner) -> u32 {
        self.of_clients.get(&owner).copied().unwrap_or(0)
    }
}

/// Links of one worker that serve exchanges, by their clients.
#[derive(Debug)]
pub(super) struct LinkShares {
    links_max: u32,
    holders: Holders,
}

impl LinkShares {
    /// The shares of so many links.
    pub(super) fn new(links_max: u32) -> Self {
        Self { links_max, holders: Holders::default() }
    }

    pub(super) fn enter(&mut self, owner: Option<ShareOwner>) {
        self.holders.enter(owner);
    }

    pub(super) fn leave(&mut self, owner: Option<ShareOwner>) {
        self.holders.leave(owner);
    }

    /// The links of a client that may have no more.
    pub(super) fn excess(&self, owner: ShareOwner, are_several: bool) -> Option<Excess> {
        let is_judged = are_several && self.holders.all > self.links_max / 2;
        let part = match is_judged {
            true => self.links_max / PROXY_CLIENT_PART,
            false => self.links_max - self.links_max / PROXY_LINKS_RESERVED_PART,
        };
        let held = self.holders.of(owner);
        (held >= part.max(PROXY_CLIENT_LINKS_MIN)).then_some(Excess { held, of: self.links_max })
    }
}

/// The line of one application, by its clients.
#[derive(Debug, Default)]
pub(super) struct LineShares {
    /// The moment in which somebody found no place in it last, in milliseconds of the workers' clock; 0:
    /// never.
    crowded_ms: AtomicU64,
    desk: Mutex<LineDesk>,
}

#[derive(Debug, Default)]
struct LineDesk {
    holders: Holders,
    /// Requests that stood in line when it was full.
    room: u32,
}

impl LineShares {
    pub(super) fn enter(&self, owner: Option<ShareOwner>) {
        self.desk().holders.enter(owner);
    }

    pub(super) fn leave(&self, owner: Option<ShareOwner>) {
        self.desk().holders.leave(owner);
    }

    /// There was no place for a request.
    pub(super) fn note_full(&self, now_ms: u64) {
        let mut desk = self.desk();
        desk.room = desk.holders.all;
        self.crowded_ms.store(now_ms.max(1), Relaxed);
    }

    /// The places of a client that may have no more: none is refused while the line has room for all.
    pub(super) fn excess(&self, owner: ShareOwner, are_several: bool, now_ms: u64) -> Option<Excess> {
        let crowded_ms = self.crowded_ms.load(Relaxed);
        let is_crowded = crowded_ms > 0 && now_ms.saturating_sub(crowded_ms) < PROXY_LINE_CROWDED_MS;
        if !is_crowded || !are_several {
            return None;
        }
        let desk = self.desk();
        let held = desk.holders.of(owner);
        let is_excess = held >= (desk.room / PROXY_CLIENT_PART).max(PROXY_CLIENT_LINE_MIN);
        let others = desk.holders.all - held;
        if is_excess && others > 0 && desk.holders.all >= desk.room - desk.room / PROXY_CLIENT_PART {
            // Room is kept for the others as long as this client would take it and they need it.
            self.crowded_ms.store(now_ms.max(1), Relaxed);
        }
        is_excess.then_some(Excess { held, of: desk.room })
    }

    fn desk(&self) -> MutexGuard<'_, LineDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests at an application that go before others, by their clients.
#[derive(Debug, Default)]
pub(super) struct PrecedenceShares(Mutex<Holders>);

/// The precedence of one request, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Precedence {
    shares: Arc<PrecedenceShares>,
    owner: ShareOwner,
}

impl PrecedenceShares {
    /// Lets one more request of a client go before others; `None` while so many of its requests do.
    pub(super) fn take(self: &Arc<Self>, owner: ShareOwner, most: u32) -> Option<Precedence> {
        let mut holders = self.holders();
        (holders.of(owner) < most).then(|| {
            holders.enter(Some(owner));
            Precedence { shares: Arc::clone(self), owner }
        })
    }

    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        self.shares.holders().leave(Some(self.owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_precedence_with_so_many_requests_until_they_end() {
        let shares = Arc::new(PrecedenceShares::default());
        let (greedy, other) = (owner("192.0.2.1"), owner("192.0.2.2"));
        let held: Vec<_> = (0..2).map_while(|_| shares.take(greedy, 2)).collect();
        assert!(held.len() == 2 && shares.take(greedy, 2).is_none() && shares.take(other, 1).is_some());
        drop(held);
        assert!(shares.holders().of_clients.is_empty());
    }

    fn owner(client: &str) -> ShareOwner {
        ShareOwner::at(client.parse().ok(), 64).expect("an address")
    }

    #[test]
    fn a_client_is_an_address_or_a_prefix() {
        assert_eq!(owner("2001:db8::1"), owner("2001:db8::2:0:0:1"));
        assert_ne!(owner("2001:db8::1"), owner("2001:db8:0:1::1"));
        assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
        assert_ne!(owner("192.0.2.2").mark(), owner("192.0.2.3").mark());
        assert_eq!(ShareOwner::at(Some(UNIX_PEER), 64), None, "a socket file");
    }

    #[test]
    fn several_clients_are_seen_for_a_while_and_one_never_is() {
        let seen = ClientsSeen::default();
        (0..100).for_each(|number| seen.note(owner("192.0.2.1"), number * 60_000));
        assert!(!seen.are_several(6_000_000));
        seen.note(owner("192.0.2.2"), 6_000_000);
        assert!(seen.are_several(6_000_000 + PROXY_OTHERS_SEEN_MS - 1));
        assert!(!seen.are_several(6_000_000 + PROXY_OTHERS_SEEN_MS));
    }

    #[test]
    fn a_client_has_a_quarter_of_the_links_once_half_are_taken_and_others_are_there() {
        let (greedy, other) = (owner("192.0.2.1"), owner("192.0.2.2"));
        let mut shares = LinkShares::new(64);
        let mut held = 0;
        while shares.excess(greedy, true).is_none() {
            shares.enter(Some(greedy));
            held += 1;
        }
        assert_eq!(held, 33, "half, and the one that makes it more");
        assert_eq!(shares.excess(other, true), None);
        (0..16).for_each(|_| shares.enter(Some(other)));
        assert_eq!(shares.excess(other, true), Some(Excess { held: 16, of: 64 }));
        (0..32).for_each(|_| shares.leave(Some(greedy)));
        assert_eq!(shares.excess(other, true), None, "there is room again");
    }

    #[test]
    fn a_client_alone_has_all_links_but_a_reserve_and_few_links_are_not_shared_out() {
        let alone = owner("192.0.2.1");
        let mut shares = LinkShares::new(64);
        let mut held = 0;
        while shares.excess(alone, false).is_none() {
            shares.enter(Some(alone));
            held += 1;
        }
        assert_eq!(held, 56);
        (0..56).for_each(|_| shares.leave(Some(alone)));
        assert!(shares.holders.of_clients.is_empty(), "nothing is kept of who holds nothing");
        let mut few = LinkShares::new(PROXY_CLIENT_LINKS_MIN);
        (1..PROXY_CLIENT_LINKS_MIN).for_each(|_| few.enter(Some(alone)));
        assert_eq!(few.excess(alone, true), None);
    }

    #[test]
    fn a_client_has_a_quarter_of_a_line_that_was_full_and_others_find_the_rest() {
        let (greedy, other) = (owner("192.0.2.1"), owner("192.0.2.2"));
        let line = LineShares::default();
        (0..20).for_each(|_| line.enter(Some(greedy)));
        assert_eq!(line.excess(greedy, true, 1_000), None, "nobody was refused");
        line.note_full(1_000);
        assert_eq!(line.excess(greedy, true, 1_001), Some(Excess { held: 20, of: 20 }));
        assert_eq!((line.excess(greedy, false, 1_001), line.excess(other, true, 1_001)), (None, None));
        (0..16).for_each(|_| line.leave(Some(greedy)));
        assert_eq!(line.excess(greedy, true, 1_002), None, "less than a quarter");
        line.enter(Some(greedy));
        (0..10).for_each(|_| line.enter(Some(other)));
        assert!(
            line.excess(greedy, true, 1_999).is_some(),
            "renewed by each excess while others fill the line"
        );
        assert!(line.excess(greedy, true, 2_998).is_some());
        line.leave(Some(other));
        assert!(line.excess(greedy, true, 3_997).is_some());
        assert_eq!(line.excess(greedy, true, 2_998 + PROXY_LINE_CROWDED_MS), None, "the others need less");
    }

    #[test]
    fn a_line_that_was_full_when_it_was_short_holds_nobody_back_for_long() {
        let greedy = owner("192.0.2.1");
        let line = LineShares::default();
        line.enter(Some(greedy));
        line.note_full(1_000);
        for now_ms in 1_001..1_000 + PROXY_LINE_CROWDED_MS {
            assert!(line.excess(greedy, true, now_ms).is_some());
        }
        assert_eq!(line.excess(greedy, true, 1_000 + PROXY_LINE_CROWDED_MS), None);
    }
}
