//! Setting options of a connection through its ring (`SOCKET_URING_OP_SETSOCKOPT`): a direct descriptor has
//! no other way, but to be made a normal one for the moment.
//!
//! It must never move a value that an operation points to.

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fixed;

use super::slots::{CLOSING, LAST, OPEN};
use super::state::Uring;
use super::token::{Operation, pack};
use crate::{Slot, Tuning};

/// Sets an option of a socket in the table. The value is read when the operation is handed over.
pub(crate) fn set_option(descriptor: Fixed, tuning: Tuning, value: *const libc::c_int) -> Entry {
    let (level, name, _) = tuning.option();
    let length = size_of::<libc::c_int>() as u32;
    opcode::SetSockOpt::new(descriptor, level as u32, name as u32, value.cast(), length).build()
}

impl Uring {
    /// See [`crate::Io::tune`].
    pub(crate) fn start_tuning(&mut self, slot: Slot, tuning: Tuning) {
        let state = self.connections.slots.get(slot);
        if !self.rings.features.socket_options || !state.has(OPEN) || state.has(CLOSING | LAST) {
            return;
        }
        let (_, _, value) = tuning.option();
        let value = self.connections.option_values.entry(value).or_insert_with(|| Box::new(value));
        let (ring, descriptor) = self.rings.placement.of(slot);
        let set = set_option(descriptor, tuning, &raw const **value).flags(Flags::SKIP_SUCCESS);
        self.rings.all[ring].push(&set.user_data(pack(Operation::Tune, 0, slot)));
    }
}
