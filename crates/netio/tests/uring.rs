//! The io_uring backend against real sockets of the loopback interface.
//!
//! Owns one module a concern, and what every backend has to do. Where the kernel or a filter refuses
//! io_uring, the tests say so and pass.

mod conformance;

#[path = "uring/accepting.rs"]
mod accepting;
#[path = "uring/closing.rs"]
mod closing;
#[path = "uring/connecting.rs"]
mod connecting;
#[path = "uring/echo.rs"]
mod echo;
#[path = "uring/files.rs"]
mod files;
#[path = "uring/fixture.rs"]
mod fixture;
#[path = "uring/receiving.rs"]
mod receiving;
#[path = "uring/sending.rs"]
mod sending;

/// What every backend has to do.
mod alike {
    use std::os::fd::OwnedFd;

    use staunch_netio::uring::{Uring, probe};
    use staunch_netio::{Capacity, Waker};

    fn make(listeners: Vec<OwnedFd>, waker: Waker, capacity: Capacity) -> Uring {
        Uring::new(listeners, waker, capacity, &probe().unwrap()).unwrap()
    }

    fn is_available() -> bool {
        probe().inspect_err(|refusal| eprintln!("not tested: {refusal}")).is_ok()
    }

    crate::conformance_tests!(crate::alike::make, crate::alike::is_available);
}
