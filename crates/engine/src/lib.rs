//! One worker a processor: the loop between network operations and protocol sessions.
//!
//! It owns connections, deadlines and mailboxes. It must never know a URL, parse a byte, ask for a lock on a
//! request's path, or share anything mutable between workers but mailboxes and counters.
#![forbid(unsafe_code)]

mod connection;
mod engine;
mod handler;
mod limits;
mod listener;
mod mailbox;
mod rendered;
mod spare;
mod stats;
mod timer_wheel;
mod worker;

pub use engine::{Engine, IoChoice, Settings, StartError};
pub use handler::{Address, Answer, Answered, Handler, Piece};
pub use mailbox::{Mailbox, Post};
pub use stats::{Counter, Stats};
pub use staunch_netio::{FilePart, FileStamp, Outgoing, Part, Slice};
pub use worker::Worker;
