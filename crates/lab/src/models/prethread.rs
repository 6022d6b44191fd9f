//! # Pre-threaded, each accepts
//!
//! The threads are made before the first client comes, and all wait in `accept` at the same listener. It is
//! `prefork` with threads: no start for each client, and little memory for each. Switching from one thread to
//! the other leaves the page tables as they are.
//!
//! It must never share anything between its threads but the listener: then no lock is needed.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;
use std::thread;

use crate::listener;
use crate::meter::{self, Meter};
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, hold_signals, rest, wait_for_signal};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "prethread",
    title: "Pre-threaded, each accepts",
    lesson: "A pool of threads, all in accept: what a blocking server is at its best.",
    picture: PICTURE,
    pool: PoolUse::Threads,
    speaks_paper: true,
    paper_row: Some(5),
    serve,
};

const PICTURE: &str = "
                                    |-- thread: accept -> read -> write -> close --+
clients ---> [kernel's queue] ---> -|-- thread: accept -> read -> write -> close   | again
                                    |-- thread: accept -> read -> write -> close <-+
                                  main thread: waits for the end";

/// Stack of a thread: a buffer, and what parsing and a date need. The usual 8 MiB are not used but counted.
const STACK_BYTES: usize = 128 * 1024;

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT]);
    listener::announce(&socket, options)?;
    // How many clients each thread took, told at the end.
    let meters = meter::meters(options.pool)?;
    for meter in meters {
        let own = options.clone();
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve_clients(listener, meter, &own))?;
    }
    // The main thread serves nobody: it waits to be told to end, and with it the process and all its threads.
    wait_for_signal(&signals);
    meter::print(meters)
}

/// A thread's life: one client after the other.
fn serve_clients(listener: RawFd, meter: &Meter, options: &Options) -> ! {
    loop {
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        if connection < 0 {
            match errno() {
                libc::EINTR | libc::ECONNABORTED => {}
                _ => rest(), // no descriptor, no memory: others are to give theirs back
            }
            continue;
        }
        meter.count();
        converse(connection, options);
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
