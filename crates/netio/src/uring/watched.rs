//! What is known of each descriptor that is watched beside connections.
//!
//! It owns a duplicate of each, until nothing that is with the kernel names it.

use std::os::fd::OwnedFd;

/// One of them.
#[derive(Debug)]
pub(crate) struct Watched {
    /// `None` once nothing names it: its number may be used again.
    pub(crate) descriptor: Option<OwnedFd>,
    /// Somebody wants to know.
    pub(crate) wanted: bool,
    /// Polls with the kernel.
    pub(crate) polls: u32,
}
