//! Word that the interface went down, from the thread that answers to whoever waits for messages.
//!
//! AF_XDP does not tell it by its own descriptor; the packet socket of control frames does. It must never be
//! raised for anything else.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

/// The word, told once for each time it is raised.
#[derive(Debug)]
pub(super) struct Alarm {
    event: OwnedFd,
    raised: AtomicBool,
}

impl Alarm {
    /// Not raised.
    pub(super) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, raised: AtomicBool::new(false) })
    }

    /// A descriptor that can be read when the other one can, or when this alarm is raised.
    pub(super) fn beside(&self, other: &OwnedFd) -> io::Result<OwnedFd> {
        let both = epoll::create(CreateFlags::CLOEXEC)?;
        for one in [self.event.as_fd(), other.as_fd()] {
            epoll::add(&both, one, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(both)
    }

    /// The interface went down.
    pub(super) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        // Where the counter is full the descriptor can be read already.
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).ok();
    }

    /// Whether it was raised, once.
    #[inline]
    pub(super) fn take(&self) -> bool {
        if !self.raised.load(Ordering::Relaxed) || !self.raised.swap(false, Ordering::Acquire) {
            return false;
        }
        // Nothing to read: another call has read it, and this one has the word nevertheless.
        rustix::io::read(&self.event, &mut [0; 8]).ok();
        true
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn it_is_told_once_and_wakes_who_waits_for_something_else() {
        let (alarm, other) = (Alarm::new().unwrap(), Alarm::new().unwrap());
        let both = alarm.beside(&other.event).unwrap();
        let is_ready = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&both, PollFlags::IN)], Some(&now)).unwrap() == 1
        };
        assert!(!is_ready() && !alarm.take());
        alarm.raise();
        alarm.raise();
        assert!(is_ready() && alarm.take());
        assert!(!is_ready() && !alarm.take());
        other.raise();
        assert!(is_ready() && !alarm.take());
    }
}
