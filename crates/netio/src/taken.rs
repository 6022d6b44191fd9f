//! What the peer of a connection has taken of what was sent.
//!
//! It must never be taken for what the kernel has taken: that is told by completions.

/// What the peer of a connection has taken, and not the kernel for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// A count that goes on by one for each byte that the peer acknowledges (tcpi_bytes_acked of TCP_INFO).
    /// Only differences mean something; of a Unix socket, only while nothing is sent.
    pub mark: u64,
    /// Bytes that were sent and are not acknowledged (SIOCOUTQ of tcp(7)).
    pub left_bytes: u64,
}
