//! Connections that khttpd, the server in the kernel, hands over: the device at which a process takes them.
//!
//! Its contract stands in docs/khttpd.md, section "Connections handed over". The device is given to a backend
//! as a listener would be; a connection must never be taken from it before there is a descriptor for it.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::getpeername;

use crate::{Queue, socket};

/// Path of the device.
pub const DEVICE: &str = "/dev/khttpd";
/// The ioctl that takes the next connection: `KHTTPD_TAKE` of `kernel/khttpd/handover.h`.
const TAKE: libc::Ioctl = 0xe800;
/// How many connections the device keeps for processes at most (`KHTTPD_OFFERED_MAX`).
const WAITING_MAX: u32 = 1024;
/// The file that names the folder that khttpd serves.
pub const ROOT: &str = "/sys/module/khttpd/parameters/root";

/// Opens the device.
///
/// # Errors
/// ENOENT: khttpd is not loaded, or not with `hand_over`. EACCES: it is another user's.
pub fn open() -> io::Result<OwnedFd> {
    Ok(File::open(DEVICE)?.into())
}

/// The folder that khttpd serves; `None` while it is not loaded.
pub fn root() -> Option<PathBuf> {
    let text = fs::read_to_string(ROOT).ok()?;
    Some(Path::new(text.trim_end_matches('\n')).to_owned())
}

/// Whether a descriptor is a device's, and no socket's.
pub(crate) fn is_device(descriptor: impl AsFd) -> io::Result<bool> {
    let status = rustix::fs::fstat(descriptor)?;
    Ok(FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice)
}

/// The next connection, which does not block and is closed on exec, with what accepted ones inherit from
/// their listener; and where it comes from, if that is to be learnt.
///
/// # Errors
/// EAGAIN: none waits. EMFILE, ENFILE: there is no descriptor for it, and it goes on waiting.
pub(crate) fn accept(
    device: BorrowedFd<'_>,
    learns_peers: bool,
) -> Result<(OwnedFd, Option<SocketAddr>), Errno> {
    let connection = take(device)?;
    socket::bound_unsent(&connection).map_err(|error| errno(&error))?;
    let peer = if learns_peers { getpeername(&connection).ok().flatten() } else { None };
    Ok((connection, peer.and_then(|peer| peer.try_into().ok())))
}

/// What waits at the device, and how much may. It tells whether a connection waits, not how many do.
pub(crate) fn queue(device: BorrowedFd<'_>) -> Queue {
    let mut wait = [PollFd::from_borrowed_fd(device, PollFlags::IN)];
    let is_ready = poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0);
    Queue { waiting: u32::from(is_ready), limit: WAITING_MAX }
}

fn take(device: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: the device is open for the length of the call, which takes no argument.
    let descriptor = unsafe { libc::ioctl(device.as_raw_fd(), TAKE) };
    if descriptor < 0 {
        return Err(errno(&io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just made this descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
