//! # A process for each client
//!
//! The parent accepts, and for each client makes a copy of itself: `fork`. The child serves this one client
//! and ends. Whatever happens in a child harms nobody else, and the kernel shares the processor between them.
//! The price is paid for each connection: page tables are copied, pages written to are copied again, and the
//! end has to be reaped.
//!
//! It must never leave a child behind: ended ones are reaped (else they stay as zombies), running ones are
//! told to end when we are.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::process;
use std::ptr::null_mut;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{be_child_of, errno, is_ending, notice_children, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "fork",
    title: "A process for each client",
    lesson: "Each client gets a process of its own: safe, simple, and the dearest way to say hello.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: Some(2),
    serve,
};

const PICTURE: &str = "
clients ---> [kernel's queue] ---> parent: accept, fork, close
                                     |-- child: read -> write -> exit      a new process
                                     |-- child: read -> write -> exit      for each client
                                     ...";

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    let parent = process::id() as libc::pid_t;
    let mut children = HashSet::new();
    shut_down_at_the_end(listener);
    notice_children(); // their end interrupts `accept`, so that they are reaped soon
    listener::announce(&socket, options)?;
    loop {
        reap(&mut children, libc::WNOHANG);
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
        // From here on there are two of us, equal but for what `fork` returns.
        // SAFETY: this process has one thread, so the child finds nothing half done.
        match unsafe { libc::fork() } {
            0 => {
                be_child_of(parent);
                // SAFETY: the child's copies of descriptors, closed once each.
                unsafe { libc::close(listener) };
                converse(connection, options);
                // SAFETY: ends the child at once, without what the parent has planned for its own end.
                unsafe { libc::_exit(0) }
            }
            -1 => {} // too many processes: this client is sent away
            child => _ = children.insert(child),
        }
        // The child has a descriptor of its own: the connection lives until both are closed.
        // SAFETY: the descriptor is ours, and not used any more.
        unsafe { libc::close(connection) };
    }
    for &child in &children {
        // SAFETY: a child that was not reaped still has its number.
        unsafe { libc::kill(child, libc::SIGTERM) };
    }
    while !children.is_empty() {
        reap(&mut children, 0);
    }
    Ok(())
}

/// Takes note of children that have ended; until then the kernel keeps their entries.
fn reap(children: &mut HashSet<libc::pid_t>, flags: i32) {
    loop {
        // SAFETY: nobody asks how they ended, so nothing is written.
        let child = unsafe { libc::waitpid(-1, null_mut(), flags) };
        if child <= 0 {
            return;
        }
        children.remove(&child);
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
