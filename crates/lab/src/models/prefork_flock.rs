//! # Pre-forked processes, accept under a file lock
//!
//! As `prefork`, but only one child at a time stands in `accept`: whoever holds a lock on a file. Older
//! kernels woke every child for each connection, or could not have several in `accept` at all; this was the
//! cure that worked between any processes on any Unix. Today the kernel wakes one child by itself, and the
//! lock is two system calls for nothing.
//!
//! It must never leave the file behind: it has no name (`memfd_create`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::process;
use std::ptr::null_mut;

use crate::listener;
use crate::meter::{self, Meter};
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{be_child_of, errno, hold_signals, rest, wait_for_signal};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "prefork-flock",
    title: "Pre-forked processes, accept under a file lock",
    lesson: "A file lock around accept: the portable cure for a herd that today no longer thunders.",
    picture: PICTURE,
    pool: PoolUse::Processes,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                             |-- child: lock, accept, unlock -> read -> write -> close
clients ---> [kernel's queue] ---> (lock) ---|-- child: lock ...waits
                                             |-- child: lock ...waits
                                  parent: waits, and replaces the dead";

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    // A file in memory. Its content does not matter, only who has locked it.
    // SAFETY: the name ends with a NUL.
    let file = unsafe { libc::memfd_create(c"accept".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // How many clients each child took: counters that a `fork` does not copy, told at the end.
    let meters = meter::meters(options.pool)?;
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD]);
    listener::announce(&socket, options)?;
    let mut children = Vec::new();
    for meter in meters {
        children.push(start_child(listener, file, meter, options)?);
    }
    // The parent serves nobody. It waits: for the death of a child, which gets a successor, or for its own
    // end.
    while wait_for_signal(&signals) == libc::SIGCHLD {
        // A single signal may stand for several deaths.
        // SAFETY: nobody asks how they ended, so nothing is written.
        while let child @ 1.. = unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } {
            if let Some(place) = children.iter().position(|&other| other == child) {
                children[place] = start_child(listener, file, &meters[place], options)?;
            }
        }
    }
    for &child in &children {
        // SAFETY: a child that was not reaped still has its number.
        unsafe { libc::kill(child, libc::SIGTERM) };
    }
    // SAFETY: as above. Returns -1 when no child is left.
    while unsafe { libc::waitpid(-1, null_mut(), 0) } > 0 {}
    meter::print(meters)
}

fn start_child(listener: RawFd, file: RawFd, meter: &Meter, options: &Options) -> io::Result<libc::pid_t> {
    let parent = process::id() as libc::pid_t;
    // SAFETY: this process has one thread, so the child finds nothing half done.
    match unsafe { libc::fork() } {
        0 => {
            be_child_of(parent);
            serve_clients(listener, file, meter, options)
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}

/// A child's life: one client after the other. One child waits for a connection, the others for the lock.
fn serve_clients(listener: RawFd, file: RawFd, meter: &Meter, options: &Options) -> ! {
    loop {
        lock(file, libc::F_WRLCK as i16);
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        let error = errno();
        lock(file, libc::F_UNLCK as i16);
        if connection < 0 {
            match error {
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

/// Takes the lock, waiting for it (F_WRLCK), or gives it back (F_UNLCK). The kernel gives it back for a
/// process that dies.
fn lock(file: RawFd, kind: i16) {
    // SAFETY: all zeroes is the whole file, from its start.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = kind;
    whole.l_whence = libc::SEEK_SET as i16;
    // SAFETY: the structure is valid; F_SETLKW only reads it.
    while unsafe { libc::fcntl(file, libc::F_SETLKW, &whole) } < 0 && errno() == libc::EINTR {}
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
