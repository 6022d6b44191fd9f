//! Sending from memory: one operation at a time a connection, so that the order is the kernel's only order.
//!
//! Rule 1: each operation takes what fits, which shows whether the peer makes progress. Rule 2: the last send
//! of a connection on which nothing else is armed carries its close with it, if it is no longer than
//! [`WHOLE_BYTES_MAX`] and nothing of it was taken before. The kernel is then asked to go on until all is
//! taken; the close alone completes, or, if the send fails, the send alone.

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};

use super::chains::{cancel, moment};
use super::in_flight::Piece;
use super::ring_set::RingSet;
use super::slots::{
    CLOSE_LINKED, CLOSING, INSPECTING, LAST, NO_SEND, OPEN, RECEIVING, SENDING, SHUTDOWN_AFTER_SEND, SHUTTING,
};
use super::state::{ConnectionTable, Uring};
use super::token::Operation;
use crate::{Completion, Outgoing, Slot};

/// Up to this length a last send is finished by the kernel alone: an answer whose body was copied behind its
/// head, and no more than an empty socket takes at once. A longer one, or the rest of one that found the
/// socket full, could be under way for long, and its progress has to be seen.
const WHOLE_BYTES_MAX: usize = 24 * 1024;

/// What one operation may be asked to send; a result has 31 bits.
const OPERATION_BYTES_MAX: usize = 1 << 30;

/// Memory of a container that is kept for its next use.
const KEPT_BYTES: usize = 32 * 1024;

impl ConnectionTable {
    /// Whether nothing but this send keeps the connection open, and nobody looks at it.
    #[inline]
    pub(super) fn may_close(&mut self, slot: Slot) -> bool {
        let state = self.slots.get(slot);
        state.has(LAST) && !state.has(RECEIVING | SHUTTING | INSPECTING)
    }

    #[inline]
    pub(super) fn push_send(&mut self, rings: &mut RingSet, slot: Slot, entry: Entry, closes: bool) {
        let (ring, descriptor) = rings.place_of(slot);
        let token = self.token(Operation::Send, slot);
        let entry = entry.user_data(token);
        let state = self.slots.get(slot);
        state.set(SENDING);
        if closes {
            state.set(CLOSE_LINKED);
            let token = self.token(Operation::Close, slot);
            let close = opcode::Close::new(descriptor).build().user_data(token);
            rings.all[ring].push_chain(&[entry.flags(Flags::IO_LINK | Flags::SKIP_SUCCESS), close]);
        } else {
            rings.all[ring].push(&entry);
        }
    }
}

impl Uring {
    /// See [`crate::Io::send`].
    #[inline]
    pub(crate) fn start_send(&mut self, slot: Slot, outgoing: Box<Outgoing>, last: bool) {
        let state = self.connections.slots.get(slot);
        assert!(state.send == NO_SEND, "one send a slot at a time");
        if state.has(CLOSING) || !state.has(OPEN) {
            return self.give_back(slot, outgoing, libc::ECANCELED);
        }
        if last {
            state.set(LAST);
        }
        state.send = self.connections.in_flight.put(slot, outgoing);
        self.go_on_sending(slot);
    }

    /// Gives the next piece to the kernel.
    #[inline]
    pub(crate) fn go_on_sending(&mut self, slot: Slot) {
        let send = self.connections.slots.get(slot).send;
        let (_, descriptor) = self.rings.place_of(slot);
        let in_flight = self.connections.in_flight.get(send);
        let untouched = in_flight.is_untouched();
        match in_flight.next_piece() {
            Piece::Bytes { address, length, more } => {
                let closes =
                    !more && untouched && length <= WHOLE_BYTES_MAX && self.connections.may_close(slot);
                let flags = send_flags(closes, more);
                let entry = opcode::Send::new(descriptor, address, length.min(OPERATION_BYTES_MAX) as u32);
                self.connections.push_send(&mut self.rings, slot, entry.flags(flags).build(), closes);
            }
            Piece::Vectors { header, length, more } => {
                let closes =
                    !more && untouched && length <= WHOLE_BYTES_MAX && self.connections.may_close(slot);
                let flags = send_flags(closes, more);
                let entry = opcode::SendMsg::new(descriptor, header).flags(flags as u32);
                self.connections.push_send(&mut self.rings, slot, entry.build(), closes);
            }
            Piece::File => self.start_file(slot),
            Piece::End => self.finish_send(slot, 0),
        }
    }

