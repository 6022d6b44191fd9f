//! HTTP/2 as a peer sees it: examples of the RFCs, bad input, and what must hold whatever comes.

#[path = "../http2_driver/mod.rs"]
mod driver;

mod bad_input;
mod conversations;
mod early;
mod examples;
mod honest;
mod properties;
mod tunnels;
