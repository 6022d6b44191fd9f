//! Connections of khttpd's device that are on their way into a table.
//!
//! Owns the memory in which the kernel reads a descriptor and writes the place it chose. It must never move
//! or free that before the operation is over. Order of calls: `free`, `keep`, and `take` when it is over.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// How many connections are on their way at most: as many as single accepts of a listener.
const ROOMS_COUNT: usize = 8;

/// What is known of the device beside other listeners.
pub(crate) struct Device {
    /// A poll is with the kernel.
    pub(crate) is_polled: bool,
    /// Never more or fewer of them, for the kernel is told where they stand.
    rooms: Box<[Room; ROOMS_COUNT]>,
}

/// A connection on its way into the table of direct descriptors.
#[derive(Default)]
struct Room {
    /// `None` while the room is free.
    connection: Option<OwnedFd>,
    peer: Option<SocketAddr>,
    /// The descriptor, then the place in the table.
    place: RawFd,
}

impl Device {
    pub(crate) fn new() -> Self {
        Self { is_polled: false, rooms: Box::default() }
    }

    /// The index of a free room.
    pub(crate) fn free(&self) -> Option<usize> {
        self.rooms.iter().position(|room| room.connection.is_none())
    }

    /// Keeps a connection in a room; where the kernel finds its descriptor.
    pub(crate) fn keep(&mut self, index: usize, connection: OwnedFd, peer: Option<SocketAddr>) -> *mut RawFd {
        let room = &mut self.rooms[index];
        room.place = connection.as_raw_fd();
        room.connection = Some(connection);
        room.peer = peer;
        &raw mut room.place
    }

    /// The connection is in the table, or could not be moved there: its room is free, and its descriptor
    /// closed. The place that the kernel wrote, if it did, and the peer.
    pub(crate) fn take(&mut self, index: usize) -> (RawFd, Option<SocketAddr>) {
        let room = &mut self.rooms[index];
        room.connection = None;
        (room.place, room.peer)
    }
}
