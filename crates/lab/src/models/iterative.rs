//! # Iterative: one process, one client at a time
//!
//! One process accepts a connection, serves it to its end, closes it, and only then accepts the next. Nothing
//! is started, switched or locked, so nothing is cheaper for a client that asks at once and leaves. But
//! whoever is slow makes everybody wait: while `read` waits for this client, the others stand in the kernel's
//! queue.
//!
//! It must never be used where a client may be idle; it is here as the measure of all others.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{also_shut_down, errno, is_ending, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "iterative",
    title: "Iterative: one process, one client at a time",
    lesson: "The cheapest of all, until one client is slow: then everybody waits for it.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: Some(1),
    serve,
};

const PICTURE: &str = "
clients ---> [kernel's queue] ---> accept -> read -> write -> close
                                   one process, one client at a time";

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    shut_down_at_the_end(listener);
    listener::announce(&socket, options)?;
    loop {
        // Waits until the kernel has finished a handshake, and takes the connection from its queue.
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        if connection < 0 {
            match errno() {
                _ if is_ending() => return Ok(()),
                libc::EINTR | libc::ECONNABORTED => continue,
                libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => rest(),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            continue;
        }
        also_shut_down(connection); // if we are told to end meanwhile
        converse(connection, options);
        also_shut_down(-1);
        // SAFETY: the descriptor is ours, and not used any more.
        unsafe { libc::close(connection) };
    }
}

/// Holds one conversation: read, understand, answer, until one of us has had enough.
fn converse(connection: RawFd, options: &Options) {
    let mut talk = Talk::new(MODEL.name);
    let mut buffer = [0; READ_BYTES];
    loop {
        let piece = talk.piece();
        if !piece.is_empty() {
            // SAFETY: the piece is so long. MSG_NOSIGNAL: if the client is gone, an error and no SIGPIPE.
            let sent =
                unsafe { libc::send(connection, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
            match sent {
                0.. => talk.sent(sent as usize), // it may be less than the piece
                _ if errno() == libc::EINTR => {}
                _ => return, // the client has gone away
            }
            continue;
        }
        match talk.next_step() {
            Next::Answer => work::burn(options.work_ns),
            Next::Close => return,
            // SAFETY: only numbers are handed over.
            Next::HalfClose => _ = unsafe { libc::shutdown(connection, libc::SHUT_WR) },
            Next::Listen => {
                // SAFETY: the buffer is ours and so long.
                match unsafe { libc::read(connection, buffer.as_mut_ptr().cast(), buffer.len()) } {
                    0 => return, // the client says no more
                    count @ 1.. => talk.hear(&buffer[..count as usize]),
                    _ if errno() == libc::EINTR => {}
                    _ => return,
                }
            }
        }
    }
}
