//! What the server gives up: seen in what the kernel says of it, and by a program confined in the same way
//! that tries what is forbidden.
//!
//! It must never weaken the machine it runs on: whatever is tried would be harmless if it were allowed.
#![forbid(unsafe_code)]

mod probe;
mod server;
mod user;
mod world;
