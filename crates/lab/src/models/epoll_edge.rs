//! # epoll, edge-triggered
//!
//! As `epoll-level`, but a descriptor is reported only when something new has come: not while it is ready,
//! but when it becomes so. So it is put on the list once, for reading and writing, and the list is never
//! changed again. The price is care: each time one has to read, write or accept until the kernel says that
//! there is no more (EAGAIN), which is one call more where requests are short. What is left is not reported
//! again.
//!
//! It must never stop before EAGAIN.
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
    name: "epoll-edge",
    title: "epoll, edge-triggered",
    lesson: "Told once when something comes: the list never changes, but one call more finds nothing.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                   epoll (list of all, each put there once)
                                     | only those to whom something new came
clients ---> [kernel's queue] ---> epoll_wait -> accept, read, write until EAGAIN --+
                                     ^----------------------------------------------+
                                   one process, any number of connections";

/// How many events are taken at once.
const EVENTS: usize = 64;
/// What is wanted of every connection, for its whole life.
const ALL: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;

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
    watch(epoll, listener)?;
    let mut talks: HashMap<RawFd, Talk> = HashMap::new();
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
                    talks.insert(fd, Talk::new(MODEL.name));
                    watch(epoll, fd)?; // what has come already is reported as new
                }
                continue;
            }
            let Some(talk) = talks.get_mut(&fd) else { continue };
            if !converse(fd, talk, options) {
                talks.remove(&fd);
                // SAFETY: the descriptor is ours, and not used any more. Closing takes it off the list.
                unsafe { libc::close(fd) };
            }
        }
    }
}

/// Puts a descriptor on the list.
fn watch(epoll: RawFd, fd: RawFd) -> io::Result<()> {
    let mut event = libc::epoll_event { events: ALL as u32, u64: fd as u64 };
    // SAFETY: the event is only read.
    let result = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
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
                    let refused = libc::accept(listener, null_mut(), null_mut());
                    libc::close(refused);
                    *spare = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
                    if refused < 0 {
                        return None; // nobody waits
                    }
                }
                _ => return None, // EAGAIN: nobody waits
            }
        }
    }
}

/// Goes on with a conversation until the kernel says that it would have to wait (EAGAIN), not a step less:
/// what is left unread we are not told of again. Whether it goes on at all.
fn converse(fd: RawFd, talk: &mut Talk, options: &Options) -> bool {
    let mut buffer = [0; READ_BYTES];
    loop {
        let piece = talk.piece();
        if !piece.is_empty() {
            // SAFETY: the piece is so long. MSG_NOSIGNAL: if the client is gone, an error and no SIGPIPE.
            let sent = unsafe { libc::send(fd, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
            match sent {
                0.. => talk.sent(sent as usize), // it may be less than the piece
                _ if errno() == libc::EINTR => {}
                _ if errno() == libc::EAGAIN => return true, // the kernel holds enough for now
                _ => return false,                           // the client has gone away
            }
            continue;
        }
        match talk.next_step() {
            Next::Answer => work::burn(options.work_ns),
            Next::Close => return false,
            // SAFETY: only numbers are handed over.
            Next::HalfClose => _ = unsafe { libc::shutdown(fd, libc::SHUT_WR) },
            Next::Listen => {
                // SAFETY: the buffer is ours and so long.
                match unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } {
                    0 => return false, // the client says no more
                    count @ 1.. => talk.hear(&buffer[..count as usize]),
                    _ if errno() == libc::EINTR => {}
                    _ if errno() == libc::EAGAIN => return true,
                    _ => return false,
                }
            }
        }
    }
}
