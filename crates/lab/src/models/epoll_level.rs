//! # epoll, level-triggered
//!
//! The list of descriptors stays in the kernel (`epoll_ctl` changes it), and the kernel notes who becomes
//! ready while it happens. `epoll_wait` gives only those, so its cost does not grow with those who are
//! silent. Level-triggered: who is still ready is reported again, so one may read a part and come back.
//!
//! It must never wait in any other call.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, is_ending, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "epoll-level",
    title: "epoll, level-triggered",
    lesson: "The kernel keeps the list and reports only who is ready: silent clients cost nothing.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                   epoll (list of all, kept by the kernel)
                                     | only those who are ready
clients ---> [kernel's queue] ---> epoll_wait -> accept, read, write --+
                                     ^---------------------------------+
                                   one process, any number of connections";

const EVENTS: usize = 64; // how many are taken at once

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Readable,
    Writable,
    Over,
}

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    shut_down_at_the_end(listener);
    listener::announce(&socket, options)?;
    // SAFETY: only numbers and a text with its NUL are handed over. Without O_NONBLOCK `accept` would wait
    // here for a client that was reported and has gone again.
    let mut spare = unsafe {
        libc::fcntl(listener, libc::F_SETFL, libc::O_NONBLOCK);
        libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY)
    };
    // SAFETY: only a number is handed over.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    watch(epoll, libc::EPOLL_CTL_ADD, listener, libc::EPOLLIN)?;
    let mut connections: HashMap<RawFd, (Talk, Wait)> = HashMap::new();
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    loop {
        // SAFETY: the events are ours and so many. -1: as long as it takes.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, -1) };
        if is_ending() {
            return Ok(());
        }
        if count < 0 && errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
        for event in &events[..count.max(0) as usize] {
            let fd = event.u64 as RawFd;
            if fd == listener {
                while let Some(fd) = accept(listener, &mut spare) {
                    watch(epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN)?;
                    connections.insert(fd, (Talk::new(MODEL.name), Wait::Readable));
                }
                continue;
            }
            let Some((talk, last)) = connections.get_mut(&fd) else { continue };
            let wait = converse(fd, talk, options);
            match wait {
                _ if wait == *last => {} // the list is right as it is
                Wait::Readable => watch(epoll, libc::EPOLL_CTL_MOD, fd, libc::EPOLLIN)?,
                Wait::Writable => watch(epoll, libc::EPOLL_CTL_MOD, fd, libc::EPOLLOUT)?,
                Wait::Over => {
                    connections.remove(&fd);
                    // SAFETY: the descriptor is ours, and not used any more. Closing takes it off the list.
                    unsafe { libc::close(fd) };
                    continue;
                }
            }
            *last = wait;
        }
    }
}

/// Puts a descriptor on the list, or changes what is wanted of it.
fn watch(epoll: RawFd, what: i32, fd: RawFd, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
    // SAFETY: the event is only read.
    let result = unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The next connection, if one waits. Without a descriptor for it the client is sent away, by a spare one:
/// else it would be reported for ever.
fn accept(listener: RawFd, spare: &mut RawFd) -> Option<RawFd> {
    loop {
        // SAFETY: nobody asks for the client's address; descriptors are ours.
        unsafe {
            let connection = libc::accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK);
            match errno() {
                _ if connection >= 0 => return Some(connection),
                libc::EINTR | libc::ECONNABORTED => {}
                libc::EMFILE | libc::ENFILE => {
                    libc::close(*spare);
                    libc::close(libc::accept(listener, null_mut(), null_mut()));
                    *spare = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
                    return None; // if more wait we are told again
                }
                _ => return None, // EAGAIN: nobody waits
            }
        }
    }
}

/// Goes on with a conversation until it would have to wait: reads once, for if there is more we are told
/// again.
fn converse(fd: RawFd, talk: &mut Talk, options: &Options) -> Wait {
    let mut buffer = [0; READ_BYTES];
    let mut has_read = false;
    loop {
        let piece = talk.piece();
        if !piece.is_empty() {
            // SAFETY: the piece is so long. MSG_NOSIGNAL: if the client is gone, an error and no SIGPIPE.
            let sent = unsafe { libc::send(fd, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
            match sent {
                0.. => talk.sent(sent as usize), // it may be less than the piece
                _ if errno() == libc::EINTR => {}
                _ if errno() == libc::EAGAIN => return Wait::Writable, // the kernel holds enough for now
                _ => return Wait::Over,                                // the client has gone away
            }
            continue;
        }
        match talk.next_step() {
            Next::Answer => work::burn(options.work_ns),
            Next::Close => return Wait::Over,
            // SAFETY: only numbers are handed over.
            Next::HalfClose => _ = unsafe { libc::shutdown(fd, libc::SHUT_WR) },
            Next::Listen if has_read => return Wait::Readable,
            Next::Listen => {
                has_read = true;
                // SAFETY: the buffer is ours and so long.
                match unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } {
                    0 => return Wait::Over, // the client says no more
                    count @ 1.. => talk.hear(&buffer[..count as usize]),
                    _ if errno() == libc::EINTR => {}
                    _ if errno() == libc::EAGAIN => return Wait::Readable,
                    _ => return Wait::Over,
                }
            }
        }
    }
}
