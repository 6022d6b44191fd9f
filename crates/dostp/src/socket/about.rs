//! What a socket tells of its node: peers, counts, events.
//!
//! It must never change the node.

use std::net::Ipv4Addr;

use staunch_netio::clock;

use super::Socket;
use crate::fault::Drops;
use crate::node::Passed;
use crate::peers::{Own, Peer, PeerEvent};

impl Socket {
    /// All peers with their full addresses, in order.
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

    /// What this node is.
    pub fn own(&self) -> Own {
        self.endpoint().node.peers().own()
    }

    /// Whether the node may still be refused its address.
    pub fn is_in_trial(&self) -> bool {
        self.endpoint().node.peers().is_in_trial(clock::now_ms())
    }

    /// What passed, what was dropped, and what the kernel dropped because nobody took it in time.
    pub fn counts(&self) -> (Passed, Drops, u64) {
        let mut endpoint = self.endpoint();
        let overrun = endpoint.overrun();
        (endpoint.node.passed(), *endpoint.node.drops(), overrun)
    }

    /// What has happened to peers since it was asked last.
    pub fn poll_event(&self) -> Option<PeerEvent> {
        self.endpoint().poll_event()
    }
}
