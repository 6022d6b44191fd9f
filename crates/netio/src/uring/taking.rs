//! Connections that khttpd hands over: its device is polled by the first ring, what it has is taken by a
//! call, and moves into a table, where the kernel chooses the place as it does for an accepted connection.
//!
//! Rule 1: a connection is taken only where a slot is free for it, which is claimed until it is in the table.
//! Rule 2: a poll has one shot and is exclusive, so that of several workers at the device one is woken. Order
//! of calls: `watch_device`; `offered` when the poll is over, `taken_in` for each connection;
//! `unwatch_device`. It must never hold a connection itself (see handed.rs).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::types::{CancelBuilder, Fd};
use rustix::io::Errno;

use super::accepting::is_transient;
use super::ring_set::RingSet;
use super::state::{Accepting, Uring};
use super::token::{Operation, pack};
use crate::Completion;
use crate::host::khttpd;

/// `EPOLLEXCLUSIVE`, which a poll of a ring understands as well.
const EXCLUSIVE: u32 = 1 << 28;

/// In the place of an offset: the kernel chooses (`IORING_FILE_INDEX_ALLOC`).
const ANYWHERE: i32 = -1;

impl Accepting {
    /// Waits for connections at the device; tells if there is no room for any.
    pub(super) fn watch_device(
        &mut self,
        rings: &mut RingSet,
        pending: &mut VecDeque<Completion>,
        index: usize,
    ) {
        let has_room = rings.with_room().is_some();
        let listener = &mut self.listeners[index];
        let (Some(device), Some(socket)) = (&mut listener.device, &listener.socket) else { return };
        if has_room && !device.is_polled {
            device.is_polled = true;
            listener.outstanding += 1;
            let events = libc::POLLIN as u32 | EXCLUSIVE;
            let poll = opcode::PollAdd::new(Fd(socket.as_raw_fd()), events).build();
            rings.all[0].push(&poll.user_data(pack(Operation::Offer, 0, index as u32)));
        } else if !has_room && listener.outstanding == 0 {
            let stopped = self.accept_stopped(index, libc::ENFILE);
            pending.extend(stopped);
        }
    }

    /// Waits no longer. What was taken goes on its way.
    pub(super) fn unwatch_device(&mut self, rings: &mut RingSet, index: usize) {
        let poll = CancelBuilder::user_data(pack(Operation::Offer, 0, index as u32));
        let cancel = opcode::AsyncCancel2::new(poll).build();
        rings.all[0].push(&cancel.user_data(pack(Operation::AcceptCancel, 0, index as u32)));
    }

    /// The poll of the device is over.
    pub(super) fn offered(
        &mut self,
        rings: &mut RingSet,
        pending: &mut VecDeque<Completion>,
        index: u32,
        result: i32,
    ) -> Option<Completion> {
        let listener = &mut self.listeners[index as usize];
        listener.note_end();
        if let Some(device) = &mut listener.device {
            device.is_polled = false;
        }
        let stopped = if result >= 0 {
            self.take(rings, index as usize)
        } else if is_transient(-result) {
            None
        } else {
            self.accept_stopped(index as usize, -result)
        };
        self.arm_accepts(rings, pending, index as usize);
        stopped
    }

    /// Takes what there is, and room for.
    fn take(&mut self, rings: &mut RingSet, index: usize) -> Option<Completion> {
        while let Some(ring) = rings.with_room() {
            let listener = &mut self.listeners[index];
            let (true, Some(device), Some(socket)) =
                (listener.wanted, &mut listener.device, &listener.socket)
            else {
                return None;
            };
            let room = device.free()?;
            match khttpd::accept(socket.as_fd(), self.learns_peers) {
                Ok((connection, peer)) => self.take_in(rings, index, ring, room, connection, peer),
                Err(Errno::AGAIN) => return None,
                Err(errno) if is_transient(errno.raw_os_error()) => {}
                Err(errno) => return self.accept_stopped(index, errno.raw_os_error()),
            }
        }
        None
    }

    /// Moves a connection into the table of a ring with room.
    pub(super) fn take_in(
        &mut self,
        rings: &mut RingSet,
        index: usize,
        ring: usize,
        room: usize,
        connection: OwnedFd,
        peer: Option<SocketAddr>,
    ) {
        let listener = &mut self.listeners[index];
        let Some(device) = &mut listener.device else { return };
        let place = device.keep(room, connection, peer);
        listener.outstanding += 1;
        let ring = &mut rings.all[ring];
        ring.claims += 1;
        let place = opcode::FilesUpdate::new(place.cast_const(), 1).offset(ANYWHERE).build();
        ring.push(&place.user_data(pack(Operation::TakeIn, room as u16, index as u32)));
    }
}

impl Uring {
    /// A connection is in the table, or could not be moved there: then it ends.
    pub(super) fn taken_in(&mut self, index: u32, room: u16, result: i32) -> Option<Completion> {
        self.rings.all[self.completions.ring].claims -= 1;
        let listener = &mut self.accepting.listeners[index as usize];
        listener.note_end();
        let (place, peer) = listener.device.as_mut()?.take(usize::from(room));
        let completion = if result == 1 {
            self.placed(index, place as u32, peer)
        } else {
            self.accepting.accept_stopped(index as usize, -result)
        };
        self.accepting.arm_accepts(&mut self.rings, &mut self.completions.pending, index as usize);
        completion
    }
}
