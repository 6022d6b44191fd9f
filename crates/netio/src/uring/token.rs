//! The 64 bits that travel with an operation through the kernel and come back with its completion.
//!
//! Owns their layout: operation (8 bits), marks (8), generation (16), index (32). It must never hold a
//! pointer, so that a completion can be checked instead of believed. The index is a slot or a listener, as
//! the operation says; the generation counts the uses of a slot, and with an accept or a take names
//! its room.

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Operation {
    /// Accepting; the index is a listener.
    Accept,
    /// Cancelling the accepts of a listener.
    AcceptCancel,
    /// Receiving on a slot.
    Receive,
    /// Cancelling the receiving of a slot (`pause`).
    ReceiveCancel,
    /// Sending from memory.
    Send,
    /// Waiting until a slot can be written to, for a file.
    Writable,
    /// Making a normal descriptor of a slot, for a file.
    Install,
    /// Reading a file into memory, to be sent from there.
    Read,
    /// Half-closing.
    Shutdown,
    /// Making a normal descriptor of a slot, to half-close it.
    InstallToShutdown,
    /// Cancelling everything on a slot (`close`).
    Cancel,
    /// Closing a slot, linked to its last send.
    Close,
    /// The waker was used.
    Wake,
    /// A ring other than the first has work.
    RingReady,
    /// Moving a socket into the table.
    Place,
    /// Connecting a slot.
    Connect,
    /// Making a normal descriptor of a slot, to ask the kernel about it.
    InstallToInspect,
    /// Time to look again at the files whose queues have to drain.
    DrainTimer,
    /// Time to look whether a burst is over.
    BurstTimer,
    /// Closing a slot, unlinked: completes only if there was no socket.
    CloseSilently,
    /// Cancelling an accept, unlinked: nobody asks what came of it.
    CancelSilently,
    /// Waiting for things to come at what is watched; the index is a watch.
    Watch,
    /// Waiting for room to send at it.
    WatchRoom,
    /// Setting an option of a slot: nobody asks what came of it.
    Tune,
    /// Waiting for a connection at khttpd's device; the index is a listener.
    Offer,
    /// Moving a connection from there into the table; the index is a listener.
    TakeIn,
}

const OPERATIONS: [Operation; 26] = [
    Operation::Accept,
    Operation::AcceptCancel,
    Operation::Receive,
    Operation::ReceiveCancel,
    Operation::Send,
    Operation::Writable,
    Operation::Install,
    Operation::Read,
    Operation::Shutdown,
    Operation::InstallToShutdown,
    Operation::Cancel,
    Operation::Close,
    Operation::Wake,
    Operation::RingReady,
    Operation::Place,
    Operation::Connect,
    Operation::InstallToInspect,
    Operation::DrainTimer,
    Operation::BurstTimer,
    Operation::CloseSilently,
    Operation::CancelSilently,
    Operation::Watch,
    Operation::WatchRoom,
    Operation::Tune,
    Operation::Offer,
    Operation::TakeIn,
];

/// Marks the completion of what stands in the place of an operation, because its chain was divided.
pub(crate) const DIVIDED: u64 = 1 << 48;

/// Whether a token has that mark.
#[inline]
pub(crate) fn is_divided(token: u64) -> bool {
    token & DIVIDED != 0
}

/// Packs the three.
#[inline]
pub(crate) fn pack(operation: Operation, generation: u16, index: u32) -> u64 {
    (operation as u64) << 56 | u64::from(generation) << 32 | u64::from(index)
}

/// Unpacks what [`pack`] packed.
#[inline]
pub(crate) fn unpack(token: u64) -> (Operation, u16, u32) {
    (OPERATIONS[(token >> 56) as usize], (token >> 32) as u16, token as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for (position, operation) in OPERATIONS.into_iter().enumerate() {
            assert_eq!(operation as usize, position);
            for (generation, index) in [(0, 0), (u16::MAX, u32::MAX), (7, 100_000)] {
                let token = pack(operation, generation, index);
                assert_eq!(unpack(token), (operation, generation, index));
                assert_eq!(unpack(token | DIVIDED), (operation, generation, index));
                assert!(!is_divided(token) && is_divided(token | DIVIDED));
            }
        }
    }
}
