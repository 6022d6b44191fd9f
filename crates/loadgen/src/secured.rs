//! TLS towards a server: whom it believes, one connection's part, and why a handshake failed.
//!
//! It must never call the network: sealed bytes go in and out. What it costs is worked on the threads that
//! offer the load, so it shows in how busy they were. Order of calls: `TlsBase::open` once a run,
//! `TlsBase::client` once a thread, `ClientWall::new` once a connection.

mod base;
mod reason;
#[cfg(test)]
mod tests;
mod wall;

pub(crate) use base::{TlsBase, TlsClient};
pub(crate) use reason::{CUT_HANDSHAKE, SLOW_HANDSHAKE};
pub(crate) use wall::ClientWall;