    /// A completion of a send from memory.
    #[inline]
    pub(crate) fn send_completed(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        // A send with a close linked to it ends once: what it did not do then is not done.
        let closing = state.has(CLOSING | CLOSE_LINKED);
        state.clear(SENDING | CLOSE_LINKED);
        let in_flight = self.connections.in_flight.get(state.send);
        if result < 0 {
            match -result {
                libc::EAGAIN | libc::EINTR if !closing => self.wait_writable(slot),
                errno => self.finish_send(slot, errno),
            }
            return None;
        }
        in_flight.take(result as usize);
        if in_flight.is_finished() {
            self.finish_send(slot, 0);
            return None;
        }
        if closing {
            self.finish_send(slot, libc::ECANCELED);
            return None;
        }
        self.go_on_sending(slot);
        Some(Completion::Progress { slot, bytes: result as u32 })
    }

    /// A close that was linked to the last send has completed: both are done. Had the send failed, its own
    /// completion would have come instead.
    pub(crate) fn linked_close_completed(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let linked = self.connections.slots.get(slot).has(CLOSE_LINKED);
        assert!(linked && result == 0, "a linked close completed with {result}");
        self.end_linked_close(slot);
        None
    }

    /// A last send and its close are done. Either the close has completed, or its descriptor has been
    /// accepted into: some kernels report that first.
    pub(crate) fn end_linked_close(&mut self, slot: Slot) {
        self.connections.slots.get(slot).clear(SENDING | CLOSE_LINKED);
        self.end_send(slot, 0);
        self.retire(slot);
    }

    /// The kernel took the send without the close that was linked to it, and the send has been cancelled in
    /// the close's place. What is cancelled, or fails, tells so by itself.
    #[cold]
    pub(crate) fn linked_close_divided(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        if !state.has(CLOSE_LINKED) {
            return None;
        }
        match -result {
            // The send is over, and has not failed.
            libc::ENOENT => {
                state.clear(SENDING | CLOSE_LINKED);
                self.finish_send(slot, 0);
            }
            // The send is on its way out, and looked for again a moment later.
            libc::EALREADY | libc::ETIME => {
                let (send, close) = (
                    self.connections.token(Operation::Send, slot),
                    self.connections.token(Operation::Close, slot),
                );
                let (ring, _) = self.rings.place_of(slot);
                let waits = -result == libc::EALREADY;
                self.rings.all[ring].push(&if waits { moment(close) } else { cancel(send, close) });
            }
            _ => {}
        }
        None
    }

    /// Gives the container back, and starts what had to wait for that.
    #[inline]
    pub(crate) fn finish_send(&mut self, slot: Slot, errno: i32) {
        self.end_send(slot, errno);
        let state = self.connections.slots.get(slot);
        if state.has(CLOSING) {
            self.go_on_closing(slot);
        } else if state.has(LAST) {
            self.start_closing(slot);
        } else if state.has(SHUTDOWN_AFTER_SEND) {
            state.clear(SHUTDOWN_AFTER_SEND);
            self.half_close(slot);
        }
    }

    /// Gives the container back.
    #[inline]
    pub(crate) fn end_send(&mut self, slot: Slot, errno: i32) {
        let state = self.connections.slots.get(slot);
        let send = std::mem::replace(&mut state.send, NO_SEND);
        if let Some(outgoing) = self.connections.in_flight.end(send) {
            self.give_back(slot, outgoing, errno);
        }
    }

    #[inline]
    fn give_back(&mut self, slot: Slot, mut outgoing: Box<Outgoing>, errno: i32) {
        outgoing.clear(KEPT_BYTES);
        self.completions.pending.push_back(Completion::Sent { slot, outgoing, errno });
    }
}

/// A send that closes is for the kernel to go on with, and the close ends the last segment in place of
/// a segment of its own. With more to come the peer gets full segments.
#[inline]
fn send_flags(closes: bool, more: bool) -> i32 {
    let whole = if closes { libc::MSG_WAITALL } else { 0 };
    libc::MSG_NOSIGNAL | whole | if more || closes { libc::MSG_MORE } else { 0 }
}
