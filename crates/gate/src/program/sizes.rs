//! How much the program remembers.
//!
//! It owns the sizes of the tables. It must never be changed after they were made.

/// Sizes of the tables; the first two are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Places for SYNs that were shed in 160 ms; six share one.
    pub again: u32,
    /// Places for clients that completed a handshake; four clients share one.
    pub known: u32,
    /// Connections that wait to be read from at the same time.
    pub waiting: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            // 1 MB, of which 384 KB are in use at a time. Of a flood of 200 000 a second 95 of 100 are
            // remembered for a second, of a million 31: six of those that come to a place in 160 ms, 3.9 and
            // 20 by the mean.
            again: 1 << 13,
            // 131 072 clients in 2 MB, with marks of 64 KB. Those of a /48, or of a /24, have 256 places of
            // these: one in 128.
            known: 1 << 15,
            // More than the accept queues of a host hold. Memory is taken only for those that wait.
            waiting: 1 << 17,
        }
    }
}
