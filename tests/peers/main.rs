//! Clients and what each of them may take: simulated, over real sockets, behind a real proxy.
//!
//! It must never assert a time measured by the clock: what is asserted are answers and the server's counters.
#![forbid(unsafe_code)]

mod caller;
mod haproxy;
mod limits;
mod living;
mod namespace;
mod networks;
mod proxied;
mod scratch;
mod simulated;
mod world;
