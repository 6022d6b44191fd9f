//! Peers come into a simulation or are connected to, and where they are.
//!
//! It must never tell an address that a kernel would not: unasked, or of another connection than the one
//! reported last.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::connecting::Attempt;
use super::connection::Connection;
use super::faults::ENFILE;
use super::peer::Peer;
use super::{PeerId, Simulated, Step};
use crate::{Address, Completion, Slot, Target};

/// Where peers come from that were given no address.
const ANYBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

impl Simulated {
    /// A peer that connects at once and follows its script.
    pub fn peer(&mut self, script: Vec<Step>) -> PeerId {
        self.peers.push(Peer::new(script));
        self.backlog.push_back(self.peers.len() - 1);
        self.peers.len() - 1
    }

    /// A peer that listens: the next `connect` leads to it, whatever the target, unless a peer listens at the
    /// target's address; its script begins when it is connected. Without one `connect` is refused.
    pub fn listener(&mut self, script: Vec<Step>) -> PeerId {
        self.peers.push(Peer::listening(script));
        self.listening.push_back(self.peers.len() - 1);
        self.peers.len() - 1
    }

    /// A peer that listens at an address: the next `connect` to that address leads to it.
    pub fn listener_at(&mut self, address: SocketAddr, script: Vec<Step>) -> PeerId {
        let peer = self.listener(script);
        self.peers[peer].address = Some(address);
        peer
    }

    /// From now on a SYN to this address is neither answered nor refused: a `connect` to it times out.
    pub fn deaf_at(&mut self, address: SocketAddr) {
        self.deaf.push(address);
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

impl Simulated {
    /// See [`crate::Io::connect`].
    pub(super) fn begin_connecting(&mut self, target: &Target) -> io::Result<Slot> {
        let Some(slot) = self.free_slot(0..self.capacity.connected) else {
            return Err(io::Error::from_raw_os_error(ENFILE));
        };
        let deaf = match &target.address {
            Address::Internet(address) => self.deaf.contains(address),
            Address::Unix(_) => false,
        };
        let (peer, attempt) = if deaf {
            (None, Attempt::unanswered(self.now_ms))
        } else {
            let peer = self.take_listening(target);
            (peer, Attempt::new(self.now_ms, peer.is_some(), &self.faults, &mut self.random))
        };
        self.open(slot, Connection::connecting(peer, attempt));
        Ok(slot)
    }

    /// Takes the peer that listens at the target's address, or one that listens at no address of its own.
    fn take_listening(&mut self, target: &Target) -> Option<PeerId> {
        let wanted = match &target.address {
            Address::Internet(address) => Some(*address),
            Address::Unix(_) => None,
        };
        let at = |place: Option<_>| self.listening.iter().position(|&peer| self.peers[peer].address == place);
        let index = at(wanted).or_else(|| at(None))?;
        self.listening.remove(index)
    }
}
