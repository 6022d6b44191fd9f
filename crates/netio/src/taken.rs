//! Bytes of a connection that its peer has acknowledged.
//!
//! It must never be taken for what the kernel has taken: that is told by completions.

/// Bytes that the peer of a connection has acknowledged, not those that the kernel took for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// A count that goes on by one for each byte that the peer acknowledges (tcpi_bytes_acked of TCP_INFO).
    /// Only differences mean something; of a Unix socket, only while nothing is sent.
    pub mark: u64,
    /// Bytes that were sent and are not acknowledged (SIOCOUTQ of tcp(7)).
    pub left_bytes: u64,
}
