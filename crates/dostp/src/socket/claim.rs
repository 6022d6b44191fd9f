//! Claims that hold as long as a process lives, one for each port of a node and one for its voice.
//!
//! A claim is a bound abstract Unix socket (unix(7)): it belongs to the network namespace, needs no file and
//! no right, and the kernel gives it up with the process. It must never be used to talk.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A claim.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims a port of the node that an interface and an EtherType make.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host has it.
    pub(super) fn port(interface: u32, ether_type: u16, port: u16) -> io::Result<Self> {
        Self::named(&format!("staunch-dostp/{interface}/{ether_type:04x}/port/{port}"))
    }

    /// Claims to speak for the node: to announce it and to answer questions.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host does.
    pub(super) fn voice(interface: u32, ether_type: u16) -> io::Result<Self> {
        Self::named(&format!("staunch-dostp/{interface}/{ether_type:04x}/voice"))
    }

    fn named(name: &str) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { _socket: UnixDatagram::bind_addr(&address)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_as_long_as_it_lives() {
        let number = std::process::id();
        let first = Claim::port(number, 1, 7).unwrap();
        assert_eq!(Claim::port(number, 1, 7).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        Claim::port(number, 1, 8).unwrap();
        Claim::voice(number, 1).unwrap();
        drop(first);
        Claim::port(number, 1, 7).unwrap();
    }
}
