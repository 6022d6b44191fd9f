//! Messages that wait until the address they are for is found.
//!
//! It must never hold more than its bounds, or a message whose address is not asked for.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::{PARKED_BYTES_MAX, PARKED_MESSAGES_MAX};
use crate::outgoing::Outbound;

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<(Outbound, Vec<u8>)>,
    bytes: usize,
}

/// Messages by the address they wait for.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: BTreeMap<u16, Waiting>,
    /// Addresses that were found, whose messages may go.
    ready: VecDeque<u16>,
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
        if self.waiting.contains_key(&address) {
            self.ready.push_back(address);
        }
    }

    /// The address was not found. Says how many messages are lost.
    pub(crate) fn lost(&mut self, address: u16) -> usize {
        self.waiting.remove(&address).map_or(0, |waiting| waiting.messages.len())
    }

    /// The next message whose address was found, in the order in which they were sent.
    pub(crate) fn next(&mut self) -> Option<(Outbound, Vec<u8>)> {
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
        None
    }
}
