//! The edges of a program, the same for the server's command and for the instruments: how it prints, how it
//! ends at a panic, and the outline of its words, for manual pages and completions.
//!
//! The crate must never know a command, read a clock or start a process.
#![forbid(unsafe_code)]

mod ending;
mod failure;
pub mod outline;
pub mod output;

pub use ending::end_at_a_panic;
pub use failure::{CODE_CONFIGURATION, CODE_NO_RIGHT, Failure};
