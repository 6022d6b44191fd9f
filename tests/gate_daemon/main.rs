//! `staunch gate` as people run it: between two network namespaces joined by a veth, servers behind it
//! unchanged.
//!
//! It must never touch an interface of the host: both ends stand in namespaces of the test, and are gone with
//! them. It needs root; without, every test says so and is over.
#![forbid(unsafe_code)]

mod crowd;
mod elsewhere;
mod interfaces;
mod life;
mod looks;
mod moderation;
mod overload;
mod ports;
mod served;
mod strangers;
mod world;
