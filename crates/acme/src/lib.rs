//! Certificates from an authority by ACME (RFC 8555): accounts, orders, challenges, renewal, and the folder
//! in which all of it is kept.
//!
//! It owns the conversation with the authority, the store, and the agent, the process beside a server that
//! uses both. It must never serve anything itself: the server answers challenges, which it is told over a
//! [`Line`].
//!
//! Order of calls: in the server's process [`Line::pair`], and a second process that gets one end and calls
//! [`run`] with it. The server tells [`ToAgent::Configure`]; the agent tells which challenges are to be
//! answered, what it has to say, and how each name stands. Renewed certificates are files of the [`Store`].
#![forbid(unsafe_code)]

mod account_key;
mod agent;
mod answers;
mod client;
mod fault;
pub mod limits;
mod line;
mod message;
mod order;
mod record;
mod schedule;
mod store;
mod web;

pub use agent::run;
pub use fault::AcmeFault;
pub use line::Line;
pub use message::{Challenge, ChallengeKind, NameState, ToAgent, ToServer, Wishes};
pub use record::{AttemptOutcome, NameRecord};
pub use store::{Store, StoreFault};
