//! The scenarios over TLS: what a server spends on handshakes, records and connections at rest.
//!
//! It owns one scenario a file. All servers get one certificate, and all clients offer TLS 1.3 with one
//! cipher and one group, so that ratios compare servers and not choices. Servers run on CPU 0, clients on
//! others; what is measured is the server's processor time and memory, so a client may be slower.

mod bigfile;
mod handshake;
mod judging;
mod kept;
mod memory;
mod running;
mod streams;

pub(super) use bigfile::run as bigfile;
pub(super) use handshake::run as handshake;
pub(super) use kept::run as kept;
pub(super) use memory::run as memory;
