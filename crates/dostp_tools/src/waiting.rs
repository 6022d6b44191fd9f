//! Waiting for descriptors and for the signals that end a command.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Waits for these descriptors; says what became of each.
///
/// # Errors
/// The errors are those of poll(2).
pub(super) fn ready(descriptors: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Vec<PollFlags>> {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut awaited: Vec<PollFd<'_>> =
        descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    match poll(&mut awaited, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(awaited.iter().map(PollFd::revents).collect()),
        Err(errno) => Err(errno.into()),
    }
}

/// A stream that can be read as soon as the process is to end.
///
/// # Errors
/// The errors are those of socketpair(2) and sigaction(2).
pub(super) fn ended() -> io::Result<UnixStream> {
    let (ended, end) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, end.try_clone()?)?;
    }
    Ok(ended)
}
