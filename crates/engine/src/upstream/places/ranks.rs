//! Requests in line, in the order in which they get places.
//!
//! A class goes before the next, a known client before strangers of its class, and among equals the one that
//! came first. Strangers are never left with nothing by known clients of their class: whether a client is
//! known may be its own word. The order of classes has no such exception, for the operator gives them.

use std::collections::VecDeque;

use crate::exchange::address::Address;
use crate::upstream::standing::{PlaceClass, Standing};

/// Places of a class of which a stranger gets one, if any waits: a crowd that pretends to
/// be known wins three quarters at most, and users that are known keep them.
pub(super) const STRANGERS_PART: u8 = 4;

/// Requests in line.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// By their standings, each with the exchanges and since when they wait, the oldest first.
    queues: [VecDeque<(Address, u64)>; Standing::ALL.len()],
    /// Places in a row that known clients got while strangers waited, by class.
    before_strangers: [u8; 3],
}

impl Ranks {
    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// Requests of one standing.
    pub(super) fn of(&self, standing: Standing) -> usize {
        self.queues[standing.rank()].len()
    }

    /// Requests that a new one of this standing finds before it.
    pub(super) fn before(&self, standing: Standing) -> usize {
        self.queues[..=standing.rank()].iter().map(VecDeque::len).sum()
    }

    /// Since when the first of one standing waits.
    pub(super) fn own_since_ms(&self, standing: Standing) -> Option<u64> {
        self.queues[standing.rank()].front().map(|(_, since_ms)| *since_ms)
    }

    /// Since when the first of those waits that go before a new request of this standing.
    pub(super) fn since_ms(&self, standing: Standing) -> Option<u64> {
        self.queues[..=standing.rank()].iter().filter_map(|queue| Some(queue.front()?.1)).min()
    }

    pub(super) fn push(&mut self, standing: Standing, address: Address, now_ms: u64) {
        self.queues[standing.rank()].push_back((address, now_ms));
    }

    /// Takes out the request whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Address> {
        let first = self.queues.iter().position(|queue| !queue.is_empty())?;
        let class = first / 2;
        let [known, strangers] = [2 * class, 2 * class + 1].map(|rank| !self.queues[rank].is_empty());
        let passed = &mut self.before_strangers[class];
        let is_strangers = strangers && (!known || *passed + 1 >= STRANGERS_PART);
        *passed = if known && strangers && !is_strangers { *passed + 1 } else { 0 };
        self.queues[2 * class + usize::from(is_strangers)].pop_front().map(|(address, _)| address)
    }

    /// Takes out the first of these, if it waits longer than it may.
    pub(super) fn pop_late(&mut self, standing: Standing, now_ms: u64, patience_ms: u64) -> Option<Address> {
        let wait_ms = if standing.class == PlaceClass::Low { patience_ms / 4 } else { patience_ms };
        let is_late = |(_, came_ms): &mut (Address, u64)| now_ms.saturating_sub(*came_ms) > wait_ms;
        self.queues[standing.rank()].pop_front_if(is_late).map(|(address, _)| address)
    }

    /// Takes out a request. Whether it was there.
    pub(super) fn remove(&mut self, address: Address) -> bool {
        self.queues.iter_mut().any(|queue| {
            let place = queue.iter().position(|(waiting, _)| *waiting == address);
            place.and_then(|place| queue.remove(place)).is_some()
        })
    }

    /// Takes out all.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Address> + '_ {
        self.queues.iter_mut().flat_map(|queue| queue.drain(..)).map(|(address, _)| address)
    }
}
