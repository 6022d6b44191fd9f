//! # select: one process, many clients
//!
//! One process has all connections open, and waits for all of them in one call: `select` gets a set of
//! descriptors to be read and one to be written, and changes them to those that are ready. A slow client
//! harms nobody, for nobody waits for it. Both sets are copied into the kernel and searched, each time; and a
//! set has room for 1024 descriptors, by its form.
//!
//! It must never wait in any other call, and never put a descriptor above 1023 in a set: that writes beyond
//! its end.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, is_ending, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "select",
    title: "select: one process, many clients",
    lesson: "One process serves many, if it asks who is ready. select asks anew for all of them.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                          +-- reads, writes what is ready --+
clients ---> [kernel's queue] ---> select: who is ready?                    | again
                                          +---------------------------------+
                                   one process, up to 1000 connections";

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
    let mut connections: BTreeMap<RawFd, (Talk, Wait)> = BTreeMap::new();
    loop {
        // SAFETY: sets of zeroes are empty, and every descriptor is below FD_SETSIZE: `accept` sees to it.
        let (mut readable, mut writable): (libc::fd_set, libc::fd_set) = unsafe { (zeroed(), zeroed()) };
        let mut highest = listener;
        // SAFETY: as above.
        unsafe { libc::FD_SET(listener, &mut readable) };
        for (&fd, (_, wait)) in &connections {
            let set = if *wait == Wait::Readable { &mut readable } else { &mut writable };
            // SAFETY: as above.
            unsafe { libc::FD_SET(fd, set) };
            highest = highest.max(fd);
        }
        // SAFETY: both sets are ours.
        let ready =
            unsafe { libc::select(highest + 1, &mut readable, &mut writable, null_mut(), null_mut()) };
        if is_ending() {
            return Ok(());
        }
        if ready < 0 {
            if errno() == libc::EINTR {
                continue;
            }
            return Err(io::Error::last_os_error());
        }
        connections.retain(|&fd, (talk, wait)| {
            // SAFETY: as above.
            if unsafe { libc::FD_ISSET(fd, &readable) || libc::FD_ISSET(fd, &writable) } {
                *wait = converse(fd, talk, options);
            }
            if *wait == Wait::Over {
                // SAFETY: the descriptor is ours, and not used any more.
                unsafe { libc::close(fd) };
            }
            *wait != Wait::Over
        });
        // SAFETY: as above.
        if unsafe { libc::FD_ISSET(listener, &readable) } {
            while let Some(fd) = accept(listener, &mut spare) {
                connections.insert(fd, (Talk::new(MODEL.name), Wait::Readable));
            }
        }
    }
}

/// The next connection, if one waits. Without a descriptor for it the client is sent away, by a spare one:
/// else it would be reported for ever. So is one that no set has room for.
fn accept(listener: RawFd, spare: &mut RawFd) -> Option<RawFd> {
    loop {
        // SAFETY: nobody asks for the client's address; descriptors are ours.
        unsafe {
            let connection = libc::accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK);
            match errno() {
                _ if connection >= libc::FD_SETSIZE as RawFd => _ = libc::close(connection),
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
