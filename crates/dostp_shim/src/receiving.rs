//! Receiving: messages of DOSTP first, then what UDP has; a call that waits, waits for both. And how many
//! bytes there are to be received.
//!
//! It must never take a message that its caller does not get.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::{mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_dostp::{Received, Socket};
use staunch_netio::clock;

use crate::attached::{self, Attached, Peer};
use crate::memory::{self, SenderName};
use crate::real;

/// How long a call that waits looks again after traffic: longer than an answer takes, shorter than a sleep
/// and a wake-up together.
const SPIN_NS: u64 = 20_000;

/// recv(2).
///
/// # Safety
/// That of recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, bytes: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    // SAFETY: as for this function; null pointers ask for no address.
    unsafe { recvfrom(fd, bytes, length, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// recv(3) as programs call it that were built with checks of lengths.
///
/// # Safety
/// That of recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    bytes: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as for this function.
    unsafe { recv(fd, bytes, length.min(room), flags) }
}

/// read(2), which is recv(2) on a socket.
///
/// # Safety
/// That of read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, bytes: *mut c_void, length: size_t) -> ssize_t {
    if attached::find(fd).is_some() {
        // SAFETY: as for this function.
        return unsafe { recv(fd, bytes, length, 0) };
    }
    // SAFETY: as for this function.
    unsafe { real::read(fd, bytes, length) }
}

/// recvfrom(2).
///
/// # Safety
/// That of recvfrom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    bytes: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    let Some(attached) = speaking(fd, flags) else {
        // SAFETY: as for this function.
        return unsafe { real::recvfrom(fd, bytes, length, flags, from, from_length) };
    };
    let by_udp = |flags| {
        let mut name = SenderName::none();
        // SAFETY: as for this function; the name has room for an address, and is written where it is wanted.
        unsafe {
            let received = real::recvfrom(fd, bytes, length, flags, name.as_mut_ptr(), name.length());
            let sender = name.address();
            if let Some(sender) = sender.filter(|_| received >= 0) {
                memory::put_address(sender, from, from_length);
            }
            (received, sender)
        }
    };
    receive(fd, &attached, flags, by_udp, |received| {
        // SAFETY: the caller's buffers can be written.
        let copied = unsafe {
            memory::put_address(received.from, from, from_length);
            memory::put(&received.payload, bytes, length)
        };
        counted(received, copied, flags)
    })
}

/// recvfrom(3) as programs call it that were built with checks of lengths.
///
/// # Safety
/// That of recvfrom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    bytes: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as for this function.
    unsafe { recvfrom(fd, bytes, length.min(room), flags, from, from_length) }
}

/// recvmsg(2). Nothing stands beside a message of DOSTP.
///
/// # Safety
/// That of recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let Some(attached) = speaking(fd, flags).filter(|_| !message.is_null()) else {
        // SAFETY: as for this function.
        return unsafe { real::recvmsg(fd, message, flags) };
    };
    let by_udp = |flags| {
        let mut name = SenderName::none();
        // SAFETY: as for this function. A program that asks for no name gets none.
        unsafe {
            let is_asked = !(*message).msg_name.is_null();
            if !is_asked {
                (*message).msg_name = name.as_mut_ptr().cast();
                (*message).msg_namelen = *name.length();
            }
            let received = real::recvmsg(fd, message, flags);
            let sender = memory::address((*message).msg_name.cast(), (*message).msg_namelen);
            if !is_asked {
                ((*message).msg_name, (*message).msg_namelen) = (std::ptr::null_mut(), 0);
            }
            (received, sender)
        }
    };
    receive(fd, &attached, flags, by_udp, |received| {
        // SAFETY: the caller's message and its buffers can be written.
        let copied = unsafe {
            let message = &mut *message;
            memory::put_address(received.from, message.msg_name.cast(), &raw mut message.msg_namelen);
            message.msg_controllen = 0;
            let copied = memory::scatter(&received.payload, message);
            message.msg_flags = if copied < received.payload.len() { libc::MSG_TRUNC } else { 0 };
            copied
        };
        counted(received, copied, flags)
    })
}

