//! Sending: what goes to the network goes by DOSTP, as long as its node is there; all else by UDP.
//!
//! It must never send a message both ways.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddrV4;

use libc::{mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_dostp::Socket;

use crate::attached::{self, Attached, Peer};
use crate::{memory, real};

/// How long a send that found no room waits at most before it is tried again.
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Flags with which a message can go by DOSTP: they say how to wait, or concern IP.
const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_CONFIRM | libc::MSG_DONTROUTE;

/// send(2).
///
/// # Safety
/// That of send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    if let Some(attached) = attached::find(fd) {
        // SAFETY: the caller's bytes can be read.
        let payload = unsafe { memory::bytes(bytes, length) };
        if let Some(result) = by_dostp(fd, &attached, payload, flags, None) {
            return told(result);
        }
    }
    // SAFETY: as for this function.
    unsafe { real::send(fd, bytes, length, flags) }
}

/// sendto(2).
///
/// # Safety
/// That of sendto(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    if let Some(attached) = attached::find(fd) {
        // SAFETY: the caller's address and bytes can be read.
        let (address, payload) = unsafe { (memory::address(to, to_length), memory::bytes(bytes, length)) };
        let is_ipv4 = to.is_null() || address.is_some();
        if is_ipv4 && let Some(result) = by_dostp(fd, &attached, payload, flags, address) {
            return told(result);
        }
    }
    // SAFETY: as for this function.
    unsafe { real::sendto(fd, bytes, length, flags, to, to_length) }
}

/// write(2), which is send(2) on a socket.
///
/// # Safety
/// That of write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, length: size_t) -> ssize_t {
    if let Some(attached) = attached::find(fd) {
        // SAFETY: the caller's bytes can be read.
        let payload = unsafe { memory::bytes(bytes, length) };
        if let Some(result) = by_dostp(fd, &attached, payload, 0, None) {
            return told(result);
        }
    }
    // SAFETY: as for this function.
    unsafe { real::write(fd, bytes, length) }
}

/// sendmsg(2). What stands beside the bytes concerns IP, and is left out.
///
/// # Safety
/// That of sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if !message.is_null()
        && let Some(attached) = attached::find(fd)
    {
        // SAFETY: the caller's message can be read.
        if let Some(result) = unsafe { message_by_dostp(fd, &attached, &*message, flags) } {
            return told(result);
        }
    }
    // SAFETY: as for this function.
    unsafe { real::sendmsg(fd, message, flags) }
}

/// sendmmsg(2).
///
/// # Safety
/// That of sendmmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int {
    if attached::find(fd).is_none() || messages.is_null() {
        // SAFETY: as for this function.
        return unsafe { real::sendmmsg(fd, messages, count, flags) };
    }
    for place in 0..count as usize {
        // SAFETY: the caller's messages can be read and their lengths written.
        let sent = unsafe {
            let message = messages.add(place);
            let sent = sendmsg(fd, &raw const (*message).msg_hdr, flags);
            (*message).msg_len = sent.max(0) as u32;
            sent
        };
        if sent < 0 {
            // An error of one that is not the first is told by the next call.
            return if place == 0 { -1 } else { place as c_int };
        }
    }
    count as c_int
}

/// # Safety
/// The message can be read.
unsafe fn message_by_dostp(
    fd: c_int,
    attached: &Attached,
    message: &msghdr,
    flags: c_int,
) -> Option<io::Result<usize>> {
    // SAFETY: the caller says so.
    let address = unsafe { memory::address(message.msg_name.cast(), message.msg_namelen) };
    if !message.msg_name.is_null() && address.is_none() {
        return None;
    }
    receiver(attached, address)?;
    // SAFETY: the caller says so.
    let payload = unsafe { memory::gather(message) };
    by_dostp(fd, attached, &payload, flags, address)
}

/// To whom it goes, if that is a node of the network.
fn receiver(attached: &Attached, address: Option<SocketAddrV4>) -> Option<SocketAddrV4> {
    let to = address.or(match attached.peer() {
        Peer::Node(node) => Some(node),
        Peer::Nobody | Peer::Elsewhere => None,
    })?;
    (attached.settings.contains(*to.ip()) && !attached.speaks_udp(to)).then_some(to)
}

/// Sends by DOSTP. `None`: it is for UDP to send.
fn by_dostp(
    fd: c_int,
    attached: &Attached,
    payload: &[u8],
    flags: c_int,
    address: Option<SocketAddrV4>,
) -> Option<io::Result<usize>> {
    let to = receiver(attached, address).filter(|_| flags & !FLAGS == 0 && attached.may_send())?;
    let socket = attached.open(fd)?;
    loop {
        match socket.send_to(payload, to) {
            Ok(sent) => return Some(Ok(sent)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // This goes to all nodes. UDP refuses it as well unless the program has asked for that.
                if memory::option(fd, libc::SO_BROADCAST, 0) == 0 {
                    return None;
                }
                socket.set_broadcast(true).ok();
            }
            Err(error) if is_no_room(&error) && memory::waits(fd, flags) => wait_for_room(socket),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(Err(error)),
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => return Some(Err(error)),
            // No node has the address, or none has answered yet and enough waits for it, or this one has lost
            // its own: the way by UDP may be open.
            Err(_) => return None,
        }
    }
}

fn is_no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn wait_for_room(socket: &Socket) {
    poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&AGAIN)).ok();
    socket.tend().ok();
}

/// The result in C's words.
fn told(result: io::Result<usize>) -> ssize_t {
    match result {
        Ok(count) => count as ssize_t,
        Err(error) => {
            real::set_errno(error.raw_os_error().unwrap_or(libc::EAGAIN));
            -1
        }
    }
}
