//! What is known of each peer, found by address with two loads and no hash.
//!
//! It must never decide what a frame means for an entry.

use crate::greeting::Link;
use crate::limits::{FRESH_MS, MTU_ETHERNET, PROBE_AGAIN_MS, PROBE_TRIES};

/// A question to one node, repeated until it is answered or has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) challenge: u64,
    pub(super) to: Link,
    tries: u8,
    pub(super) next_ms: u64,
}

/// What a question's time brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Wait,
    Send,
    Failed,
}

impl Probe {
    /// To be sent at that time for the first time.
    pub(super) fn new(challenge: u64, to: Link, first_ms: u64) -> Self {
        Self { challenge, to, tries: 0, next_ms: first_ms }
    }

    /// What is to be done now; sending is noted.
    pub(super) fn due(&mut self, now_ms: u64) -> Due {
        if now_ms < self.next_ms {
            return Due::Wait;
        }
        if self.tries == PROBE_TRIES {
            return Due::Failed;
        }
        self.tries += 1;
        self.next_ms = now_ms + PROBE_AGAIN_MS;
        Due::Send
    }
}

/// Whether larger frames than every Ethernet's reach a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Not asked yet, or nothing to ask.
    Unasked,
    Asking(Probe),
    /// The larger of both MTU passes.
    Large,
    Small,
}

/// Another link address that says it is the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimant {
    pub(super) link: Link,
}

/// A peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) address: u16,
    pub(super) link: Link,
    /// 0: not known.
    pub(super) boot: u64,
    /// As the peer told it.
    pub(super) told_mtu: u16,
    pub(super) heard_ms: u64,
    pub(super) fresh_until_ms: u64,
    pub(super) spoken_ms: Option<u64>,
    pub(super) stale: bool,
    pub(super) probe: Option<Probe>,
    pub(super) claimant: Option<Claimant>,
    pub(super) size: Size,
}

impl Entry {
    /// Just heard.
    pub(super) fn new(address: u16, link: Link, now_ms: u64) -> Self {
        Self {
            address,
            link,
            boot: 0,
            told_mtu: MTU_ETHERNET,
            heard_ms: now_ms,
            fresh_until_ms: now_ms + FRESH_MS,
            spoken_ms: None,
            stale: false,
            probe: None,
            claimant: None,
            size: Size::Unasked,
        }
    }

    /// A valid frame came from its link address.
    #[inline]
    pub(super) fn refresh(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.fresh_until_ms = now_ms + FRESH_MS;
        self.stale = false;
        self.probe = None;
        self.claimant = None;
    }

    /// Whether something was sent to it lately enough to care whether it lives.
    pub(super) fn is_spoken_to(&self, now_ms: u64) -> bool {
        self.spoken_ms.is_some_and(|spoken_ms| now_ms < spoken_ms + FRESH_MS)
    }

    /// The largest frame to be sent to it, by a node with that MTU.
    #[inline]
    pub(super) fn mtu(&self, own_mtu: u16) -> u16 {
        let both = own_mtu.min(self.told_mtu);
        if self.size == Size::Large { both } else { both.min(MTU_ETHERNET) }
    }
}

/// Addresses in one page of the index.
const PAGE: usize = 256;

/// No entry at this address.
const NONE: u16 = u16::MAX;

/// All peers.
#[derive(Debug)]
pub(super) struct Table {
    pages: Vec<Option<Box<[u16; PAGE]>>>,
    entries: Vec<Entry>,
    capacity: usize,
}

impl Table {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            pages: vec![None; 65_536 / PAGE],
            entries: Vec::new(),
            capacity: capacity.min(usize::from(NONE)),
        }
    }

    #[inline]
    pub(super) fn find(&mut self, address: u16) -> Option<&mut Entry> {
        let place = self.place(address)?;
        self.entries.get_mut(place)
    }

    #[inline]
    pub(super) fn get(&self, address: u16) -> Option<&Entry> {
        self.entries.get(self.place(address)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn at(&mut self, place: usize) -> Option<&mut Entry> {
        self.entries.get_mut(place)
    }

    /// Adds a peer that is not in the table. When it is full, the stale peer heard longest ago makes room;
    /// its address is returned.
    ///
    /// # Errors
    /// There is no room and no peer is stale.
    pub(super) fn add(&mut self, entry: Entry) -> Result<Option<u16>, ()> {
        let mut gone = None;
        if self.entries.len() >= self.capacity {
            let stale = self.entries.iter().filter(|entry| entry.stale);
            let oldest = stale.min_by_key(|entry| entry.heard_ms).ok_or(())?.address;
            self.remove(oldest);
            gone = Some(oldest);
        }
        let page = &mut self.pages[usize::from(entry.address) / PAGE];
        let page = page.get_or_insert_with(|| Box::new([NONE; PAGE]));
        page[usize::from(entry.address) % PAGE] = self.entries.len() as u16;
        self.entries.push(entry);
        Ok(gone)
    }

    pub(super) fn remove(&mut self, address: u16) {
        let Some(place) = self.place(address) else { return };
        self.entries.swap_remove(place);
        self.set(address, NONE);
        if let Some(moved) = self.entries.get(place) {
            self.set(moved.address, place as u16);
        }
    }

    fn set(&mut self, address: u16, place: u16) {
        if let Some(page) = &mut self.pages[usize::from(address) / PAGE] {
            page[usize::from(address) % PAGE] = place;
        }
    }

    #[inline]
    fn place(&self, address: u16) -> Option<usize> {
        let page = self.pages[usize::from(address) / PAGE].as_ref()?;
        let place = page[usize::from(address) % PAGE];
        (place != NONE).then_some(usize::from(place))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(address: u16, heard_ms: u64) -> Entry {
        Entry::new(address, Link([0; 6]), heard_ms)
    }

    #[test]
    fn a_full_table_gives_up_the_stale_peer_heard_longest_ago() {
        let mut table = Table::new(3);
        for address in 1..=3 {
            assert_eq!(table.add(entry(address, 10 - u64::from(address))), Ok(None));
        }
        assert_eq!(table.add(entry(4, 20)), Err(()));
        table.find(1).unwrap().stale = true;
        table.find(2).unwrap().stale = true;
        assert_eq!(table.add(entry(4, 20)), Ok(Some(2)));
        assert!(table.get(2).is_none() && table.get(4).is_some() && table.get(1).is_some());
    }

    #[test]
    fn a_probe_is_sent_three_times() {
        let mut probe = Probe::new(1, Link::EVERYBODY, 100);
        assert_eq!(probe.due(99), Due::Wait);
        for now_ms in [100, 400, 700] {
            assert_eq!((probe.due(now_ms), probe.due(now_ms + 299)), (Due::Send, Due::Wait));
        }
        assert_eq!(probe.due(1_000), Due::Failed);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map(steps in prop::collection::vec((0_u16..600, any::<bool>()), 0..500)) {
            let mut table = Table::new(1_000);
            let mut map = BTreeMap::new();
            for (now_ms, (address, add)) in steps.into_iter().enumerate() {
                if !add {
                    table.remove(address);
                    map.remove(&address);
                } else if table.get(address).is_none() {
                    table.add(entry(address, now_ms as u64)).unwrap();
                    map.insert(address, now_ms as u64);
                }
                prop_assert_eq!(table.get(address).map(|entry| entry.heard_ms), map.get(&address).copied());
            }
            let entries = table.iter().map(|entry| (entry.address, entry.heard_ms));
            let mut all: Vec<(u16, u64)> = entries.collect();
            all.sort_unstable();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }
}
