//! Descriptors that pass from one program to the next through exec: given away, and claimed.
//!
//! It must never let a descriptor pass by accident: what is claimed is closed on the next exec again, and
//! what is given away is a copy that its owner drops once the other program runs.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::fd::AsFd;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::sockopt;

/// The lowest number that is not a standard stream.
const FIRST: RawFd = 3;

/// A copy that a program started by this one inherits, as long as the copy is not dropped.
///
/// # Errors
/// EMFILE.
pub fn inheritable(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::dup(descriptor)?)
}

/// Takes a descriptor that the program before this one has left open under an agreed number. Only at start,
/// before anything is opened here, and once a number.
///
/// # Errors
/// EBADF: nothing was left under this number, or it is a standard stream.
pub fn claim(number: RawFd) -> io::Result<OwnedFd> {
    if number < FIRST {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: the number is only asked for its flags, which says whether it is open. At start nobody here
    // knows or owns it: by the agreement of both programs it was left for this one.
    let borrowed = unsafe { rustix::fd::BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(borrowed)?;
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC)?;
    // SAFETY: as above, and it is open.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether a socket for datagrams stands under an agreed number. Only at start, as [`claim`].
pub fn is_datagram(number: RawFd) -> bool {
    if number < FIRST {
        return false;
    }
    // SAFETY: the number is only asked for what it is; nothing here owns it at start, and no copy is kept.
    let borrowed = unsafe { rustix::fd::BorrowedFd::borrow_raw(number) };
    sockopt::socket_type(borrowed) == Ok(rustix::net::SocketType::DGRAM)
}

/// As [`claim`], for a listening socket.
///
/// # Errors
/// Those of [`claim`]; ENOTSOCK; EINVAL for a socket that does not listen.
pub fn claim_listener(number: RawFd) -> io::Result<OwnedFd> {
    let socket = claim(number)?;
    if sockopt::socket_acceptconn(&socket)? { Ok(socket) } else { Err(rustix::io::Errno::INVAL.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn what_was_left_is_claimed() {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let given = inheritable(&listener).unwrap();
        assert_eq!(fcntl_getfd(&given).unwrap(), FdFlags::empty());
        let number = given.into_raw_fd();
        let claimed = claim_listener(number).unwrap();
        assert_eq!(claimed.as_raw_fd(), number);
        assert_eq!(fcntl_getfd(&claimed).unwrap(), FdFlags::CLOEXEC);
        assert_eq!(crate::socket::local_address(&claimed).unwrap(), listener.local_addr().unwrap());
    }

    #[test]
    fn what_was_not_left_or_is_something_else_is_refused() {
        assert_eq!(claim(1).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(claim(999_999).unwrap_err().raw_os_error(), Some(libc::EBADF));
        let file = std::fs::File::open("/dev/null").unwrap();
        let number = inheritable(&file).unwrap().into_raw_fd();
        assert!(!is_datagram(number) && !is_datagram(1) && !is_datagram(999_999));
        assert_eq!(claim_listener(number).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_datagram(socket.as_raw_fd()));
    }
}
