//! Sessions without input or output: bytes and time in, events and bytes out.
//!
//! It owns what HTTP means on the wire, a proxy's introduction before it, and what may follow it: streams of
//! events, WebSockets; and what FastCGI says instead of it. It must never ask the time, open a file, start a
//! thread, or know what is served: time is an argument in milliseconds, bytes are slices, output is appended
//! to a vector.
#![forbid(unsafe_code)]

pub mod event_stream;
pub mod fastcgi;
pub mod http1;
pub mod http2;
pub mod limits;
mod message;
mod preface;
pub mod proxy;
mod status;
mod timer;
pub mod websocket;

pub use http1::answer;
pub use message::{BodyIn, BodyRule, Fields, KeptRequest, Method, Request, SelfAnswered, Version};
pub use status::Status;
pub use timer::{Deadline, RATE_GRACE_MS, Timeouts};
