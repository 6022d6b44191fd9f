//! The access log and the error log: written by threads of their own, never waited for.
//!
//! A worker copies the pieces of a request that the log wants into a ring of its own (`account`); a thread
//! formats them and writes large chunks ([`AccessLog`]). What finds no room, or cannot be written, is counted
//! and gone: no request may ever wait for a disk. Nothing wakes up while nobody asks for anything.

mod access;
pub(crate) mod account;
mod counts;
mod error;
mod feeder;
mod fields;
mod lines;
mod output;
pub(crate) mod passed;
mod record;
mod settings;
mod signal;
mod sink;
mod syslog;
mod writer;

pub use access::{AccessLog, LogCounts, Prepared as PreparedAccessLog};
pub use error::{ErrorLog, Prepared as PreparedErrorLog};
pub use settings::{
    Field, Format, LogCondition, LogError, LogPlan, LogSettings, Piece, SiteLog, StatusTest as LogStatusTest,
    Target,
};
pub use staunch_engine::{LineCounts, LineQueue, Notice};

#[cfg(test)]
mod tests;
