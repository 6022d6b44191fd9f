//! Messages that wait until the address they are for is found, and then until there is room to send them.
//!
//! This store must never hold more than its bounds, or a message that nothing will send or give up.
//!
//! Order of calls: [`Parked::park`]; [`Parked::found`] or [`Parked::lost`]; [`Parked::next`] until it has
//! nothing, and of each of its messages that was not sent [`Parked::hold`] or [`Parked::ask_again`].

use std::collections::{BTreeMap, VecDeque};

use crate::limits::{
    PARKED_AGAIN_MS_MAX, PARKED_AGAIN_MS_MIN, PARKED_BYTES_MAX, PARKED_MESSAGES_MAX, PARKED_PATIENCE_MS,
};
use crate::outgoing::Outbound;

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<(Outbound, Vec<u8>)>,
    bytes: usize,
}

/// The way out was full.
#[derive(Debug, Clone, Copy)]
struct Full {
    /// When the first message that may go is tried again.
    again_ms: u64,
    /// How long after that the try behind it comes.
    next_wait_ms: u64,
    /// When it is given up.
    until_ms: u64,
}

/// Messages by the address they wait for.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: BTreeMap<u16, Waiting>,
    /// Addresses that were found, whose messages may go.
    ready: VecDeque<u16>,
    full: Option<Full>,
}

impl Parked {
    /// Keeps a message; says whether there was room.
    pub(crate) fn park(&mut self, outbound: &Outbound, payload: &[u8]) -> bool {
        let waiting = self.waiting.entry(outbound.destination).or_default();
        let first = waiting.messages.is_empty();
        if !first
            && (waiting.messages.len() >= PARKED_MESSAGES_MAX
                || waiting.bytes + payload.len() > PARKED_BYTES_MAX)
        {
            return false;
        }
        waiting.bytes += payload.len();
        waiting.messages.push_back((*outbound, payload.to_vec()));
        true
    }

    /// The address was found.
    pub(crate) fn found(&mut self, address: u16) {
        if self.waiting.contains_key(&address) && !self.ready.contains(&address) {
            self.ready.push_back(address);
        }
    }

    /// The address was not found. Says how many messages are lost.
    pub(crate) fn lost(&mut self, address: u16) -> usize {
        if self.ready.front() == Some(&address) {
            self.full = None;
        }
        self.ready.retain(|ready| *ready != address);
        self.waiting.remove(&address).map_or(0, |waiting| waiting.messages.len())
    }

    /// Whether messages to this address have only room to wait for: later ones have to wait behind them.
    #[inline]
    pub(crate) fn is_ready(&self, address: u16) -> bool {
        !self.ready.is_empty() && self.ready.contains(&address)
    }

    /// The next message that may go now, in the order in which they were sent.
    pub(crate) fn next(&mut self, now_ms: u64) -> Option<(Outbound, Vec<u8>)> {
        if self.full.is_some_and(|full| now_ms < full.again_ms) {
            return None;
        }
        while let Some(&address) = self.ready.front() {
            if let Some(waiting) = self.waiting.get_mut(&address)
                && let Some((outbound, payload)) = waiting.messages.pop_front()
            {
                waiting.bytes -= payload.len();
                return Some((outbound, payload));
            }
            self.waiting.remove(&address);
            self.ready.pop_front();
        }
        self.full = None;
        None
    }

    /// The message of [`Parked::next`] was sent, or is given up: the next one may be tried at once.
    pub(crate) fn done(&mut self) {
        self.full = None;
    }

    /// The message of [`Parked::next`] found no room: it stays the first, and is tried again soon, then
    /// after twice that and so on. False: that went on for too long.
    pub(crate) fn hold(&mut self, outbound: Outbound, payload: Vec<u8>, now_ms: u64) -> bool {
        let (wait_ms, until_ms) =
            self.full.map_or((PARKED_AGAIN_MS_MIN, now_ms + PARKED_PATIENCE_MS), |full| {
                (full.next_wait_ms, full.until_ms)
            });
        if now_ms >= until_ms {
            return false;
        }
        let again_ms = until_ms.min(now_ms + wait_ms);
        self.full = Some(Full { again_ms, next_wait_ms: PARKED_AGAIN_MS_MAX.min(2 * wait_ms), until_ms });
        self.put_back(outbound, payload);
        true
    }

    /// The address of the message of [`Parked::next`] is asked for once more: all its messages wait again.
    pub(crate) fn ask_again(&mut self, outbound: Outbound, payload: Vec<u8>) {
        self.done();
        self.ready.retain(|ready| *ready != outbound.destination);
        self.put_back(outbound, payload);
    }

    /// When [`Parked::next`] has to be called again: at once, if it was not called until it had nothing.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let again_ms = self.full.map_or(0, |full| full.again_ms);
        (!self.ready.is_empty()).then_some(again_ms)
    }

    fn put_back(&mut self, outbound: Outbound, payload: Vec<u8>) {
        let waiting = self.waiting.entry(outbound.destination).or_default();
        waiting.bytes += payload.len();
        waiting.messages.push_front((outbound, payload));
    }
}
