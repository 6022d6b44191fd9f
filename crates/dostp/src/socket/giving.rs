//! The giving side of rings that are handed over: a node opens them for processes without the right to.
//!
//! It must never give a ring without the claim of its port, nor a port below 1024 to who is not root.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt;
use staunch_netio::datagram::{PacketFilter, PacketRing};

use super::Socket;
use super::body::{CONTROL_RING_BYTES, RING_BYTES, frame_mtu};
use super::claim::{self, Claim};
use super::given::{Asked, send};
use super::options::Backend;

/// The first of the ports that need no right.
const PORT_MIN: u16 = 1_024;

impl Socket {
    /// Gives a client rings for the frames of a port, and for those of the node; or tells it why not.
    ///
    /// # Errors
    /// The client does not take the answer. Its refusal is no error.
    pub fn give_rings(&self, client: &UnixStream, asked: &Asked, port: u16) -> io::Result<()> {
        match self.rings_for(client, asked, port) {
            Ok((mtu, rings, claim)) => {
                let descriptors = rings.iter().map(OwnedFd::as_fd).chain(claim.as_ref().map(Claim::as_fd));
                send(client, &format!("rings {mtu}\n"), &descriptors.collect::<Vec<_>>())
            }
            Err(error) => send(client, &format!("no rings for port {port}: {error}\n"), &[]),
        }
    }

    /// The MTU, rings for messages and for control frames, and a claim of the port if the client's does not
    /// count for all.
    fn rings_for(
        &self,
        client: &UnixStream,
        asked: &Asked,
        port: u16,
    ) -> io::Result<(u16, [OwnedFd; 2], Option<Claim>)> {
        let refuse = |reason: &str| Err(io::Error::new(ErrorKind::PermissionDenied, reason));
        let (interface, ether_type) = (&self.opened().interface, self.endpoint().ether_type);
        if self.opened().backend == Backend::Udp {
            return refuse("this node's frames travel in UDP");
        }
        let user = sockopt::socket_peercred(client)?.uid;
        if port < PORT_MIN && !user.is_root() {
            return refuse("ports below 1024 are for root");
        }
        let is_claim = |descriptor| claim::is_of_port(descriptor, interface.index, ether_type, port);
        match &asked.descriptors[..] {
            [claim] if is_claim(claim)? => {}
            _ => return refuse("the port's claim was not sent along, or is another network namespace's"),
        }
        let is_stranger = !claim::counts(user.as_raw());
        let claim = is_stranger.then(|| Claim::port(interface.index, ether_type, port)).transpose()?;
        let mtu = frame_mtu(interface)?;
        let ring = |port, ring_bytes| {
            let filter = PacketFilter::Port(port);
            PacketRing::prepare(interface.index, usize::from(mtu), ether_type, filter, ring_bytes)
        };
        Ok((mtu, [ring(port, RING_BYTES)?, ring(0, CONTROL_RING_BYTES)?], claim))
    }
}
