//! How another thread interrupts the wait of a backend: an eventfd, nothing more.
//!
//! It owns one descriptor, shared by all clones. It must never carry a message: what happened stands in a
//! mailbox of its own, filled before `wake`. Order of calls: `new`, then `wake` from anywhere, any number of
//! times; the backend `drain`s once a wake-up and reports `Woken`.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes the worker whose backend was given a clone of it. Cheap to clone.
#[derive(Clone)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// A new waker.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Ends the present or the next wait of the backend. Several calls before that are one.
    pub fn wake(&self) {
        // The only failure is a counter at its maximum (EAGAIN), and then a wake-up is under way already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    /// The descriptor to wait on: readable after `wake`.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Makes it quiet again.
    pub(crate) fn drain(&self) {
        let mut count = [0; 8];
        // EAGAIN means that it is quiet already.
        let _ = rustix::io::read(&*self.event, &mut count);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Waker").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_wakes_are_one_and_drain_is_harmless_when_quiet() {
        let waker = Waker::new().unwrap();
        waker.drain();
        waker.clone().wake();
        waker.wake();
        let mut count = [0; 8];
        assert_eq!(rustix::io::read(waker.as_fd(), &mut count), Ok(8));
        assert_eq!(u64::from_ne_bytes(count), 2);
        waker.wake();
        waker.drain();
        assert_eq!(rustix::io::read(waker.as_fd(), &mut count), Err(rustix::io::Errno::AGAIN));
    }
}
