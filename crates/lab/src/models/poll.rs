//! # poll: one process, many clients
//!
//! As `select`, but the kernel gets a list of descriptors with what is wanted of each, and writes beside each
//! what it is. The list may be as long as one likes, and stays as it is between two calls. Still it is copied
//! and searched as a whole each time: with ten thousand clients of whom one speaks, ten thousand are asked.
//!
//! It must never wait in any other call.
#![allow(unsafe_code)]

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
    name: "poll",
    title: "poll: one process, many clients",
    lesson: "As select, without its bound: a list of any length, still read from end to end each time.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                        +-- reads, writes what is ready --+
clients ---> [kernel's queue] ---> poll: who of this list is ready?       | again
                                        +---------------------------------+
                                   one process, any number of connections";

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
    // Two lists side by side: what the kernel reads, and what we know. First stands the listener, which has
    // nothing to say.
    let mut list = vec![libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 }];
    let mut talks = vec![Talk::new(MODEL.name)];
    loop {
        // SAFETY: the list is ours and so long. -1: as long as it takes.
        let ready = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, -1) };
        if is_ending() {
            return Ok(());
        }
        if ready < 0 {
            if errno() == libc::EINTR {
                continue;
            }
            return Err(io::Error::last_os_error());
        }
        // From the end, so that the last one may fill a gap: it was looked at already.
        for index in (1..list.len()).rev().filter(|_| ready > 0) {
            let entry = &mut list[index];
            if entry.revents == 0 {
                continue;
            }
            match converse(entry.fd, &mut talks[index], options) {
                Wait::Readable => entry.events = libc::POLLIN,
                Wait::Writable => entry.events = libc::POLLOUT,
                Wait::Over => {
                    // SAFETY: the descriptor is ours, and not used any more.
                    unsafe { libc::close(entry.fd) };
                    list.swap_remove(index);
                    talks.swap_remove(index);
                }
            }
        }
        if list[0].revents != 0 {
            while let Some(fd) = accept(listener, &mut spare) {
                list.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
                talks.push(Talk::new(MODEL.name));
            }
        }
    }
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
