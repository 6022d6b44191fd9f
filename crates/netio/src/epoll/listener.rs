//! Accepting, a bounded batch a turn.
//!
//! It owns the listening socket, which is known to epoll exactly while connections are wanted: thus nothing
//! spins while they are not, and starting again finds those that came in between. Level-triggered, because a
//! batch that ends early then needs no memory of it, and because accept4(2) allocates a socket and a file
//! before it looks whether there is a connection: asking until EAGAIN would double the cost of a lone one. So
//! the batch begins with one connection and doubles from turn to turn while there are more. Exclusive, so
//! that of several workers on one listener one is woken.
//!
//! In place of a listening socket it may have the device at which khttpd hands connections over.
//!
//! Order of calls: `watch`; at each event `begin_turn`, then `accept` until there is nothing; `unwatch`; at
//! last `give_up`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, acceptfrom_with};

use crate::host::khttpd;
use crate::{Queue, socket};

/// Connections accepted from one listener in one turn: enough for a burst, too few to keep the others waiting
/// long.
const BATCH_MAX: u32 = 64;

/// What an attempt to accept came to.
#[derive(Debug)]
pub(super) enum Accept {
    /// A new connection, and where it comes from if that is to be learnt.
    New(OwnedFd, Option<SocketAddr>),
    /// Nothing more in this turn.
    Nothing,
    /// Accepting has ended until `watch`.
    Stopped(Errno),
}

/// A listening socket or khttpd's device, and whether connections are accepted at it.
#[derive(Debug)]
pub(super) struct Listener {
    /// None once it was given up.
    socket: Option<OwnedFd>,
    /// Whether it is khttpd's device.
    is_device: bool,
    watched: bool,
    /// The last turn with connections, how many were to be accepted in it, and how many of them are left.
    turn: u64,
    batch: u32,
    left: u32,
    /// Whether the whole batch was accepted, so that there may be more.
    used_up: bool,
}

impl Listener {
    /// Takes a listening socket, or khttpd's device. It becomes a non-blocking one, whoever has used it
    /// before.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let is_device = khttpd::is_device(&socket)?;
        let socket = Some(socket);
        Ok(Self { socket, is_device, watched: false, turn: 0, batch: 1, left: 0, used_up: false })
    }

    pub(super) fn is_gone(&self) -> bool {
        self.socket.is_none()
    }

    /// See [`crate::Io::drop_syn`]. Where the kernel refuses, clients go on connecting for a moment more.
    pub(super) fn drop_syn(&self) {
        let _ = self.socket.as_ref().map(|socket| socket::drop_syn(socket.as_fd()));
    }

    /// What waits, and how much may; `None` once it was given up.
    pub(super) fn queue(&self) -> Option<Queue> {
        let socket = self.socket.as_ref()?.as_fd();
        if self.is_device { Some(khttpd::queue(socket)) } else { socket::queue(socket) }
    }

    /// See [`crate::Io::admit_syn`].
    pub(super) fn admit_syn(&self) {
        let _ = self.socket.as_ref().map(|socket| socket::admit_syn(socket.as_fd()));
    }

    /// No longer watched, which closing alone would not do while another process holds the socket too.
    pub(super) fn give_up(&mut self, epoll: &OwnedFd) {
        self.unwatch(epoll);
        self.socket = None;
    }

    pub(super) fn watch(&mut self, epoll: &OwnedFd, data: EventData) -> Result<(), Errno> {
        if let (Some(socket), false) = (&self.socket, self.watched) {
            epoll::add(epoll, socket, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
            self.watched = true;
        }
        Ok(())
    }

    pub(super) fn unwatch(&mut self, epoll: &OwnedFd) {
        self.left = 0;
        if let (Some(socket), true) = (&self.socket, self.watched) {
            self.watched = false;
            epoll::delete(epoll, socket).expect("a watched listener is known to epoll");
        }
    }

    /// There are connections in this turn, counted by the caller. Returns whether any are wanted.
    pub(super) fn begin_turn(&mut self, turn: u64) -> bool {
        let goes_on = self.used_up && turn == self.turn + 1;
        self.batch = if goes_on { (self.batch * 2).min(BATCH_MAX) } else { 1 };
        self.turn = turn;
        self.used_up = false;
        self.left = if self.watched { self.batch } else { 0 };
        self.left > 0
    }

    pub(super) fn accept(&mut self, epoll: &OwnedFd, table_full: bool, learns_peers: bool) -> Accept {
        while let (Some(socket), true) = (&self.socket, self.left > 0) {
            if table_full {
                return self.stop(epoll, Errno::NFILE);
            }
            self.left -= 1;
            let accepted = if self.is_device {
                khttpd::accept(socket.as_fd(), learns_peers)
            } else {
                accept_one(socket, learns_peers)
            };
            match accepted {
                Ok((socket, peer)) => {
                    self.used_up = self.left == 0;
                    return Accept::New(socket, peer);
                }
                Err(Errno::AGAIN) => self.left = 0,
                Err(errno) if is_the_connections_own(errno) => {}
                Err(errno) => return self.stop(epoll, errno),
            }
        }
        Accept::Nothing
    }

    fn stop(&mut self, epoll: &OwnedFd, errno: Errno) -> Accept {
        self.unwatch(epoll);
        Accept::Stopped(errno)
    }
}

fn accept_one(listener: &OwnedFd, learns_peers: bool) -> Result<(OwnedFd, Option<SocketAddr>), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    if learns_peers {
        let (socket, peer) = acceptfrom_with(listener, flags)?;
        Ok((socket, peer.and_then(socket::peer)))
    } else {
        Ok((accept_with(listener, flags)?, None))
    }
}

/// Errors of one connection that was gone before it was accepted: accept(2), "Error handling", and a signal.
fn is_the_connections_own(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::PROTO
            | Errno::PERM
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NOTCONN
            | Errno::NETUNREACH
            | Errno::TIMEDOUT
    )
}
