//! Receiving: one operation a connection, armed again whenever the kernel has ended it and more is wanted.
//!
//! Rule 1: the first receive of a connection is single-shot, so that a connection that brings one request has
//! nothing to be cancelled when it is closed; from the second on they are multishot. After a pause it begins
//! anew: whoever pauses often wants one buffer at a time. Rule 2: what is armed is
//! brought in line with what is wanted once a turn, just before the operations are handed over: a `pause`
//! that is taken back in the same turn costs nothing. Rule 3: it is armed again because the kernel says that
//! no more will come, never because of an error number; the error number only says what to report.

use io_uring::squeue::Flags;
use io_uring::types::CancelBuilder;
use io_uring::{cqueue, opcode};

use super::buffers::{BUFFER_GROUP, BUFFER_SIZE_BYTES};
use super::ring_set::RingSet;
use super::slots::{CLOSING, ENDED, LAST, LISTED, OPEN, PAUSING, RECEIVED_ONCE, RECEIVING, WANTED};
use super::state::{ConnectionTable, Uring};
use super::token::Operation;
use crate::{Completion, Input, Slot};

impl ConnectionTable {
    /// See [`crate::Io::receive`].
    pub(crate) fn want_receiving(&mut self, slot: Slot) {
        let state = self.slots.get(slot);
        state.set(WANTED);
        if !state.has(RECEIVING) || state.has(PAUSING) {
            self.list(slot);
        }
    }

    /// See [`crate::Io::pause`].
    pub(crate) fn stop_receiving(&mut self, slot: Slot) {
        let state = self.slots.get(slot);
        state.clear(WANTED | RECEIVED_ONCE);
        if state.has(RECEIVING) {
            self.list(slot);
        }
    }

    /// Brings what is armed in line with what is wanted, for all slots where that may differ.
    #[inline]
    pub(crate) fn adjust_receiving(&mut self, rings: &mut RingSet) {
        if self.listed.is_empty() {
            return;
        }
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|slot| self.adjust_slot(rings, *slot));
        debug_assert!(self.listed.is_empty());
        self.listed = listed;
    }

    #[inline]
    pub(super) fn list(&mut self, slot: Slot) {
        let state = self.slots.get(slot);
        if !state.has(LISTED) {
            state.set(LISTED);
            self.listed.push(slot);
        }
    }

    /// Returns whether the slot has to be looked at again in the next turn.
    pub(super) fn adjust_slot(&mut self, rings: &mut RingSet, slot: Slot) -> bool {
        let (ring, descriptor) = rings.place_of(slot);
        let state = self.slots.get(slot);
        if !state.has(OPEN) || state.has(CLOSING | LAST | ENDED) {
            state.clear(LISTED);
            return false;
        }
        match (state.has(WANTED), state.has(RECEIVING)) {
            (true, false) => {
                if !rings.all[ring].buffers.available() {
                    return true;
                }
                let multishot = state.has(RECEIVED_ONCE);
                state.set(RECEIVING);
                let token = self.token(Operation::Receive, slot);
                let entry = if multishot {
                    opcode::RecvMulti::new(descriptor, BUFFER_GROUP).build()
                } else {
                    opcode::Recv::new(descriptor, std::ptr::null_mut(), BUFFER_SIZE_BYTES as u32)
                        .buf_group(BUFFER_GROUP)
                        .build()
                        .flags(Flags::BUFFER_SELECT)
                };
                rings.all[ring].push(&entry.user_data(token));
            }
            (false, true) if !state.has(PAUSING) => {
                state.set(PAUSING);
                let receive = CancelBuilder::user_data(self.token(Operation::Receive, slot));
                let token = self.token(Operation::ReceiveCancel, slot);
                let cancel = opcode::AsyncCancel2::new(receive).build().flags(Flags::SKIP_SUCCESS);
                rings.all[ring].push(&cancel.user_data(token));
            }
            _ => {}
        }
        self.slots.get(slot).clear(LISTED);
        false
    }
}

impl Uring {
    /// A completion of a receive.
    #[inline]
    pub(crate) fn received(&mut self, slot: Slot, result: i32, flags: u32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        if state.has(WANTED) {
            state.set(RECEIVED_ONCE);
        }
        let over = state.has(CLOSING | LAST);
        if !cqueue::more(flags) {
            state.clear(RECEIVING | PAUSING);
            if !over {
                self.connections.list(slot);
            }
        }
        let ring = self.completions.ring;
        let buffer = cqueue::buffer_select(flags);
        if let Some(buffer) = buffer {
            self.rings.all[ring].buffers.take();
            if result <= 0 || over {
                self.rings.all[ring].buffers.give_back(buffer);
            }
        }
        if over {
            self.go_on_closing(slot);
            return None;
        }
        match (result, buffer) {
            (1.., Some(buffer)) => {
                let input = Input { buffer: (ring as u32) << 16 | u32::from(buffer), length: result as u32 };
                Some(Completion::Received { slot, input })
            }
            (0.., _) => Some(self.ended(slot, 0)),
            (errno, _) => self.receive_failed(slot, -errno),
        }
    }

    /// The cancelling of a receive found nothing: it was just being carried out. It is cancelled again if it
    /// goes on.
    pub(crate) fn receive_not_cancelled(&mut self, slot: Slot, generation: u16) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        if state.generation() == generation && state.has(PAUSING) {
            state.clear(PAUSING);
            self.connections.list(slot);
        }
        None
    }

    fn receive_failed(&mut self, slot: Slot, errno: i32) -> Option<Completion> {
        match errno {
            libc::ENOBUFS => {
                self.rings.grow_buffers(self.completions.ring);
                None
            }
            libc::ECANCELED | libc::EINTR | libc::EAGAIN => None,
            _ => Some(self.ended(slot, errno)),
        }
    }

    fn ended(&mut self, slot: Slot, errno: i32) -> Completion {
        let state = self.connections.slots.get(slot);
        state.set(ENDED);
        state.clear(WANTED);
        Completion::Ended { slot, errno }
    }
}
