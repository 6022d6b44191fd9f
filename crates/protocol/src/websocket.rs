//! WebSockets (RFC 6455) with compression of messages (RFC 7692).
//!
//! It owns frames, messages and the handshake. It must never read a clock, draw a random number, or hold
//! memory for a connection of which nothing is half received. Order: `accept` the request, then
//! [`Session::step`] for what arrives, [`append_frame`] for what is sent.

mod close;
mod deflate;
mod frame;
mod handshake;
mod session;

pub use close::CloseCode;
pub use deflate::{Deflater, Inflater, deflate_message};
pub use frame::{FrameHead, Opcode, append_frame, append_frame_head, apply_mask};
pub use handshake::{Accepted, Refusal, UpgradeRequest, accept, accept_key, accept_stream, client_key};
pub use session::{Fault, Happening, Role, Session};
