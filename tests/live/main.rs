//! Live data as publishers and readers meet it, on both engines.
//!
//! It must never assert how long anything takes: what is awaited is waited for.
#![forbid(unsafe_code)]

mod browsers;
mod channels;
mod differences;
mod ends;
mod failing;
mod follow;
mod gone;
mod interface;
mod keys;
mod limits;
mod line;
mod mercure;
mod package;
mod patterns;
mod peers;
mod private;
mod reading;
mod restart;
mod secured;
mod sites;
mod socket;
mod sockets;
mod store;
mod tokens;
mod unheard;
mod upgrade;
mod wanted;
mod world;
