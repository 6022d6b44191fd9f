//! The laboratory of server models: what a server is made of, in its plainest form, one file a model.
//!
//! Every file in `models/` is a whole server that a reader new to the subject understands in five minutes:
//! raw system calls in plain sight, no macro, nothing hidden behind a function of another file. So they
//! repeat each other on purpose: put two side by side, and what differs is the model. What they share calls
//! nothing they are about: [`wire`] (what the bytes mean), [`work`], the listening socket, and how they are
//! told to end.
//!
//! It must never serve anything but the laboratory: no deadlines, no limits on clients, no care for the
//! hostile. That is what `staunch serve` is for.
//!
//! Unsafe code stands in `models/` and `syscall.rs` only: a wrapper around `accept`, `fork` or `epoll_wait`
//! would hide what the laboratory is there to show.
#![deny(unsafe_code)]

pub mod client;
pub mod evidence;
pub mod findings;
mod handler;
pub mod harness;
mod leaks;
mod limits;
mod listener;
#[cfg(test)]
mod made_up;
pub mod meter;
mod model;
mod models;
mod options;
pub mod paper;
pub mod plan;
pub mod ranking;
pub mod report;
pub mod results;
pub mod statistics;
mod subject;
mod syscall;
mod usage;
pub mod wire;
pub mod work;

pub use model::{Model, PoolUse};
pub use models::MODELS;
pub use options::{Options, pin};
