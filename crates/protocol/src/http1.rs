//! HTTP/1.1 (RFC 9112 and RFC 9110): all that an origin server needs, of a client the
//! reading of answers, and of a proxy both.
//!
//! One room, one way through it: `session` asks `head` for a request, which asks `field`, `framing` and
//! `target`; `reading` gives the body to whoever wants it, `body` throws it away; `response` writes how an
//! answer begins, `writer` the body of one that goes on. A client's way is apart: `answer` reads what a
//! server sent. Chunks and Content-Length are read by the same code for both. A proxy's way is `relay`.

pub mod answer;
mod body;
mod chunked;
mod field;
mod framing;
mod head;
mod host;
mod line;
mod reading;
pub mod relay;
mod response;
mod session;
mod target;
mod writer;

pub use head::RequestMemory;
pub use host::authority_in;
pub use session::{Event, Session};
pub use target::{TargetError, decode_path, is_plain_path};
pub use writer::BodyOut;
