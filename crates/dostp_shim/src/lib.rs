//! Functions of the C library's sockets, to be loaded before a program of UDP (`LD_PRELOAD`): its datagrams
//! to one network go by DOSTP, all others by UDP, on one descriptor.
//!
//! It owns the functions of these names and a table of the program's UDP sockets. Every other descriptor goes
//! to the C library untouched. It must never make a call fail that UDP would not: where DOSTP cannot be used,
//! it says why, once, and the socket stays one of UDP. Its words are C's, so it is unsafe by nature, and no
//! other crate of ours may use it.

mod attached;
mod memory;
pub mod naming;
mod real;
pub mod receiving;
pub mod sending;
mod settings;
pub mod waiting;
