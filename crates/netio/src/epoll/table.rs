//! The connections of one epoll backend: 16 bytes each, in one piece of memory that grows as it is used.
//!
//! It owns the sockets. It must never call the kernel but to end one. Order of calls: `insert` gives a slot,
//! which is open until `remove`; after `free` it is used again, told apart by its generation.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{Shutdown, shutdown};

use crate::capacity::FreeSlots;
use crate::{Capacity, Slot};

/// No flight, or no next free slot.
const NONE: u32 = u32::MAX;

/// A connection, or a free place for one.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Option<OwnedFd>,
    /// Which use of the slot this is.
    generation: u32,
    /// Of an open connection its flight, of a free place the next free one.
    link: u32,
    marks: u16,
}

const _: () = assert!(size_of::<Connection>() == 16);

impl Connection {
    /// The engine wants to receive.
    pub(super) const RECEIVING: u16 = 1;
    /// There may be something to receive.
    pub(super) const READABLE: u16 = 1 << 1;
    /// The peer's end, or an error, was seen and stands behind what there is to receive.
    pub(super) const ENDING: u16 = 1 << 2;
    /// On the list of this turn or of the next.
    pub(super) const ENQUEUED: u16 = 1 << 3;
    /// Known to epoll.
    pub(super) const WATCHED: u16 = 1 << 4;
    /// Known to epoll with interest in room to send.
    pub(super) const ROOM_WATCHED: u16 = 1 << 5;
    /// The flight waits for room in the socket, or for a retry.
    pub(super) const WAITS_FOR_ROOM: u16 = 1 << 6;
    /// The flight waits for the warming thread, and must not go on before.
    pub(super) const WAITS_FOR_DISK: u16 = 1 << 7;
    /// To be half-closed after the flight.
    pub(super) const SHUTDOWN_LATER: u16 = 1 << 8;
    /// Nothing was received yet.
    pub(super) const FRESH: u16 = 1 << 9;
    /// The connection was sent for when last served: if there is something to receive too, that comes next.
    pub(super) const SENT_FOR: u16 = 1 << 10;
    /// The kernel refused to watch it.
    pub(super) const UNWATCHABLE: u16 = 1 << 11;
    /// Not connected yet.
    pub(super) const CONNECTING: u16 = 1 << 12;

    #[inline]
    pub(super) fn is(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    #[inline]
    pub(super) fn set(&mut self, marks: u16) {
        self.marks |= marks;
    }

    #[inline]
    pub(super) fn clear(&mut self, marks: u16) {
        self.marks &= !marks;
    }

    #[inline]
    pub(super) fn may_receive(&self) -> bool {
        let both = Self::RECEIVING | Self::READABLE;
        self.marks & both == both
    }

    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.link != NONE && !self.is(Self::WAITS_FOR_ROOM | Self::WAITS_FOR_DISK)
    }

    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.may_receive() || self.may_send()
    }

    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// The socket of an open connection; the table lends no other.
    #[inline]
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("an open connection has a socket").as_fd()
    }

    /// Half-closes.
    pub(super) fn shutdown(&self) {
        // ENOTCONN: the connection has failed, which its next receive tells.
        let _ = shutdown(self.socket(), Shutdown::Write);
    }

    /// What is in flight, if anything is.
    #[inline]
    pub(super) fn flight(&self) -> Option<u32> {
        (self.link != NONE).then_some(self.link)
    }

    /// Notes a new flight, which waits for nothing yet, or the end of one.
    #[inline]
    pub(super) fn set_flight(&mut self, flight: Option<u32>) {
        self.link = flight.unwrap_or(NONE);
        self.clear(Self::WAITS_FOR_ROOM | Self::WAITS_FOR_DISK);
    }
}

/// All connections. Free places of accepted ones form a list, the last one freed is used first: its memory is
/// still warm.
#[derive(Debug)]
pub(super) struct Table {
    connections: Vec<Connection>,
    free_first: u32,
    /// Free places of those we make.
    free_connected: FreeSlots,
    capacity: Capacity,
}

impl Table {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { connections: Vec::new(), free_first: NONE, free_connected: FreeSlots::default(), capacity }
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    pub(super) fn is_full_of_accepted(&self) -> bool {
        self.free_first == NONE && self.connections.len() >= self.capacity.slots() as usize
            || self.capacity.accepted == 0
    }

    pub(super) fn is_full_of_connected(&self) -> bool {
        self.free_connected.next(self.capacity.connected).is_none()
    }

    /// Takes an accepted connection in. The table must not be full of them.
    pub(super) fn insert_accepted(&mut self, socket: OwnedFd) -> Slot {
        assert!(!self.is_full_of_accepted(), "the table is full");
        let slot = self.free_first;
        if slot == NONE {
            let slot = self.connections.len().max(self.capacity.connected as usize) as Slot;
            return self.insert_at(slot, socket);
        }
        self.free_first = self.connections[slot as usize].link;
        self.insert_at(slot, socket)
    }

