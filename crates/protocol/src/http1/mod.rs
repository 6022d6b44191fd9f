//! HTTP/1.1 for an origin server (RFC 9112 and RFC 9110).
//!
//! One room, one way through it: `session` asks `head` for a request, which asks `field`, `framing` and
//! `target`; `body` throws away what follows a head; `response` writes how an answer begins.

mod body;
mod field;
mod framing;
mod head;
mod host;
mod request;
mod response;
mod session;
mod target;

pub use framing::Framing;
pub use request::{Method, Request};
pub use session::{BodyRule, Event, Session};
pub use target::{TargetError, decode_path};
