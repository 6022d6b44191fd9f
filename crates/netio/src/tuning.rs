//! What can be set on a connection that lives.
//!
//! It must never be a value that a peer chooses: a ring keeps each distinct one.

use crate::socket::UNSENT_BYTES_MAX;

/// A setting of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tuning {
    /// Bytes the kernel keeps of what was sent and not acknowledged, before it takes more (SO_SNDBUF of
    /// socket(7), which the kernel doubles; from then on it no longer grows by itself).
    SendBuffer(u32),
    /// Bytes that may wait to be sent for the first time, before the kernel takes more (TCP_NOTSENT_LOWAT of
    /// tcp(7)).
    Unsent(u32),
    /// Milliseconds that sent bytes may stay without an acknowledgement, before the kernel ends the
    /// connection (TCP_USER_TIMEOUT of tcp(7)); 0 leaves it to the kernel.
    UserTimeout(u32),
}

impl Tuning {
    /// What a connection of a listener with [`crate::socket::bound_unsent`] begins with.
    pub const UNSENT_AT_FIRST: Self = Self::Unsent(UNSENT_BYTES_MAX);

    /// Level, name and value for setsockopt(2). Values beyond what an int holds are the largest it holds.
    pub(crate) fn option(self) -> (libc::c_int, libc::c_int, libc::c_int) {
        let (level, name, value) = match self {
            Self::SendBuffer(bytes) => (libc::SOL_SOCKET, libc::SO_SNDBUF, bytes),
            Self::Unsent(bytes) => (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes),
            Self::UserTimeout(ms) => (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms),
        };
        (level, name, libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX))
    }
}
