//! Connecting: begun by the owner, ended by the kernel's first word about the socket.
//!
//! It owns nothing of its own: it is the half of [`Epoll`] that makes connections. It must never wait. Order
//! of calls: `begin_connecting`, then `finish_connecting` at the first event of room or failure.
//!
//! A connecting socket is added to epoll once, for everything it will ever be watched for.

use std::io;

use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use super::Epoll;
use super::table::Connection;
use super::watch::watch_room;
use crate::socket::inspect;
use crate::{Completion, Slot, Target};

impl Epoll {
    /// See [`crate::Io::connect`].
    pub(super) fn begin_connecting(&mut self, target: &Target) -> io::Result<Slot> {
        if self.table.is_full_of_connected() {
            return Err(Errno::NFILE.into());
        }
        let peer = target.peer()?;
        let socket = target.socket(SocketFlags::NONBLOCK)?;
        let outcome = rustix::net::connect(&socket, &peer);
        let slot = self.table.insert_connected(socket);
        match outcome {
            Ok(()) => self.reports.push_back(Completion::Connected { slot, errno: 0 }),
            Err(Errno::INPROGRESS | Errno::INTR) => self.await_connection(slot)?,
            Err(errno) => {
                self.reports.push_back(Completion::Connected { slot, errno: errno.raw_os_error() });
            }
        }
        Ok(slot)
    }

    fn await_connection(&mut self, slot: Slot) -> io::Result<()> {
        let Some(connection) = self.table.get_mut(slot) else { return Ok(()) };
        if let Err(errno) = watch_room(&self.epoll, slot, connection) {
            self.table.remove(slot);
            self.table.free(slot);
            return Err(errno.into());
        }
        connection.set(Connection::CONNECTING);
        // Whatever there will be to receive is an event from now on.
        connection.clear(Connection::READABLE);
        Ok(())
    }

    /// The kernel has said something about a connecting socket: it is connected, or has failed.
    #[cold]
    pub(super) fn finish_connecting(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.clear(Connection::CONNECTING);
        let errno = match sockopt::socket_error(connection.socket()) {
            Ok(Ok(())) => 0,
            Ok(Err(errno)) | Err(errno) => errno.raw_os_error(),
        };
        self.reports.push_back(Completion::Connected { slot, errno });
    }

    /// See [`crate::Io::inspect`].
    pub(super) fn inspect_now(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let (retransmitted, taken) = inspect(connection.socket());
        self.reports.push_back(Completion::Inspected { slot, retransmitted, taken });
    }
}
