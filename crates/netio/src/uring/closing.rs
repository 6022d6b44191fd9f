//! Closing and half-closing: before a close, everything that is with the kernel comes back first, then the
//! descriptor goes, then the slot is free.
//!
//! It must never free a slot while a completion of it may still come: that is why a late completion can never
//! be taken for one of the slot's next connection.

use std::os::fd::{FromRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::CancelBuilder;

use super::ring_set::RingSet;
use super::slots::{
    CLOSING, CONNECTING, LAST, NO_SEND, OPEN, READING, RECEIVING, SENDING, SHUTDOWN_AFTER_SEND, SHUTTING,
    WANTED, WITH_KERNEL,
};
use super::state::{ConnectionTable, Uring};
use super::token::Operation;
use crate::{Completion, Slot};

/// What may wait for the peer, by flag. A send waits in one of two ways.
const CANCELLABLE: [(u16, Operation); 4] = [
    (RECEIVING, Operation::Receive),
    (CONNECTING, Operation::Connect),
    (SENDING, Operation::Send),
    (SENDING, Operation::Writable),
];

impl ConnectionTable {
    pub(super) fn push_shutdown(&mut self, rings: &mut RingSet, slot: Slot) {
        let (ring, descriptor) = rings.place_of(slot);
        let token = self.token(Operation::Shutdown, slot);
        rings.all[ring].push(&opcode::Shutdown::new(descriptor, libc::SHUT_WR).build().user_data(token));
    }

    /// Cancels by token, which the kernel finds in a table: by descriptor it would look through everything
    /// that waits in the ring, for each connection that is closed.
    pub(super) fn cancel_slot(&mut self, rings: &mut RingSet, slot: Slot) {
        let (ring, _) = rings.place_of(slot);
        let state = *self.slots.get(slot);
        for (flag, operation) in CANCELLABLE {
            if state.has(flag) && !(flag == SENDING && state.has(READING)) {
                let cancelled = CancelBuilder::user_data(self.token(operation, slot));
                let cancel = opcode::AsyncCancel2::new(cancelled).build();
                let token = self.token(Operation::Cancel, slot);
                rings.all[ring].push(&cancel.user_data(token));
            }
        }
    }
}

impl Uring {
    /// See [`crate::Io::shutdown`].
    pub(crate) fn half_close(&mut self, slot: Slot) {
        let (ring, descriptor) = self.rings.place_of(slot);
        let state = self.connections.slots.get(slot);
        if state.has(CLOSING | LAST | SHUTTING) || !state.has(OPEN) {
            return;
        }
        if state.send != NO_SEND {
            return state.set(SHUTDOWN_AFTER_SEND);
        }
        state.set(SHUTTING);
        if self.rings.features.fixed_fd_install {
            let token = self.connections.token(Operation::InstallToShutdown, slot);
            self.rings.all[ring].push(&opcode::FixedFdInstall::new(descriptor, 0).build().user_data(token));
        } else {
            self.connections.push_shutdown(&mut self.rings, slot);
        }
    }

    /// Half-closes by a normal descriptor: the ring's own shutdown needs a thread of the kernel each time.
    pub(crate) fn installed_to_shutdown(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        if result < 0 && !self.connections.slots.get(slot).has(CLOSING) {
            self.connections.push_shutdown(&mut self.rings, slot);
            return None;
        }
        if result >= 0 {
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
            let socket = unsafe { OwnedFd::from_raw_fd(result) };
            // That it failed (ENOTCONN: the peer is gone) shows when receiving.
            let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Write);
        }
        self.shut_down(slot)
    }

    /// A shutdown is done. That it failed shows when receiving.
    pub(crate) fn shut_down(&mut self, slot: Slot) -> Option<Completion> {
        self.connections.slots.get(slot).clear(SHUTTING);
        self.go_on_closing(slot);
        None
    }

    /// See [`crate::Io::close`]. Also the end of a last send.
    pub(crate) fn start_closing(&mut self, slot: Slot) {
        let state = self.connections.slots.get(slot);
        if state.has(CLOSING) || !state.has(OPEN) {
            return;
        }
        state.set(CLOSING);
        state.clear(WANTED);
        if state.is_cancellable() {
            self.connections.cancel_slot(&mut self.rings, slot);
        }
        self.go_on_closing(slot);
    }

    /// Goes on as far as possible with a close that has been started.
    #[inline]
    pub(crate) fn go_on_closing(&mut self, slot: Slot) {
        let state = self.connections.slots.get(slot);
        if !state.has(CLOSING) {
            return;
        }
        if state.send != NO_SEND && !state.has(SENDING) {
            // The send waits for no completion: it is a file between two steps.
            let send = state.send;
            self.forget_file(send);
            self.end_send(slot, libc::ECANCELED);
        }
        let state = self.connections.slots.get(slot);
        if state.has(WITH_KERNEL) || state.send != NO_SEND {
            return;
        }
        let (ring, descriptor) = self.rings.place_of(slot);
        let token = self.connections.token(Operation::CloseSilently, slot);
        let close = opcode::Close::new(descriptor).build().flags(Flags::SKIP_SUCCESS);
        self.rings.all[ring].push(&close.user_data(token));
        self.retire(slot);
    }

    /// The slot is free: nothing of it is with the kernel, and its descriptor is closed before anything that
    /// is handed over from now on.
    pub(crate) fn retire(&mut self, slot: Slot) {
        if !self.rings.placement.capacity.is_connected(slot) {
            let (ring, _) = self.rings.place_of(slot);
            self.rings.all[ring].accepted -= 1;
        }
        self.connections.slots.retire(slot);
        self.completions.pending.push_back(Completion::Closed { slot });
    }

    /// A cancel of something on a slot is done. What it did not find was just being carried out, and may go
    /// on: it is cancelled once more.
    pub(crate) fn cancelled(&mut self, slot: Slot, generation: u16, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        let goes_on = state.generation() == generation && state.has(CLOSING) && state.is_cancellable();
        if result < 0 && goes_on {
            self.connections.cancel_slot(&mut self.rings, slot);
        }
        None
    }
}
