//! The bars of what asks: `staunch load` beside wrk and oha, and against the truth; the laboratory's client.
//!
//! It owns one scenario a file. It must never take the generator's word for a figure that can be read
//! elsewhere: processor time and memory come from /proc, floods are counted by the interface they arrive at,
//! answers by the server that gave them. Generators run on CPU 1, servers on CPU 0, unless a file says
//! otherwise.

mod beside;
mod closed;
mod count;
mod counted;
mod flood;
mod front;
mod hold;
mod hurst;
mod lab;
mod namespaces;
mod open;
mod overload;
pub(crate) mod proxied;
mod proxied_beside;
mod proxied_classes;
mod proxy_cost;
pub(crate) mod running;
mod strangers;
mod tool;
mod truth;

pub(super) use beside::{kept, once};
pub(super) use closed::run as closed;
pub(super) use count::run as count;
pub(super) use counted::run as lab_counted;
pub(super) use flood::run as flood;
pub(crate) use front::Proxy;
pub(super) use hold::{run as hold, run_million as hold_million, too_small};
pub(super) use hurst::run as hurst;
pub(super) use lab::run as lab_client;
pub(super) use open::run as open;
pub(super) use overload::run as overload;
pub(super) use proxied::run as proxied;
pub(super) use proxied_beside::run as proxied_beside;
pub(super) use proxied_classes::run as proxied_classes;
pub(super) use proxy_cost::{large, places, requests, slow, tunnels};
pub(super) use strangers::{Honest, Offered, honest, strangers, strangers_peak};
