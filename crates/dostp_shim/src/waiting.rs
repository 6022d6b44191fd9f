//! Waiting for several descriptors: poll, select, epoll. A message of DOSTP makes its UDP socket readable.
//!
//! It must never wait while a message is there that was asked for.

use std::ffi::c_int;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::time::Duration;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use staunch_netio::clock;

use crate::attached::{self, Attached};
use crate::real;

/// What the kernel means by "readable" and by "writable" in select(2).
const READABLE: i16 = libc::POLLIN | libc::POLLHUP | libc::POLLERR;
const WRITABLE: i16 = libc::POLLOUT | libc::POLLERR;

/// poll(2).
///
/// # Safety
/// That of poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, limit_ms: c_int) -> c_int {
    let limit = u64::try_from(limit_ms).ok().map(Duration::from_millis);
    // SAFETY: the caller's entries can be read and written.
    match unsafe { entries(fds, count) }.and_then(|fds| poll_both(fds, limit, std::ptr::null())) {
        Some(result) => result,
        // SAFETY: as for this function.
        None => unsafe { real::poll(fds, count, limit_ms) },
    }
}

/// poll(3) as programs call it that were built with checks of lengths.
///
/// # Safety
/// That of poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, limit_ms: c_int, _room: usize) -> c_int {
    // SAFETY: as for this function.
    unsafe { poll(fds, count, limit_ms) }
}

/// ppoll(2).
///
/// # Safety
/// That of ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's limit is null or can be read, and so are the entries.
    let (duration, entries) = unsafe { (duration(limit), entries(fds, count)) };
    match entries.and_then(|fds| poll_both(fds, duration, mask)) {
        Some(result) => result,
        // SAFETY: as for this function.
        None => unsafe { real::ppoll(fds, count, limit, mask) },
    }
}

/// select(2). What is left of the limit is told, as by Linux.
///
/// # Safety
/// That of select(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    odd: *mut fd_set,
    limit: *mut timeval,
) -> c_int {
    let begun_ns = clock::now_ns();
    // SAFETY: the caller's limit is null or can be read.
    let given = unsafe { limit.as_ref() }
        .map(|limit| Duration::new(limit.tv_sec.max(0) as u64, limit.tv_usec.max(0) as u32 * 1_000));
    // SAFETY: the caller's sets are null, or can be read and written.
    let Some(result) = (unsafe { select_both(count, [readable, writable, odd], given, std::ptr::null()) })
    else {
        // SAFETY: as for this function.
        return unsafe { real::select(count, readable, writable, odd, limit) };
    };
    if let Some(given) = given {
        let left = given.saturating_sub(Duration::from_nanos(clock::now_ns() - begun_ns));
        // SAFETY: the caller's limit can be written: it is not null.
        unsafe {
            (*limit).tv_sec = left.as_secs() as i64;
            (*limit).tv_usec = left.subsec_micros().into();
        }
    }
    result
}

/// pselect(2).
///
/// # Safety
/// That of pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    odd: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's limit is null or can be read; its sets are null, or can be read and written.
    let result = unsafe { select_both(count, [readable, writable, odd], duration(limit), mask) };
    // SAFETY: as for this function.
    result.unwrap_or_else(|| unsafe { real::pselect(count, readable, writable, odd, limit, mask) })
}

/// epoll_ctl(2). What watches a UDP socket watches its DOSTP socket, too.
///
/// # Safety
/// That of epoll_ctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: as for this function.
    let result = unsafe { real::epoll_ctl(epoll, operation, fd, event) };
    if result == 0
        && let Some(attached) = attached::find(fd)
    {
        // SAFETY: the kernel has just read the event, if the operation has one.
        let event = (operation != libc::EPOLL_CTL_DEL).then(|| unsafe { event.read_unaligned() });
        let is_read = |event: &epoll_event| event.events & libc::EPOLLIN as u32 != 0;
        attached.set_watch(epoll, event.filter(is_read));
    }
    result
}

/// epoll_wait(2).
///
/// # Safety
/// That of epoll_wait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    count_max: c_int,
    limit_ms: c_int,
) -> c_int {
    // SAFETY: as for this function; no mask is a mask that changes nothing.
    unsafe { epoll_pwait(epoll, events, count_max, limit_ms, std::ptr::null()) }
}

/// epoll_pwait(2).
///
/// # Safety
/// That of epoll_pwait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    count_max: c_int,
    limit_ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    // What waits in memory is not seen by the kernel.
    let ready: Vec<epoll_event> = attached::watched_by(epoll)
        .into_iter()
        .filter(|(_, attached)| is_ready(attached))
        .map(|(watch, _)| epoll_event { events: libc::EPOLLIN as u32, u64: watch.event.u64 })
        .collect();
    let limit_ms = if ready.is_empty() { limit_ms } else { 0 };
    // SAFETY: as for this function.
    let told = unsafe { real::epoll_pwait(epoll, events, count_max, limit_ms, mask) };
    let (Ok(mut count), false) = (usize::try_from(told), ready.is_empty()) else { return told };
    for event in ready.into_iter().take((count_max as usize).saturating_sub(count)) {
        // SAFETY: the caller has room for so many events.
        unsafe { events.add(count).write_unaligned(event) };
        count += 1;
    }
    count as c_int
}

