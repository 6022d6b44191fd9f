//! Where a child's connections come from.
//!
//! The kernel chooses, and that is enough: the server is first to close (the paper's protocol wants it, and
//! so does `Connection: close`), so it is at the server's end that a connection lingers in TIME_WAIT, and its
//! port is free here at once. Only if others have taken all ports of an address, and the server is on
//! loopback, the next address of that network is come from: all of 127.0.0.0/8 is this machine's. It must
//! never do so before, for it costs two calls more for each connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, socket_with};

use crate::syscall::choose_port_late;

/// Most addresses come from: with the kernel's own range of ports, enough for seven million connections.
const SOURCES_MAX: u32 = 256;

/// Makes connections, for one child or for many.
pub(super) struct Source {
    peer: SocketAddr,
    /// How long a call waits; with none it never does.
    patience: Option<Duration>,
    /// Which address of the loopback network; 0 leaves it to the kernel.
    number: u32,
}

impl Source {
    /// Connections whose calls wait so long.
    pub(super) fn patient(peer: SocketAddr, patience: Duration) -> Self {
        Self { peer, patience: Some(patience), number: 0 }
    }

    /// Connections whose calls never wait, and which may still be under way: to send says EAGAIN then.
    pub(super) fn nonblocking(peer: SocketAddr) -> Self {
        Self { peer, patience: None, number: 0 }
    }

    /// A new connection.
    ///
    /// # Errors
    /// Those of socket(2) and connect(2); EINPROGRESS when the patience is over.
    pub(super) fn connect(&mut self) -> Result<OwnedFd, Errno> {
        loop {
            match self.connect_from(self.number) {
                Err(Errno::ADDRNOTAVAIL) if self.is_local() && self.number < SOURCES_MAX => self.number += 1,
                other => return other,
            }
        }
    }

    /// Whether a connection leads to itself. Where nobody listens at a port that the kernel may choose, one
    /// in thousands gets that very port for its own end, and is connected to itself.
    pub(super) fn is_own_peer(&self, socket: &OwnedFd) -> bool {
        getsockname(socket).is_ok_and(|own| own == self.peer.into())
    }

    fn is_local(&self) -> bool {
        matches!(self.peer.ip(), IpAddr::V4(ip) if ip.is_loopback())
    }

    fn connect_from(&self, number: u32) -> Result<OwnedFd, Errno> {
        let family = if self.peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let kind = if self.patience.is_some() { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | kind, None)?;
        if self.patience.is_some() {
            sockopt::set_socket_timeout(&socket, Timeout::Send, self.patience)?;
            sockopt::set_socket_timeout(&socket, Timeout::Recv, self.patience)?;
        }
        if number > 0 {
            choose_port_late(socket.as_fd())?;
            bind(&socket, &SocketAddr::from((address(number), 0)))?;
        }
        loop {
            match connect(&socket, &self.peer) {
                // Interrupted, it goes on by itself; asked again, Linux waits for it again.
                Err(Errno::INTR | Errno::ALREADY) => {}
                Err(Errno::ISCONN) => return Ok(socket),
                Err(Errno::INPROGRESS) if self.patience.is_none() => return Ok(socket),
                other => return other.map(|()| socket),
            }
        }
    }
}

/// The addresses from 127.2.0.1 on.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x7f02_0000 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_this_machine() {
        assert_eq!(address(1), Ipv4Addr::new(127, 2, 0, 1));
        assert_eq!(address(SOURCES_MAX), Ipv4Addr::new(127, 2, 1, 0));
    }

    #[test]
    fn each_source_reaches_a_listener() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut source = Source::patient(listener.local_addr().expect("an address"), Duration::from_secs(20));
        for (number, expected) in [(0, [127, 0, 0, 1]), (1, [127, 2, 0, 1]), (2, [127, 2, 0, 2])] {
            source.number = number;
            let _socket = source.connect().expect("a connection");
            let (_, from) = listener.accept().expect("a connection");
            assert_eq!(from.ip(), IpAddr::from(expected));
        }
    }
}
