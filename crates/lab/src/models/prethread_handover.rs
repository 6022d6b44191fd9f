//! # Pre-threaded, the main thread accepts and hands over
//!
//! The main thread does nothing but accept, and puts connections in a queue; threads take them out. A mutex
//! guards the queue, a condition variable wakes a thread that sleeps because it was empty. The kernel's queue
//! is emptied at once, whatever the threads do, and the program knows how many clients wait. Each client
//! costs a waking of one thread by another.
//!
//! It must never hold the mutex while it accepts or serves.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::listener;
use crate::meter::{self, Meter};
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, is_ending, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "prethread-handover",
    title: "Pre-threaded, the main thread accepts and hands over",
    lesson: "One thread accepts, others serve: a queue of our own, and a wake-up for each client.",
    picture: PICTURE,
    pool: PoolUse::Threads,
    speaks_paper: true,
    paper_row: Some(6),
    serve,
};

const PICTURE: &str = "
                                                                  |-- thread: take -> read -> write -> close
clients -> [kernel's queue] -> main thread: accept, put -> [ours] |-- thread: take -> read -> write -> close
                                          (mutex and condition)   |-- thread: take ...sleeps";

/// Stack of a thread: a buffer, and what parsing and a date need. The usual 8 MiB are not used but counted.
const STACK_BYTES: usize = 128 * 1024;

/// Accepted, and not yet served. It has no bound of its own: when descriptors run out nothing is accepted,
/// and clients wait in the kernel's queue, which has one.
static WAITING: Mutex<VecDeque<RawFd>> = Mutex::new(VecDeque::new());
/// Told when something was put in the queue.
static FILLED: Condvar = Condvar::new();

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    shut_down_at_the_end(listener);
    listener::announce(&socket, options)?;
    // How many clients each thread took, told at the end.
    let meters = meter::meters(options.pool)?;
    for meter in meters {
        let own = options.clone();
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve_clients(meter, &own))?;
    }
    loop {
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        if connection < 0 {
            match errno() {
                _ if is_ending() => break,
                libc::EINTR | libc::ECONNABORTED => {}
                libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => rest(),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            continue;
        }
        WAITING.lock().unwrap_or_else(PoisonError::into_inner).push_back(connection);
        FILLED.notify_one(); // a system call only if a thread sleeps
    }
    meter::print(meters)
}

/// A thread's life: one client after the other.
fn serve_clients(meter: &Meter, options: &Options) {
    loop {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        // To wait gives the mutex back, and takes it again before it returns. Others may have been faster: so
        // it is a loop.
        let connection = loop {
            match waiting.pop_front() {
                Some(connection) => break connection,
                None => waiting = FILLED.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(waiting); // unlocks
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