/// Polls these and the DOSTP sockets beside them. `None`: there are none.
fn poll_both(fds: &mut [pollfd], limit: Option<Duration>, mask: *const sigset_t) -> Option<c_int> {
    let wants = |entry: &pollfd| entry.events & libc::POLLIN != 0;
    let beside: Vec<(usize, Arc<Attached>)> = fds
        .iter()
        .enumerate()
        .filter(|(_, entry)| wants(entry))
        .filter_map(|(place, entry)| Some((place, attached::find(entry.fd)?)))
        .filter(|(_, attached)| attached.opened().is_some())
        .collect();
    if beside.is_empty() {
        return None;
    }
    let descriptor = |attached: &Attached| attached.opened().map_or(-1, |socket| socket.as_fd().as_raw_fd());
    let added = beside.iter().map(|(_, attached)| descriptor(attached));
    let added = added.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    let mut all: Vec<pollfd> = fds.iter().copied().chain(added).collect();
    let until_ns = limit.map(|limit| clock::now_ns().saturating_add(limit.as_nanos() as u64));
    loop {
        let mut ready: Vec<bool> = beside.iter().map(|(_, attached)| is_ready(attached)).collect();
        let left = match until_ns {
            _ if ready.contains(&true) => Some(0),
            Some(until_ns) => Some(until_ns.saturating_sub(clock::now_ns())),
            None => None,
        };
        if poll_really(&mut all, left, mask) < 0 {
            return Some(-1);
        }
        for ((ready, (_, attached)), entry) in ready.iter_mut().zip(&beside).zip(&all[fds.len()..]) {
            *ready |= entry.revents != 0 && is_ready(attached);
        }
        for (entry, seen) in fds.iter_mut().zip(&all) {
            entry.revents = seen.revents;
        }
        for (_, (place, _)) in ready.iter().zip(&beside).filter(|(ready, _)| **ready) {
            fds[*place].revents |= libc::POLLIN;
        }
        let count = fds.iter().filter(|entry| entry.revents != 0).count();
        // Else something came that was no message.
        if count > 0 || left == Some(0) {
            return Some(count as c_int);
        }
    }
}

fn poll_really(fds: &mut [pollfd], left_ns: Option<u64>, mask: *const sigset_t) -> c_int {
    let left = left_ns.map(|left_ns| timespec {
        tv_sec: (left_ns / 1_000_000_000) as i64,
        tv_nsec: (left_ns % 1_000_000_000) as _,
    });
    let limit = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the entries live for the length of the call, and the mask is the program's.
    unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as nfds_t, limit, mask) }
}

/// select(2) by poll(2), where a set holds a socket with DOSTP beside it; else `None`.
///
/// # Safety
/// The sets are null, or can be read and written.
unsafe fn select_both(
    count: c_int,
    sets: [*mut fd_set; 3],
    limit: Option<Duration>,
    mask: *const sigset_t,
) -> Option<c_int> {
    let events = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    let told = [READABLE, WRITABLE, libc::POLLPRI];
    let is_in = |set: *mut fd_set, fd| {
        // SAFETY: the caller says so.
        !set.is_null() && unsafe { libc::FD_ISSET(fd, set) }
    };
    let count = count.min(libc::FD_SETSIZE as c_int);
    if !(0..count).any(|fd| is_in(sets[0], fd) && attached::find(fd).is_some()) {
        return None;
    }
    let entry = |fd| {
        let wanted = sets.iter().zip(events).filter(|(set, _)| is_in(**set, fd));
        pollfd { fd, events: wanted.fold(0, |all, (_, event)| all | event), revents: 0 }
    };
    let mut entries: Vec<pollfd> = (0..count).map(entry).filter(|entry| entry.events != 0).collect();
    if poll_both(&mut entries, limit, mask)? < 0 {
        return Some(-1);
    }
    if entries.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
        real::set_errno(libc::EBADF);
        return Some(-1);
    }
    let mut bits = 0;
    for entry in &entries {
        for (set, told) in sets.into_iter().zip(told).filter(|(set, _)| is_in(*set, entry.fd)) {
            if entry.revents & told != 0 {
                bits += 1;
            } else {
                // SAFETY: the caller says so, and the set is not null.
                unsafe { libc::FD_CLR(entry.fd, set) };
            }
        }
    }
    Some(bits)
}

/// Whether a message waits.
fn is_ready(attached: &Attached) -> bool {
    attached.opened().is_some_and(|socket| socket.is_ready().unwrap_or(false))
}

/// # Safety
/// The pointer is null, or as many entries can be read and written.
unsafe fn entries<'a>(fds: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    // SAFETY: the caller says so.
    (!fds.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(fds, count as usize) })
}

/// # Safety
/// The pointer is null or can be read.
unsafe fn duration(limit: *const timespec) -> Option<Duration> {
    // SAFETY: the caller says so.
    let limit = unsafe { limit.as_ref() }?;
    Some(Duration::new(limit.tv_sec.max(0) as u64, limit.tv_nsec.max(0) as u32))
}
