//! Where mail goes.

/// Which exchange mail is for. It is good until that exchange is finished: later mail is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Index of the worker.
    pub worker: u16,
    /// Slot of the connection in its worker.
    pub slot: u32,
    /// Which use of the slot, and which of its exchanges.
    pub generation: u32,
}
