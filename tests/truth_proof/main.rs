//! The yardstick itself is measured: each behaviour of the truth server is what it says, seen by raw sockets.
//!
//! It must never ask our own client or server whether the truth is true.
#![forbid(unsafe_code)]

mod behaviours;
mod client;
mod program;
mod queues;
