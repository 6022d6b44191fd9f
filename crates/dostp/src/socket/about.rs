//! Questions to a socket about its node: its peers, its counters, what has happened to peers.
//!
//! A question must never change what the node does.

use std::net::Ipv4Addr;

use staunch_netio::clock;

use super::Socket;
use crate::fault::Drops;
use crate::node::Passed;
use crate::peers::{Own, Peer, PeerEvent};

impl Socket {
    /// All peers of the node with their full addresses, in the order of the addresses.
    pub fn peers(&self) -> Vec<(Ipv4Addr, Peer)> {
        let endpoint = self.endpoint();
        let mut peers: Vec<_> =
            endpoint.node.peers().list().map(|peer| (endpoint.address(peer.address), peer)).collect();
        peers.sort_by_key(|(address, _)| *address);
        peers
    }

    /// The full address of a node: the interface's upper bits, unless the program has named another.
    pub fn full_address(&self, address: u16) -> Ipv4Addr {
        self.endpoint().address(address)
    }

    /// The node's own address, link address, boot number and MTU.
    pub fn own(&self) -> Own {
        self.endpoint().node.peers().own()
    }

    /// Whether the node is in its trial, in which another node that holds its address makes it give up.
    pub fn is_in_trial(&self) -> bool {
        self.endpoint().node.peers().is_in_trial(clock::now_ms())
    }

    /// Counters of the node: what passed, what it dropped, and how many frames the kernel dropped because the
    /// node did not take them in time.
    pub fn counts(&self) -> (Passed, Drops, u64) {
        let mut endpoint = self.endpoint();
        let overrun = endpoint.overrun();
        (endpoint.node.passed(), *endpoint.node.drops(), overrun)
    }

    /// The oldest change of a peer that was not asked for yet.
    pub fn poll_event(&self) -> Option<PeerEvent> {
        self.endpoint().poll_event()
    }
}
