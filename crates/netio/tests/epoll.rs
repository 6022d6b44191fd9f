//! The epoll backend does what every backend has to do.

mod conformance;

use std::os::fd::OwnedFd;

use staunch_netio::{Capacity, Epoll, Waker};

fn make(listeners: Vec<OwnedFd>, waker: Waker, capacity: Capacity) -> Epoll {
    Epoll::new(listeners, waker, capacity).unwrap()
}

fn is_available() -> bool {
    true
}

conformance_tests!(crate::make, crate::is_available);
