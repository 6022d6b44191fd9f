//! Requests written anew for an application, and its answers read strictly.
//!
//! It owns what of a message is passed on by a proxy, and what is not (RFC 9110, section 7.6). Nothing is
//! copied that was not understood: framing, Host and the fields of one connection are written from what the
//! reader made of them, so two readers of the same bytes cannot differ. It must never know which application
//! is asked, nor hold a byte of a body. Order: `write_request`, the body by [`super::BodyOut`]; meanwhile
//! `RelayReader::begin`, then `next` until the answer has ended.

mod answer;
mod cookies;
mod forwarding;
mod lines;
mod names;
mod origin;
mod refusal;
mod request;
mod uri;
mod via;

pub(crate) use answer::{Body, Draft, HeadSays, LineReader};
pub use answer::{RelayFault, RelayHead, RelayReader, RelayStep};
pub use cookies::cookies_in;
pub use forwarding::{Forwarding, HostRule};
pub use refusal::RelayRefusal;
pub use request::{check_method, is_idempotent, write_request};
