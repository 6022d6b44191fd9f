//! How much the program remembers.
//!
//! It owns the sizes of the tables. It must never be changed after they were made.

/// Sizes of the tables; the first two are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Places for SYNs that were shed; four share one.
    pub again: u32,
    /// Places for clients that completed a handshake; four clients share one.
    pub known: u32,
    /// Connections that wait to be read from at the same time.
    pub waiting: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            // 1 MB. Of a flood of 200 000 a second 71 of 100 find a place, of a million 20 (Erlang's loss
            // formula: four servers, loads of 3.8 and 19). A larger table remembers more, and pushes the
            // server out of its caches.
            again: 1 << 16,
            // 131 072 clients in 2 MB, with marks of 256 KB.
            known: 1 << 15,
            // More than the accept queues of a host hold. Memory is taken only for those that wait.
            waiting: 1 << 17,
        }
    }
}
