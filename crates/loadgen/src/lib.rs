//! A load generator: offers a server what was asked for, whether it keeps up or not, and counts what became
//! of each request.
//!
//! It must never use the engine or the server: a meter must not share what it measures. Order of calls: make
//! a [`Plan`], give it to [`run`](fn@run), write the [`RunOutcome`] with [`report`].
#![forbid(unsafe_code)]

mod backend;
pub mod check;
mod client;
pub mod compare;
mod connection;
mod crew;
pub mod describe;
mod dialer;
mod drift;
mod end;
mod fault;
mod fitting;
pub mod flood;
pub mod histogram;
pub mod hold;
mod lane;
mod links;
pub mod live;
pub mod mix;
mod network_side;
mod order;
pub mod outcome;
pub mod plan;
pub mod probe;
pub mod report;
pub mod request;
mod run;
pub mod schedule;
mod secured;
#[cfg(test)]
mod simulation;
pub mod sources;
pub mod sweep;
pub mod sweep_outcome;
mod tally;
pub mod template;
pub mod threshold;
pub mod url;
pub mod view;
mod warnings;
mod worker;

pub use fault::Fault;
pub use outcome::{Counts, Moment, RunOutcome};
pub use plan::Plan;
pub use run::run;
pub use worker::RunControl;
