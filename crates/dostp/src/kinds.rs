//! Kinds of traffic above datagrams, each with its contract: what it promises, what it forgets, what it
//! counts.
//!
//! They own the first bytes of payloads ("Kinds of traffic" in `docs/dostp.md`). They must never read a clock
//! or send anything: time and bytes are arguments, and what is to be sent is handed back.

pub mod collect;
pub mod publish;
pub mod realtime;
pub mod transact;

/// A sender: its address and its port.
pub type Sender = (u16, u16);

/// The first byte of a payload of a kind.
const COLLECT: u8 = 1;
const PUBLISH: u8 = 2;
const REALTIME: u8 = 3;

/// The second byte: the version of these formats.
const VERSION: u8 = 1;

/// Whether a number that wraps around is newer than another.
fn is_newer(number: u32, than: u32) -> bool {
    number.wrapping_sub(than).cast_signed() > 0
}
