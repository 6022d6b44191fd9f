//! The C library's own functions, behind those of this library.
//!
//! It must never call a function of this library.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    epoll_event, fd_set, mmsghdr, msghdr, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t,
    timespec, timeval,
};

/// Declares functions that are looked for once, in the libraries loaded after this one.
macro_rules! real {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => { $(
        /// # Safety
        /// That of the function of this name.
        pub(crate) unsafe fn $name($($argument: $kind),*) -> $result {
            type Function = unsafe extern "C" fn($($kind),*) -> $result;
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            let function = find(&FOUND, concat!(stringify!($name), "\0"));
            // SAFETY: the C library's function of this name has this signature.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(function) };
            // SAFETY: as for this function.
            unsafe { function($($argument),*) }
        }
    )* }
}

real! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    ioctl(fd: c_int, request: libc::Ioctl, argument: *mut c_void) -> c_int;
    close(fd: c_int) -> c_int;
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    send(fd: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    sendto(
        fd: c_int, bytes: *const c_void, length: size_t, flags: c_int, to: *const sockaddr,
        to_length: socklen_t
    ) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int;
    write(fd: c_int, bytes: *const c_void, length: size_t) -> ssize_t;
    recvfrom(
        fd: c_int, bytes: *mut c_void, length: size_t, flags: c_int, from: *mut sockaddr,
        from_length: *mut socklen_t
    ) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int, limit: *mut timespec) -> c_int;
    read(fd: c_int, bytes: *mut c_void, length: size_t) -> ssize_t;
    poll(fds: *mut pollfd, count: nfds_t, limit_ms: c_int) -> c_int;
    ppoll(fds: *mut pollfd, count: nfds_t, limit: *const timespec, mask: *const sigset_t) -> c_int;
    select(
        count: c_int, readable: *mut fd_set, writable: *mut fd_set, odd: *mut fd_set, limit: *mut timeval
    ) -> c_int;
    pselect(
        count: c_int, readable: *mut fd_set, writable: *mut fd_set, odd: *mut fd_set, limit: *const timespec,
        mask: *const sigset_t
    ) -> c_int;
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    epoll_pwait(
        epoll: c_int, events: *mut epoll_event, count_max: c_int, limit_ms: c_int, mask: *const sigset_t
    ) -> c_int;
}

fn find(found: &AtomicPtr<c_void>, name: &str) -> *mut c_void {
    let known = found.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends with a zero, and dlsym(3) only reads it.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) };
    if function.is_null() {
        // There is no C library behind this one: nothing could work.
        std::process::abort();
    }
    found.store(function, Ordering::Release);
    function
}

/// Sets the calling thread's errno.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the C library gives each thread a place of its own for its errno.
    unsafe { *libc::__errno_location() = errno };
}

/// The calling thread's errno.
pub(crate) fn errno() -> c_int {
    // SAFETY: as for `set_errno`.
    unsafe { *libc::__errno_location() }
}
