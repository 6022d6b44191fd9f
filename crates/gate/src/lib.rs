//! A gate before the host's network stack: connections that cannot be served are shed by an XDP program
//! before they cost anything.
//!
//! It owns the program and its maps, what is seen of the host, the law that decides how many are let in, and
//! the daemon that does so many times a second. It must never touch a frame other than a SYN without ACK to a
//! protected port, and when it is in doubt it must let in. Policy never stands in the program.
#![forbid(unsafe_code)]

pub mod controller;
pub mod daemon;
pub mod fault;
pub mod interface;
pub mod layout;
pub mod metrics;
mod moderation;
pub mod observation;
pub mod program;
pub mod sensors;
pub mod snapshot;
