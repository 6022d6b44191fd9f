//! HTTP/2 from outside: what is asked by it is answered as by HTTP/1.1, to clients of other hands too; who
//! does what is odd, or takes nothing, costs little.
//!
//! It must never assert a time measured by the clock.
#![forbid(unsafe_code)]

mod bad_input;
mod browsers;
mod client;
mod going_on;
mod hints;
mod life;
mod peers;
mod proxied_sockets;
mod serving;
mod socket;
mod sockets;
mod world;
