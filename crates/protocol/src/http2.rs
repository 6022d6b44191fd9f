//! HTTP/2 (RFC 9113), from the server's side: frames, fields in few bytes (HPACK), streams, windows,
//! priorities (RFC 9218).
//!
//! One room, one way through it: `session` takes frames (`frame`), gives blocks to `hpack`, has the fields
//! judged (`field`) and a head made of them (`head`), which the reader of HTTP/1.1 reads: requests of both
//! versions pass the same rules and are the same type. Answers are written by the session and the caller in
//! turn. `ledger` prices what is odd.
//!
//! # What a caller does
//! There is one [`WorkerMemory`] and one [`Opening`] per worker. A connection has a [`Session`], made when
//! the TLS handshake chose `h2`, or when a connection without TLS begins with the [`PREFACE`] ([`is_preface`]
//! tells as soon as it can be told). One delivery of bytes is handled so, by engine and tests alike:
//! ```text
//! let joined = session.take_kept(bytes);
//! let mut input = &joined[..];
//! loop {
//!     match session.poll_event(&mut memory, &mut input, now_ms, &opening, out) {
//!         Event::Request { stream, request } => {       // as many at a time as wait; answer it
//!             // now: head, then as much of the body as is granted
//!             let rule = session.begin_response(stream, head, now_ms, &opening, out);
//!             if rule == BodyRule::Send {
//!                 let count = session.begin_data(stream, body.len(), true, now_ms, out);
//!                 // append `count` bytes of the body; keep what is left under the number of the stream
//!             }
//!             // or later: keep the request (KeptRequest) under the number of the stream; it may wait
//!             // before the end of the response: `read_body`, if the body is wanted; else `discard_body`
//!         }
//!         Event::Body { stream, piece } => {}           // use it, and say `taken` when it is used
//!         Event::BodyEnd { stream } => {}
//!         Event::Reset { stream, .. } => {}             // drop what is kept of the stream
//!         Event::Refused { .. } => {}                   // for those who keep account
//!         Event::NeedInput | Event::Close { .. } => break,
//!     }
//! }
//! session.keep(input, now_ms);
//! while out_is_short && let Some(stream) = session.next_to_send(out) {
//!     let count = session.begin_data(stream, left_of(stream), is_all, now_ms, out);
//!     // append `count` bytes of what is left
//! }
//! ```
//! A request that [asks for a WebSocket](crate::Request::asks_websocket) may be answered by `begin_tunnel` in
//! place of `begin_response` (RFC 8441): what follows comes and goes as bodies do.
//!
//! `next_to_send` is asked again when output was sent, and after each delivery, for windows may have opened.
//! A piece is appended right behind what `begin_data` wrote: own bytes, a shared slice or a part of a file,
//! of exactly the number granted. `poll_timeout` is asked after every round; `handle_timeout` is called when
//! it has passed, and `poll_event` after it. `release` is called once before a session is dropped.
//!
//! What a connection holds: a session of at most 72 bytes, four bytes for each field of its table, and while
//! something waits a box with a stream of at most 72 bytes for each request. The engine keeps what is left of
//! an answer (a slice or a part of a file) by the number of the stream.

mod blocks;
mod error;
mod field;
mod frame;
mod head;
mod hpack;
mod ledger;
mod memory;
mod opening;
mod priority;
mod session;
mod stream;

pub use error::{ConnectionFault, ErrorCode};
pub use hpack::PreparedFields;
pub use memory::WorkerMemory;
pub use opening::{HeadFields, Opening};
pub use session::{Event, ResponseHead, Session};

pub use crate::preface::{PREFACE, is_preface};

/// The readers alone, for those who look for their faults.
pub mod probe {
    use super::field::FieldLine;
    use super::hpack::{DynamicTable, FieldReader};

    /// A field, as it was read.
    pub type NameAndValue = (Vec<u8>, Vec<u8>);

    /// A table with its reader.
    #[derive(Debug)]
    pub struct Blocks {
        reader: FieldReader,
        table: DynamicTable,
    }

    impl Default for Blocks {
        fn default() -> Self {
            Self { reader: FieldReader::new([0, 0]), table: DynamicTable::new() }
        }
    }

    impl Blocks {
        /// Reads a block: its fields, or what is wrong with it.
        ///
        /// # Errors
        /// As the session tells its peer. What was read before is not given.
        pub fn read(&mut self, block: &[u8]) -> Result<Vec<NameAndValue>, &'static str> {
            let mut fields = Vec::new();
            let mut take = |field: FieldLine<'_>| fields.push((field.name().into(), field.value().into()));
            match self.reader.read(block, &mut self.table, &mut take) {
                Ok(()) => Ok(fields),
                Err(fault) => Err(fault.reason()),
            }
        }

        /// Bytes of the table as its peer counts them, and of all fields that are held.
        pub fn held_bytes(&self) -> (usize, usize) {
            (self.table.held_bytes(), self.reader.interned().held_bytes())
        }

        /// Gives back what the table holds.
        pub fn release(&mut self) {
            self.reader.release(&mut self.table);
        }
    }
}