    /// Takes a connection in that we make. The table must not be full of them.
    pub(super) fn insert_connected(&mut self, socket: OwnedFd) -> Slot {
        let slot = self.free_connected.next(self.capacity.connected).expect("the table is full");
        self.free_connected.take();
        self.insert_at(slot, socket)
    }

    /// There may be something to receive from it already.
    fn insert_at(&mut self, slot: Slot, socket: OwnedFd) -> Slot {
        let index = slot as usize;
        if index >= self.connections.len() {
            let empty = || Connection { socket: None, generation: 0, link: NONE, marks: 0 };
            self.connections.resize_with(index + 1, empty);
        }
        let place = &mut self.connections[index];
        let generation = place.generation.wrapping_add(1);
        let marks = Connection::READABLE | Connection::FRESH;
        *place = Connection { socket: Some(socket), generation, link: NONE, marks };
        slot
    }

    /// Closes a connection's socket. Its place is not used again before `free`.
    pub(super) fn remove(&mut self, slot: Slot) {
        let place = &mut self.connections[slot as usize];
        assert!(place.socket.take().is_some(), "the slot is free already");
    }

    /// Frees the place of a connection that was removed.
    pub(super) fn free(&mut self, slot: Slot) {
        let place = &mut self.connections[slot as usize];
        debug_assert!(place.socket.is_none(), "the slot is in use");
        if self.capacity.is_connected(slot) {
            return self.free_connected.give_back(slot);
        }
        place.link = self.free_first;
        self.free_first = slot;
    }

    /// An open connection.
    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.connections.get_mut(slot as usize).filter(|connection| connection.socket.is_some())
    }

    /// An open connection, if it is still that one.
    #[inline]
    pub(super) fn get_mut_of(&mut self, slot: Slot, generation: u32) -> Option<&mut Connection> {
        self.get_mut(slot).filter(|connection| connection.generation == generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waker;

    fn any_descriptor() -> OwnedFd {
        Waker::new().unwrap().as_fd().try_clone_to_owned().unwrap()
    }

    #[test]
    fn slots_are_dense_and_the_last_one_freed_is_used_first() {
        let mut table = Table::new(Capacity::accepting(3));
        let slots: Vec<Slot> = (0..3).map(|_| table.insert_accepted(any_descriptor())).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert!(table.is_full_of_accepted());
        for slot in [0, 2] {
            table.remove(slot);
            assert!(table.is_full_of_accepted() || slot == 2, "removed is not free yet");
            table.free(slot);
        }
        assert!(!table.is_full_of_accepted());
        assert_eq!(table.insert_accepted(any_descriptor()), 2);
        assert_eq!(table.insert_accepted(any_descriptor()), 0);
        assert!(table.is_full_of_accepted() && table.is_full_of_connected());
    }

    #[test]
    fn accepted_connections_and_those_we_make_take_no_room_from_each_other() {
        for accepted_first in [false, true] {
            let mut table = Table::new(Capacity { connected: 2, accepted: 2 });
            let mut fill = |accepted| match accepted {
                true => [0; 2].map(|_| table.insert_accepted(any_descriptor())),
                false => [0; 2].map(|_| table.insert_connected(any_descriptor())),
            };
            let filled = [accepted_first, !accepted_first].map(&mut fill);
            assert_eq!(filled[usize::from(!accepted_first)], [2, 3]);
            assert_eq!(filled[usize::from(accepted_first)], [0, 1]);
            assert!(table.is_full_of_accepted() && table.is_full_of_connected());
            table.remove(1);
            table.free(1);
            assert!(table.is_full_of_accepted() && !table.is_full_of_connected());
            table.remove(2);
            table.free(2);
            assert_eq!(
                (table.insert_accepted(any_descriptor()), table.insert_connected(any_descriptor())),
                (2, 1)
            );
        }
        assert!(Table::new(Capacity::connecting(u32::MAX)).is_full_of_accepted());
    }

    #[test]
    fn a_former_user_of_a_slot_is_told_from_the_present_one() {
        let mut table = Table::new(Capacity::accepting(1));
        let slot = table.insert_accepted(any_descriptor());
        let before = table.get_mut(slot).unwrap().generation();
        table.remove(slot);
        assert!(table.get_mut(slot).is_none());
        assert!(table.is_full_of_accepted());
        table.free(slot);
        assert_eq!(table.insert_accepted(any_descriptor()), slot);
        assert!(table.get_mut_of(slot, before).is_none());
        assert!(table.get_mut_of(slot, before + 1).is_some());
        assert!(table.get_mut(slot + 1).is_none());
    }
}
