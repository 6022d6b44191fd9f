//! Peers come into a simulation, and where they come from.
//!
//! It must never tell an address that a kernel would not: unasked, or of another connection than the one
//! reported last.

use std::net::{Ipv4Addr, SocketAddr};

use super::peer::Peer;
use super::{PeerId, Simulated, Step};
use crate::{Completion, Slot};

/// Where peers come from that were given no address.
const ANYBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

impl Simulated {
    /// A peer that connects at once and follows its script.
    pub fn peer(&mut self, script: Vec<Step>) -> PeerId {
        self.peers.push(Peer::new(script));
        self.backlog.push_back(self.peers.len() - 1);
        self.peers.len() - 1
    }

    /// A peer that listens: the next `connect` leads to it, whatever the target, and its script begins when
    /// it is connected. Without one `connect` is refused.
    pub fn listener(&mut self, script: Vec<Step>) -> PeerId {
        self.peers.push(Peer::listening(script));
        self.listening.push_back(self.peers.len() - 1);
        self.peers.len() - 1
    }

    /// A peer that connects at once from this address and follows its script.
    pub fn peer_from(&mut self, address: SocketAddr, script: Vec<Step>) -> PeerId {
        let peer = self.peer(script);
        self.peers[peer].address = Some(address);
        peer
    }

    /// See [`crate::Io::peer_address`].
    pub(super) fn address_of(&self, slot: Slot) -> Option<SocketAddr> {
        if !self.learns_peers || self.accepted != Some(slot) {
            return None;
        }
        let peer = self.slots.get(slot as usize)?.as_ref()?.peer_connected()?;
        let port = 1024 + (peer % 60_000) as u16;
        Some(self.peers[peer].address.unwrap_or(SocketAddr::from((ANYBODY, port))))
    }

    /// What is reported next is known from now on, and what was before is forgotten.
    pub(super) fn note_accepted(&mut self, completion: &Completion) {
        self.accepted = match completion {
            Completion::Accepted { slot, .. } => Some(*slot),
            _ => None,
        };
    }
}
