//! What every lane of one thread works with: the way to the network and the table of connections.
//!
//! It must never count anything: that is the lanes' own.

use std::time::UNIX_EPOCH;

use staunch_netio::{Io, Outgoing, Slot, Target};

use crate::connection::{ClientConnection, ConnectionState};

/// Empty containers that are kept. More are made when more sends are under way at once.
const SPARE_COUNT_MAX: usize = 1024;

/// Memory a spare container keeps: a request with a short body.
const SPARE_BYTES: usize = 16 * 1024;

/// A thread's network and table.
pub(crate) struct NetworkSide<I> {
    pub(crate) io: I,
    /// By slot.
    pub(crate) connections: Vec<ClientConnection>,
    /// The time of what is being handled, in nanoseconds.
    pub(crate) now_ns: u64,
    /// What makes the time of day of it, in nanoseconds.
    unix_offset_ns: u64,
    /// Number of this thread.
    pub(crate) thread: u32,
    /// Connections begun and not closed.
    pub(crate) live: u64,
    #[expect(clippy::vec_box, reason = "the boxes go to the network and come back")]
    spare: Vec<Box<Outgoing>>,
}

impl<I: Io> NetworkSide<I> {
    pub(crate) fn new(io: I, thread: u32) -> Self {
        let now_ns = io.now_ns();
        let unix = io.wall_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_offset_ns = (unix.as_nanos() as u64).saturating_sub(now_ns);
        Self { io, connections: Vec::new(), now_ns, unix_offset_ns, thread, live: 0, spare: Vec::new() }
    }

    /// The time of day, in milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.now_ns + self.unix_offset_ns) / 1_000_000
    }

    /// Begins to connect for a lane.
    ///
    /// # Errors
    /// The errno, when the kernel or the table has no room.
    pub(crate) fn connect(&mut self, lane: u16, target: &Target) -> Result<Slot, i32> {
        let slot = self.io.connect(target).map_err(|error| error.raw_os_error().unwrap_or_default())?;
        if self.connections.len() <= slot as usize {
            self.connections.resize_with(slot as usize + 1, ClientConnection::default);
        }
        self.connections[slot as usize].begin(lane, self.now_ns);
        self.live += 1;
        Ok(slot)
    }

    /// Closes a connection; `Closed` will be reported.
    pub(crate) fn close(&mut self, slot: Slot) {
        self.connections[slot as usize].state = ConnectionState::Closing;
        self.io.close(slot);
    }

    /// The connection is gone and its slot free.
    pub(crate) fn closed(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        connection.state = ConnectionState::Free;
        connection.wall = None;
        self.live -= 1;
    }

    /// What is sent instead of a container: itself, or its records where there is a wall.
    #[inline]
    pub(crate) fn sealed(&mut self, slot: Slot, outgoing: Box<Outgoing>) -> Box<Outgoing> {
        if self.connections[slot as usize].wall.is_none() { outgoing } else { self.seal(slot, outgoing) }
    }

    fn seal(&mut self, slot: Slot, plain: Box<Outgoing>) -> Box<Outgoing> {
        let mut sealed = self.take_spare();
        if let Some(wall) = &mut self.connections[slot as usize].wall {
            wall.seal(&plain, sealed.bytes());
        }
        self.put_spare(plain);
        sealed
    }

    /// An empty container.
    pub(crate) fn take_spare(&mut self) -> Box<Outgoing> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a container back.
    pub(crate) fn put_spare(&mut self, mut outgoing: Box<Outgoing>) {
        if self.spare.len() < SPARE_COUNT_MAX {
            outgoing.clear(SPARE_BYTES);
            self.spare.push(outgoing);
        }
    }
}
