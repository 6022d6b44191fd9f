//! What is known of each connection: eight bytes a slot, in one table that grows as slots are really used.
//!
//! Owns the flags that say which operations of a slot are with the kernel. It must never hold a buffer or a
//! pointer: an idle connection costs its eight bytes here and nothing else.

use crate::Slot;

/// The slot names a connection.
pub(crate) const OPEN: u16 = 1;
/// The engine wants deliveries.
pub(crate) const WANTED: u16 = 1 << 1;
/// A receive is with the kernel.
pub(crate) const RECEIVING: u16 = 1 << 2;
/// The first receive is over: from now on multishot.
pub(crate) const RECEIVED_ONCE: u16 = 1 << 3;
/// The slot stands in the list of those whose receiving has to be adjusted before the next submission.
pub(crate) const LISTED: u16 = 1 << 4;
/// The peer has ended, or the connection failed while receiving.
pub(crate) const ENDED: u16 = 1 << 5;
/// The cancelling of the receive is with the kernel.
pub(crate) const PAUSING: u16 = 1 << 6;
/// An operation of the send is with the kernel: at most one at a time.
pub(crate) const SENDING: u16 = 1 << 7;
/// That operation has a close linked to it.
pub(crate) const CLOSE_LINKED: u16 = 1 << 8;
/// After this send the connection is closed.
pub(crate) const LAST: u16 = 1 << 9;
/// A shutdown is with the kernel.
pub(crate) const SHUTTING: u16 = 1 << 10;
/// A shutdown has to follow the send in flight.
pub(crate) const SHUTDOWN_AFTER_SEND: u16 = 1 << 11;
/// The connection is being closed.
pub(crate) const CLOSING: u16 = 1 << 12;

/// The operation of the send reads a file: it ends by itself, and is not found by a cancel of the slot's
/// operations.
pub(crate) const READING: u16 = 1 << 13;

/// The connecting is with the kernel.
pub(crate) const CONNECTING: u16 = 1 << 14;
/// The making of a normal descriptor, to ask the kernel about the connection, is with the kernel.
pub(crate) const INSPECTING: u16 = 1 << 15;

/// Operations whose completions must have come before the slot may be closed.
pub(crate) const WITH_KERNEL: u16 = RECEIVING | SENDING | SHUTTING | CONNECTING | INSPECTING;

/// No send in flight.
pub(crate) const NO_SEND: u32 = u32::MAX;

/// The state of a connection, by its slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotState {
    flags: u16,
    generation: u16,
    /// Index of the send in flight, or [`NO_SEND`].
    pub(crate) send: u32,
}

const _: () = assert!(size_of::<SlotState>() <= 16);

impl SlotState {
    /// Whether any of the flags is set.
    #[inline]
    pub(crate) fn has(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Sets flags.
    #[inline]
    pub(crate) fn set(&mut self, flags: u16) {
        self.flags |= flags;
    }

    /// Clears flags.
    #[inline]
    pub(crate) fn clear(&mut self, flags: u16) {
        self.flags &= !flags;
    }

    /// Which use of the slot this is, modulo 2^16.
    #[inline]
    pub(crate) fn generation(self) -> u16 {
        self.generation
    }

    /// Whether an operation is with the kernel that does not end by itself.
    pub(crate) fn is_cancellable(self) -> bool {
        self.has(RECEIVING | CONNECTING) || (self.has(SENDING) && !self.has(READING))
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    states: Vec<SlotState>,
}

impl Slots {
    /// A new connection has this slot.
    pub(crate) fn open(&mut self, slot: Slot) {
        let index = slot as usize;
        if index >= self.states.len() {
            let empty = SlotState { flags: 0, generation: 0, send: NO_SEND };
            self.states.resize(index + 1, empty);
        }
        let state = &mut self.states[index];
        assert!(!state.has(OPEN), "slot {slot} is used again before it was reported closed");
        state.flags = OPEN;
    }

    /// Whether the slot's last send, and the close linked to it, are all that is left of it.
    #[inline]
    pub(crate) fn is_closing_by_link(&self, slot: Slot) -> bool {
        self.states.get(slot as usize).is_some_and(|state| state.has(CLOSE_LINKED))
    }

    /// The slot is free. Completions of its past are told from its future's by the generation.
    pub(crate) fn retire(&mut self, slot: Slot) {
        let state = self.get(slot);
        assert!(!state.has(WITH_KERNEL) && state.send == NO_SEND, "slot {slot} is retired while in use");
        *state = SlotState { flags: 0, generation: state.generation.wrapping_add(1), send: NO_SEND };
    }

    /// The state of a slot.
    #[inline]
    pub(crate) fn get(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.states[slot as usize]
    }
}
