//! What to connect to, and the sockets made for it.
//!
//! It must never wait: the backends begin to connect and tell when it is done. Order of calls: `socket`, then
//! the backend's way to connect it to `peer`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::socket::set_option;

/// Where to connect to, from where, and how the socket is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The peer.
    pub address: Address,
    /// The address of this machine to come from; the kernel chooses the port only when the peer is known, so
    /// that each peer has all ports. Of the same family as the peer's; ignored for Unix sockets.
    pub source: Option<IpAddr>,
    /// A close sends RST and leaves nothing in TIME_WAIT (SO_LINGER of zero seconds). What was sent and not
    /// yet taken by the peer is lost by it.
    pub reset_on_close: bool,
    /// Size of the kernel's receive buffer (SO_RCVBUF), which the kernel doubles; `None` leaves it to the
    /// kernel. A small one lets the peer feel at once that nobody reads.
    pub receive_buffer_bytes: Option<usize>,
}

/// The address of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Internet(SocketAddr),
    /// A Unix stream socket, by the path of its file.
    Unix(PathBuf),
}

impl Target {
    /// A target at this address, from any source, closed in the ordinary way.
    pub fn new(address: Address) -> Self {
        Self { address, source: None, reset_on_close: false, receive_buffer_bytes: None }
    }

    /// A socket with everything set and bound, not yet connected. TCP_NODELAY is set.
    ///
    /// # Errors
    /// Those of socket(2), setsockopt(2) and bind(2): EMFILE, ENFILE, ENOMEM, EADDRNOTAVAIL (the source is
    /// not an address of this machine), EAFNOSUPPORT (no such family here, or the source is of another one).
    pub(crate) fn socket(&self, flags: SocketFlags) -> io::Result<OwnedFd> {
        let family = match self.address {
            Address::Internet(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Internet(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let socket = socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?;
        if let Address::Internet(address) = &self.address {
            sockopt::set_tcp_nodelay(&socket, true)?;
            if let Some(bytes) = self.receive_buffer_bytes {
                sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
            }
            if self.reset_on_close {
                sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
            }
            if let Some(source) = self.source {
                if source.is_ipv6() != address.is_ipv6() {
                    return Err(Errno::AFNOSUPPORT.into());
                }
                set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
                bind(&socket, &SocketAddr::new(source, 0))?;
            }
        }
        Ok(socket)
    }

    /// The peer's address in the kernel's form.
    ///
    /// # Errors
    /// ENAMETOOLONG or EINVAL for a path that is no address of a Unix socket.
    pub(crate) fn peer(&self) -> io::Result<SocketAddrAny> {
        Ok(match &self.address {
            Address::Internet(address) => address.as_any(),
            Address::Unix(path) => SocketAddrUnix::new(path.as_path())?.as_any(),
        })
    }
}
