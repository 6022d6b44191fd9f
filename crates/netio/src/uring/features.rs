//! The optional parts of io_uring, as found by the probe.
//!
//! It must never be filled in from a version number.

use std::fmt;

/// What of io_uring works here beyond what is needed in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// The kernel works off a whole batch even if one operation in it is refused (5.18).
    pub submit_all: bool,
    /// A completion does not interrupt the worker (5.19).
    pub coop_taskrun: bool,
    /// The kernel may rely on one thread using the ring (6.0).
    pub single_issuer: bool,
    /// Completions are worked out only when the worker asks for them (6.1).
    pub defer_taskrun: bool,
    /// The submission queue has no array of indices, which saves an indirection (6.6).
    pub no_sqarray: bool,
    /// A connection can be made a normal descriptor, so that files go out by sendfile(2) (6.8).
    pub fixed_fd_install: bool,
    /// The kernel leaves a part of a table of direct descriptors to us, so that the same ring accepts and
    /// connects (6.0).
    pub divided_tables: bool,
    /// Options of a connection can be set without a normal descriptor (6.7).
    pub socket_options: bool,
}

impl fmt::Display for Features {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (self.single_issuer, "single issuer"),
            (self.defer_taskrun, "deferred task run"),
            (self.no_sqarray, "no index array"),
            (self.fixed_fd_install, "descriptor install"),
            (self.divided_tables, "divided tables"),
            (self.socket_options, "socket options"),
        ];
        formatter.write_str("multishot accept and receive, buffer rings")?;
        named.iter().filter(|(works, _)| *works).try_for_each(|(_, name)| write!(formatter, ", {name}"))
    }
}
