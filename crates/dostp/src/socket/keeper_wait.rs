//! The wait of the thread beside a socket, as the socket's other threads see it.
//!
//! The wait stands behind the endpoint's lock. It must never cost a message anything while nothing is due
//! earlier.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// How long that thread waits, and what ends the wait.
#[derive(Debug)]
pub(super) struct KeeperWait {
    bell: Arc<OwnedFd>,
    /// Nothing while the thread is awake, or was rung for.
    until_ms: Option<u64>,
}

impl KeeperWait {
    /// Of a thread that is awake, with what it has to wait on.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM.
    pub(super) fn new() -> io::Result<(Self, Arc<OwnedFd>)> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        Ok((Self { bell: Arc::clone(&bell), until_ms: None }, bell))
    }

    /// The thread begins to wait; without a time, for ever.
    pub(super) fn begin(&mut self, due_ms: Option<u64>) {
        self.until_ms = Some(due_ms.unwrap_or(u64::MAX));
    }

    /// The thread is awake.
    pub(super) fn end(&mut self) {
        self.until_ms = None;
    }

    /// Something is due at that time: if the thread would wait beyond it, it is woken.
    pub(super) fn shorten(&mut self, due_ms: Option<u64>) {
        let due_ms = due_ms.unwrap_or(u64::MAX);
        if self.until_ms.is_some_and(|until_ms| due_ms < until_ms) {
            self.until_ms = None;
            // The only failure is a counter at its maximum, and then the thread is woken anyway.
            let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        }
    }
}

/// Makes the bell quiet again.
pub(super) fn silence(bell: &OwnedFd) {
    let mut count = [0; 8];
    // EAGAIN means that it is quiet already.
    let _ = rustix::io::read(bell, &mut count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_rings_once_and_only_for_what_is_due_earlier() {
        let (mut wait, bell) = KeeperWait::new().unwrap();
        let rings = |wait: &mut KeeperWait, due_ms| {
            wait.shorten(due_ms);
            let mut count = [0; 8];
            rustix::io::read(&*bell, &mut count).is_ok()
        };
        assert!(!rings(&mut wait, Some(0)), "the thread is awake");
        wait.begin(Some(100));
        assert!(!rings(&mut wait, None) && !rings(&mut wait, Some(100)));
        assert!(rings(&mut wait, Some(99)) && !rings(&mut wait, Some(1)));
        wait.begin(None);
        wait.end();
        assert!(!rings(&mut wait, Some(1)));
        wait.begin(None);
        assert!(!rings(&mut wait, None) && rings(&mut wait, Some(u64::MAX - 1)));
    }
}
