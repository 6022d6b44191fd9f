//! What the client is told.
//!
//! It must never hold anything that only one kind of child knows.

use std::net::SocketAddr;
use std::time::Duration;

use crate::results::{AskedBy, Protocol};

/// Most children: half of the process numbers a small machine has.
pub const CHILDREN_MAX: usize = 16_384;

/// Most loops of each child: years of them, and all loops of all children can still be counted.
pub const LOOPS_MAX: u64 = 1_000_000_000_000;
const _: () = assert!(LOOPS_MAX.checked_mul(CHILDREN_MAX as u64).is_some());

/// What is asked, and by whom.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How many ask at a time, each over one connection.
    pub children: usize,
    /// How many connections (with keep-alive: requests) each of them makes.
    pub loops: u64,
    /// How many bytes each answer is to have.
    pub bytes: usize,
    /// How it is asked.
    pub protocol: Protocol,
    /// What the children are.
    pub client: AskedBy,
    /// How long a child waits for its peer in one step: to be connected, to be answered.
    pub patience: Duration,
}
