//! The io_uring backend against real sockets of the loopback interface.
//!
//! Owns one module a concern. Where the kernel or a filter refuses io_uring, the tests say so and pass.

#[path = "uring/accepting.rs"]
mod accepting;
#[path = "uring/closing.rs"]
mod closing;
#[path = "uring/desk.rs"]
mod desk;
#[path = "uring/echo.rs"]
mod echo;
#[path = "uring/files.rs"]
mod files;
#[path = "uring/receiving.rs"]
mod receiving;
#[path = "uring/sending.rs"]
mod sending;
