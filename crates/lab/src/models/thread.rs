//! # A thread for each client
//!
//! The main thread accepts, and for each client starts a thread that serves it and ends. A thread shares its
//! process's memory, so it costs a tenth of a process to make: a stack, and an entry for the scheduler. The
//! program reads as simply as the iterative one. But a thousand clients are a thousand stacks, and an error
//! in one thread is the end of all.
//!
//! It must never wait for its threads at the end: a client may be silent for ever. They end with the process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;
use std::thread;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, is_ending, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "thread",
    title: "A thread for each client",
    lesson: "A thread is a cheap process: simple programs, thousands of clients, and stacks to match.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: Some(4),
    serve,
};

const PICTURE: &str = "
clients ---> [kernel's queue] ---> main thread: accept, start
                                     |-- thread: read -> write -> close      a new thread
                                     |-- thread: read -> write -> close      for each client
                                     ...";

/// Stack of a thread: a buffer, and what parsing and a date need. The usual 8 MiB are not used but counted.
const STACK_BYTES: usize = 128 * 1024;

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    shut_down_at_the_end(listener);
    listener::announce(&socket, options)?;
    loop {
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        if connection < 0 {
            match errno() {
                _ if is_ending() => return Ok(()),
                libc::EINTR | libc::ECONNABORTED => {}
                libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => rest(),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            continue;
        }
        let own = options.clone();
        // The system call behind it is `clone3`: as `fork`, but memory and descriptors are shared.
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            converse(connection, &own);
            // Descriptors are shared by all threads, so this is the only one to close.
            // SAFETY: the descriptor is this thread's, and not used any more.
            unsafe { libc::close(connection) };
        });
        if started.is_err() {
            // Too many threads: this client is sent away.
            // SAFETY: the descriptor is ours; no thread has it.
            unsafe { libc::close(connection) };
        }
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
