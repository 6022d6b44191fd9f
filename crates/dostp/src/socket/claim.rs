//! Claims that hold as long as a process lives, one for each port of a node and one for its voice.
//!
//! A claim is a bound abstract Unix socket (unix(7)): it belongs to the network namespace, needs no file and
//! no right, and the kernel gives it up with the process. It must never be used to talk.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A claim.
#[derive(Debug)]
pub(super) struct Claim {
    socket: UnixDatagram,
}

impl Claim {
    /// Claims a port of the node that an interface and an EtherType make.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host has it.
    pub(super) fn port(interface: u32, ether_type: u16, port: u16) -> io::Result<Self> {
        Self::named(&port_name(interface, ether_type, port))
    }

    /// Claims to speak for the node: to announce it and to answer questions.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host does.
    pub(super) fn voice(interface: u32, ether_type: u16) -> io::Result<Self> {
        Self::named(&format!("staunch-dostp/{interface}/{ether_type:04x}/voice"))
    }

    /// A claim that another process has handed over.
    pub(super) fn of(socket: OwnedFd) -> Self {
        Self { socket: socket.into() }
    }

    fn named(name: &str) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { socket: UnixDatagram::bind_addr(&address)? })
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a descriptor is the claim of this port, in the network namespace of the calling thread. Another
/// namespace has claims of the same names.
pub(super) fn is_of_port(
    descriptor: impl AsFd,
    interface: u32,
    ether_type: u16,
    port: u16,
) -> io::Result<bool> {
    let inode = rustix::fs::fstat(descriptor)?.st_ino.to_string();
    let name = format!("@{}", port_name(interface, ether_type, port));
    // Columns: address, count, protocol, flags, type, state, inode, path.
    let list = std::fs::read_to_string("/proc/thread-self/net/unix")?;
    let mut sockets = list.lines().map(|line| line.split_whitespace().skip(6));
    Ok(sockets.any(|mut rest| rest.next() == Some(&*inode) && rest.next() == Some(&*name)))
}

fn port_name(interface: u32, ether_type: u16, port: u16) -> String {
    format!("staunch-dostp/{interface}/{ether_type:04x}/port/{port}")
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
        assert!(is_of_port(&first, number, 1, 7).unwrap() && !is_of_port(&first, number, 1, 8).unwrap());
        assert!(!is_of_port(UnixDatagram::unbound().unwrap(), number, 1, 7).unwrap());
        drop(first);
        Claim::port(number, 1, 7).unwrap();
    }
}
