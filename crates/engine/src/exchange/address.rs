//! Where mail goes.

/// Which exchange mail is for. It is good until that exchange is finished: later mail is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Index of the worker.
    pub worker: u16,
    /// Slot of the connection in its worker.
    pub slot: u32,
    /// Which use of the slot, and in HTTP/1.1 which of its exchanges.
    pub generation: u32,
    /// In HTTP/2 the number of the stream; else 0.
    pub stream: u32,
}
