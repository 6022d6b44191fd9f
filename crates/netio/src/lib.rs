//! The room of unsafe code and system calls: operations in, completions out.
//!
//! It owns descriptors, rings and receive buffers. It must never parse a byte, know a protocol, or
//! decide what a connection deserves: it reports, the engine decides.
//!
//! Three bodies stand behind one trait, [`Io`]: io_uring, epoll and a simulator driven by a seed.

mod capacity;
pub mod clock;
pub mod datagram;
pub mod descriptors;
mod epoll;
mod file_read;
mod file_send;
mod file_stamp;
pub mod handover;
pub mod host;
mod listen_place;
pub mod memory;
pub mod named_file;
mod operation;
mod outgoing;
mod shortage;
pub mod simulated;
pub mod socket;
mod taken;
mod target;
mod tuning;
pub mod unix_listener;
pub mod uring;
mod wake;
mod warming;

pub use capacity::{Capacity, Slot};
pub use epoll::Epoll;
pub use file_read::{Ahead, FileRead, FileReader, WarmedPart};
pub use file_stamp::stamp;
pub use listen_place::{ListenPlace, UNIX_PEER};
pub use operation::{Completion, Input, Io};
pub use outgoing::{FilePart, FileStamp, Outgoing, Part, Slice};
pub use socket::Queue;
pub use taken::Taken;
pub use target::{Address, Target};
pub use tuning::Tuning;
pub use wake::Waker;
