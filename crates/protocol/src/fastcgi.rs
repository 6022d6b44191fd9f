//! FastCGI (version 1), as the server speaks it to an application: records in, records out.
//!
//! It owns what a request is in records and variables (RFC 3875), and where an answer ends. One request a
//! connection at a time, each by a number of its own (`renumber`). It must never know which application is
//! asked, nor hold a byte of a body. Order: `write_request`, then `write_piece` for each piece of the body
//! and `write_end`; meanwhile `FastCgiReader::begin`, then `next` until the answer has ended.

mod reader;
mod record;
mod request;
mod script;
mod variables;

pub use reader::FastCgiReader;
pub use record::renumber;
pub use request::{write_end, write_piece, write_request};
pub use script::Script;
