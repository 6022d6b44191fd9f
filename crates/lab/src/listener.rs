//! The listening socket, the same for every model: `socket`, `SO_REUSEADDR`, `bind`, `listen`.
//!
//! It must never accept: who does that, and when, is what models differ in.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

use crate::options::Options;

/// Listens where the options say. `accept` at this socket waits.
///
/// # Errors
/// An address that is taken, not ours, or needs a privilege.
pub(crate) fn open(options: &Options) -> io::Result<OwnedFd> {
    open_at(options.address, options.backlog, false)
}

/// Tells where the server listens. Only now may it be told to end.
///
/// # Errors
/// Those of getsockname(2).
pub(crate) fn announce(socket: &OwnedFd, options: &Options) -> io::Result<()> {
    (options.announce)(address_of(socket)?);
    Ok(())
}

/// Listens beside others at the same address (SO_REUSEPORT): the kernel deals connections out between them.
///
/// # Errors
/// As of [`open`].
pub(crate) fn open_beside(address: SocketAddr, options: &Options) -> io::Result<OwnedFd> {
    open_at(address, options.backlog, true)
}

/// Where a socket listens, with the port that was taken if any was asked for.
///
/// # Errors
/// Those of getsockname(2).
pub(crate) fn address_of(socket: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(getsockname(socket)?.try_into()?)
}

fn open_at(address: SocketAddr, backlog: i32, shared: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A port whose last connections are still in TIME_WAIT may be bound at once.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    // Connections take this from their listener. Without it the body of an answer may wait for the client to
    // acknowledge its head, which the client delays by 40 ms.
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, backlog)?;
    Ok(socket)
}