/// recvmmsg(2). The limit is looked at after each message, as by the kernel.
///
/// # Safety
/// That of recvmmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: u32,
    flags: c_int,
    limit: *mut timespec,
) -> c_int {
    if attached::find(fd).is_none() || messages.is_null() {
        // SAFETY: as for this function.
        return unsafe { real::recvmmsg(fd, messages, count, flags, limit) };
    }
    // SAFETY: the caller's limit is null or can be read.
    let limit = unsafe { limit.as_ref() };
    let limit_ns = limit.map(|limit| (limit.tv_sec as u64) * 1_000_000_000 + limit.tv_nsec as u64);
    let (begun_ns, mut flags) = (clock::now_ns(), flags);
    for place in 0..count as usize {
        // SAFETY: the caller's messages can be written.
        let received = unsafe {
            let message = messages.add(place);
            let received = recvmsg(fd, &raw mut (*message).msg_hdr, flags & !libc::MSG_WAITFORONE);
            (*message).msg_len = received.max(0) as u32;
            received
        };
        if received < 0 {
            return if place == 0 { -1 } else { place as c_int };
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if limit_ns.is_some_and(|limit_ns| clock::now_ns() - begun_ns >= limit_ns) {
            return place as c_int + 1;
        }
    }
    count as c_int
}

/// ioctl(2). FIONREAD tells the bytes of the next message.
///
/// # Safety
/// That of ioctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: libc::Ioctl, argument: *mut c_void) -> c_int {
    if request == libc::FIONREAD
        && !argument.is_null()
        && let Some(attached) = speaking(fd, 0)
        && let Some(Ok(Some(next))) = attached.opened().map(|socket| take(socket, &attached, libc::MSG_PEEK))
    {
        // SAFETY: the caller's number can be written.
        unsafe { argument.cast::<c_int>().write_unaligned(next.payload.len() as c_int) };
        return 0;
    }
    // SAFETY: as for this function.
    unsafe { real::ioctl(fd, request, argument) }
}

/// What a call returns that has copied so much.
fn counted(received: &Received, copied: usize, flags: c_int) -> ssize_t {
    if flags & libc::MSG_TRUNC != 0 { received.payload.len() as ssize_t } else { copied as ssize_t }
}

/// What stands beside a descriptor, if a message of DOSTP may come by it.
fn speaking(fd: c_int, flags: c_int) -> Option<Arc<Attached>> {
    attached::find(fd).filter(|attached| {
        flags & libc::MSG_ERRQUEUE == 0 && attached.opened().is_some() && attached.peer() != Peer::Elsewhere
    })
}

/// Receives by whichever has something first. `by_udp` makes the program's own call with these flags, and
/// says what it returned and who has sent.
fn receive(
    fd: c_int,
    attached: &Attached,
    flags: c_int,
    by_udp: impl Fn(c_int) -> (ssize_t, Option<SocketAddrV4>),
    by_dostp: impl FnOnce(&Received) -> ssize_t,
) -> ssize_t {
    // Most often something is there, and nothing has to be asked.
    if let Some(Ok(Some(received))) = attached.opened().map(|socket| take(socket, attached, flags)) {
        return by_dostp(&received);
    }
    let waits = memory::waits(fd, flags);
    let limit_ns = waits.then(|| receive_limit_ns(fd)).flatten();
    let until_ns = limit_ns.map(|limit_ns| clock::now_ns() + limit_ns);
    loop {
        match next(fd, attached, flags, waits, until_ns) {
            Next::Message(received) => return by_dostp(&received),
            Next::TimeIsUp => {
                real::set_errno(libc::EAGAIN);
                return -1;
            }
            Next::Interrupted => {
                real::set_errno(libc::EINTR);
                return -1;
            }
            Next::Udp => {
                // Of a socket that was shut down UDP tells the end only to a call that may wait.
                let wait = if attached.may_receive() { libc::MSG_DONTWAIT } else { 0 };
                let (received, sender) = by_udp(flags | wait);
                if let Some(sender) = sender.filter(|_| received >= 0) {
                    attached.heard_by_udp(sender);
                }
                // A datagram may have been damaged, or taken by another thread.
                if received >= 0 || !waits || real::errno() != libc::EAGAIN {
                    return received;
                }
            }
        }
    }
}

