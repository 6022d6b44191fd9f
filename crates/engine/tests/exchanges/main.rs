//! Exchanges that stay open, held by a table of conversations and by random peers: on the simulated network,
//! on epoll and on io_uring.
//!
//! The handler is that of the example `echo`. Whatever happens, bytes come in order, bodies are right to the
//! byte, and every exchange is finished exactly once (the handler itself panics at a second time).

#[path = "../../examples/echo/handler.rs"]
mod handler;

#[path = "../../../../tests/http2/client.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod client;
mod conversations;
mod http2;
mod neighbours;
mod random;
mod random_http2;
mod read_first;
mod reading;
mod real;
mod upstreams;
mod world;
