//! What is known of each descriptor that is watched beside connections.
//!
//! It owns a duplicate of each, until nothing that is with the kernel names it.

use std::os::fd::OwnedFd;

/// A descriptor that is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    /// `None` once nothing names it: its number may be used again.
    pub(crate) descriptor: Option<OwnedFd>,
    /// The worker wants to be told when the descriptor is ready.
    pub(crate) wanted: bool,
    /// Polls with the kernel.
    pub(crate) polls: u32,
}

/// All that is watched, by number.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    pub(super) all: Vec<Watched>,
}
