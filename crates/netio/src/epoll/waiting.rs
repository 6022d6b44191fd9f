//! Waiting for events, to the nanosecond where that is asked for.
//!
//! It owns nothing. It must never call what a seccomp filter of an ordinary server may not expect: the newer
//! system call is used only for times that the older one cannot tell (whole milliseconds).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};
use rustix::io::Errno;

use crate::shortage;

/// Takes the events there are, or waits for some until the timeout is over.
///
/// # Errors
/// Those of epoll_wait(2) but EINTR, and ENOMEM: that is waited for.
pub(super) fn wait(epoll: &OwnedFd, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
    events.clear();
    let outcome = match timeout {
        Some(timeout) if timeout.subsec_nanos() % 1_000_000 != 0 => wait_finely(epoll, events, timeout),
        _ => wait_milliseconds(epoll, events, timeout),
    };
    match outcome {
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(Errno::NOMEM) => {
            shortage::rest(timeout);
            Ok(())
        }
        Err(errno) => Err(errno.into()),
    }
}

fn wait_milliseconds(
    epoll: &OwnedFd,
    events: &mut Vec<Event>,
    timeout: Option<Duration>,
) -> Result<(), Errno> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()).map(drop)
}

/// Like `wait_milliseconds`, which rounds up, where the kernel or a filter does not know epoll_pwait2(2).
fn wait_finely(epoll: &OwnedFd, events: &mut Vec<Event>, timeout: Duration) -> Result<(), Errno> {
    let times = libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let room = events.spare_capacity_mut();
    // SAFETY: the kernel writes at most as many events as there is room for, in the layout `Event` has (that
    // of `struct epoll_event`); the time lives through the call and there is no signal mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            room.as_mut_ptr(),
            room.len() as libc::c_int,
            &raw const times,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    if let Ok(count) = usize::try_from(count) {
        // SAFETY: the kernel has written so many events at the start of the room.
        unsafe { events.set_len(count) };
        return Ok(());
    }
    match Errno::from_io_error(&io::Error::last_os_error()) {
        Some(Errno::NOSYS | Errno::PERM) => wait_milliseconds(epoll, events, Some(timeout)),
        errno => Err(errno.unwrap_or(Errno::IO)),
    }
}
