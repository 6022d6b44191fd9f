//! The scenarios of live data: what a delivery, a reader, a quote, an update and a pattern cost.
//!
//! Each file beneath owns one scenario, or what several of them share. Servers run on CPU 0, readers on the
//! others; readers and their delays are the generator's, `staunch load live`. On a machine of two processors
//! all readers share one, so delays are of both sides together.

mod beside;
mod crowd;
mod delivering;
mod differences;
mod fan_out;
mod fan_server;
mod feed;
mod memory;
mod pattern_readers;
mod patterns;
mod publishing;
mod quote_changes;
mod quotes;
mod readers;
mod rounds;
mod sockets;
mod stalled;
mod stalling;

pub(super) use beside::run as beside;
pub(super) use crowd::run as crowd;
pub(super) use differences::run as differences;
pub(super) use fan_out::run as fan_out;
pub(super) use feed::run as feed;
pub(super) use memory::{run as memory, run_million as memory_million};
pub(super) use patterns::run as patterns;
pub(super) use quotes::run as quotes;
pub(super) use sockets::BufferedSockets;
pub(super) use stalled::run as stalled;