/// What a socket has next.
enum Next {
    Message(Received),
    /// UDP has something, or the call must not wait.
    Udp,
    TimeIsUp,
    Interrupted,
}

fn next(fd: c_int, attached: &Attached, flags: c_int, waits: bool, until_ns: Option<u64>) -> Next {
    let Some(socket) = attached.opened() else { return Next::Udp };
    loop {
        match take(socket, attached, flags) {
            Ok(Some(received)) => return Next::Message(received),
            // The interface went down (told once), which UDP does not tell either.
            Ok(None) | Err(_) if !waits => return Next::Udp,
            Ok(None) | Err(_) => {}
        }
        let now_ns = clock::now_ns();
        if now_ns < attached.last_traffic_ns.load(Ordering::Relaxed) + SPIN_NS {
            std::hint::spin_loop();
            continue;
        }
        match wait(fd, socket, until_ns, now_ns) {
            Ok(true) => return Next::Udp,
            Ok(false) if until_ns.is_some_and(|until_ns| until_ns <= clock::now_ns()) => {
                return Next::TimeIsUp;
            }
            Ok(false) => {}
            Err(rustix::io::Errno::INTR) => return Next::Interrupted,
            Err(_) => return Next::Udp,
        }
    }
}

/// The next message, if there is one from whom the socket is connected to.
fn take(socket: &Socket, attached: &Attached, flags: c_int) -> io::Result<Option<Received>> {
    loop {
        let received = match socket.receive() {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_wanted = match attached.peer() {
            Peer::Node(node) => received.from == node,
            Peer::Nobody | Peer::Elsewhere => true,
        };
        if is_wanted {
            attached.last_traffic_ns.store(clock::now_ns(), Ordering::Relaxed);
            attached.heard_by_dostp(received.from);
            if flags & libc::MSG_PEEK != 0 {
                socket.put_back(received.clone());
            }
            return Ok(Some(received));
        }
    }
}

/// Waits for one of both; says whether UDP has something.
fn wait(fd: c_int, socket: &Socket, until_ns: Option<u64>, now_ns: u64) -> rustix::io::Result<bool> {
    let due_ns = socket.due_ms().map(|due_ms| due_ms * 1_000_000);
    let until_ns = until_ns.into_iter().chain(due_ns).min();
    let left = until_ns.map(|until_ns| {
        let left_ns = until_ns.saturating_sub(now_ns);
        Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ }
    });
    // SAFETY: the program's descriptor is open for the length of its call.
    let udp = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut both = [
        PollFd::from_borrowed_fd(udp, PollFlags::IN),
        PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN),
    ];
    poll(&mut both, left.as_ref())?;
    if both[1].revents().contains(PollFlags::ERR) {
        socket.take_error().ok();
    }
    socket.tend().ok();
    Ok(!both[0].revents().is_empty())
}

/// SO_RCVTIMEO, if it is set.
fn receive_limit_ns(fd: c_int) -> Option<u64> {
    let limit = memory::option(fd, libc::SO_RCVTIMEO, timeval { tv_sec: 0, tv_usec: 0 });
    let limit_ns = limit.tv_sec as u64 * 1_000_000_000 + limit.tv_usec as u64 * 1_000;
    (limit_ns > 0).then_some(limit_ns)
}
