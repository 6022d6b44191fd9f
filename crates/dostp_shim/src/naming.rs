//! Which sockets there are and whom they speak with: socket, bind, connect, shutdown, close, and the names of
//! both ends. And what a program of C calls that knows of DOSTP.
//!
//! It must never take a descriptor that is no UDP socket of IPv4.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use libc::{sockaddr, socklen_t};

use crate::attached::{self, Attached, Peer};
use crate::settings::{self, Settings};
use crate::{memory, real};

/// socket(2).
///
/// # Safety
/// That of socket(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: as for this function.
    let fd = unsafe { real::socket(domain, kind, protocol) };
    let is_datagram = kind & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) == libc::SOCK_DGRAM;
    let is_udp = domain == libc::AF_INET && is_datagram && [0, libc::IPPROTO_UDP].contains(&protocol);
    if fd >= 0
        && is_udp
        && let Some(settings) = settings::of_environment()
    {
        attached::insert(fd, settings);
    }
    fd
}

/// bind(2).
///
/// # Safety
/// That of bind(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as for this function.
    let result = unsafe { real::bind(fd, address, length) };
    if result == 0
        && let Some(attached) = attached::find(fd)
        // SAFETY: the kernel has just read the address.
        && let Some(address) = unsafe { memory::address(address, length) }
        && (address.ip().is_unspecified() || attached.settings.contains(*address.ip()))
    {
        attached.open(fd);
    }
    result
}

/// connect(2). The kernel's UDP socket is connected as well: where no node answers, the program goes on as it
/// would by UDP, and hears nobody else.
///
/// # Safety
/// That of connect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let Some(attached) = attached::find(fd) else {
        // SAFETY: as for this function.
        return unsafe { real::connect(fd, address, length) };
    };
    // SAFETY: the caller's address can be read.
    let node = unsafe { memory::address(address, length) }.filter(|to| attached.settings.contains(*to.ip()));
    // Before the kernel chooses the socket's own address, which may be one outside of the network.
    let node = node.filter(|_| attached.open(fd).is_some());
    // SAFETY: as for this function.
    let result = unsafe { real::connect(fd, address, length) };
    if result == 0 {
        // SAFETY: the kernel has just read the address, which has a family at least.
        let family = c_int::from(unsafe { (*address).sa_family });
        attached.set_peer(match node {
            Some(node) => Peer::Node(node),
            None if family == libc::AF_UNSPEC => Peer::Nobody,
            None => Peer::Elsewhere,
        });
    }
    result
}

/// shutdown(2). What may not be sent by UDP any more is not sent by DOSTP either.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    // SAFETY: as for this function.
    let result = unsafe { real::shutdown(fd, how) };
    if result == 0
        && let Some(attached) = attached::find(fd)
    {
        attached.shut_down(how);
    }
    result
}

/// close(2).
///
/// # Safety
/// That of close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    attached::remove(fd);
    // SAFETY: as for this function.
    unsafe { real::close(fd) }
}

/// getsockname(2). One that is connected to a node has the address by which it is reached there.
///
/// # Safety
/// That of getsockname(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    if let Some(attached) = attached::find(fd)
        && let Peer::Node(_) = attached.peer()
        && let Some(Ok(local)) = attached.opened().map(staunch_dostp::Socket::local_addr)
    {
        // SAFETY: the caller's address and length can be written.
        unsafe { memory::put_address(local, address, length) };
        return 0;
    }
    // SAFETY: as for this function.
    unsafe { real::getsockname(fd, address, length) }
}

/// getpeername(2).
///
/// # Safety
/// That of getpeername(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    if let Some(attached) = attached::find(fd)
        && let Peer::Node(node) = attached.peer()
    {
        // SAFETY: the caller's address and length can be written.
        unsafe { memory::put_address(node, address, length) };
        return 0;
    }
    // SAFETY: as for this function.
    unsafe { real::getpeername(fd, address, length) }
}

/// Lets a bound UDP socket speak DOSTP with the network of this interface. 0, or -1 and errno.
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dostp_attach(fd: c_int, interface: *const c_char) -> c_int {
    let fail = |errno| {
        real::set_errno(errno);
        -1
    };
    if interface.is_null() || memory::option(fd, libc::SO_TYPE, 0) != libc::SOCK_DGRAM {
        return fail(libc::EINVAL);
    }
    if attached::find(fd).as_ref().is_some_and(|attached| attached.opened().is_some()) {
        return fail(libc::EALREADY);
    }
    // SAFETY: the caller says so.
    let Ok(name) = unsafe { CStr::from_ptr(interface) }.to_str() else { return fail(libc::EINVAL) };
    match Settings::of_interface(name) {
        Ok(settings) => attached::insert(fd, Arc::new(settings)),
        Err(error) => return fail(error.raw_os_error().unwrap_or(libc::EINVAL)),
    }
    match attached::find(fd) {
        Some(attached) if attached.open(fd).is_some() => 0,
        _ => {
            attached::remove(fd);
            fail(libc::ENETUNREACH)
        }
    }
}

/// The backend by which a socket speaks DOSTP, or null where it does not.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dostp_backend(fd: c_int) -> *const c_char {
    let attached = attached::find(fd);
    let socket = attached.as_deref().and_then(Attached::opened);
    socket.map_or(std::ptr::null(), |socket| name_in_c(socket.opened().backend).as_ptr())
}

fn name_in_c(backend: staunch_dostp::Backend) -> &'static CStr {
    use staunch_dostp::Backend;
    match backend {
        Backend::Ring => c"ring",
        Backend::XdpGeneric => c"xdp-generic",
        Backend::XdpNative => c"xdp-native",
        Backend::Given => c"given",
        Backend::Udp => c"udp",
    }
}
