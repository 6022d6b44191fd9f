//! # io_uring: completions
//!
//! The other models ask who is ready and then make the call. Here the calls themselves are handed to the
//! kernel, written in a ring of memory that both see, and the kernel writes into a second ring how each has
//! ended. One system call (`io_uring_enter`) submits all that was written and waits for results: under load
//! there is less than one for each connection. In return a buffer belongs to the kernel until its call has
//! ended.
//!
//! It must never free or touch memory that a call under way was given.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use io_uring::{IoUring, opcode, squeue, types};

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{is_ending, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "uring",
    title: "io_uring: completions",
    lesson: "Not who is ready, but what is done: calls handed over in memory, many at a time.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                accept, receive, send:   [ring of calls]   ---+
clients ---> [kernel's queue] --->       one enter for all    kernel
                so many bytes, an error: [ring of results] <--+
                                   one process, any number of connections";

/// Room for so many calls before they are submitted.
const CALLS: u32 = 256;

/// A connection has exactly one call under way: to send if it has a piece, else to receive.
struct Connection {
    talk: Talk,
    buffer: [u8; READ_BYTES],
}

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    shut_down_at_the_end(listener); // the accept that is under way ends then
    listener::announce(&socket, options)?;
    let mut ring = IoUring::new(CALLS)?;
    // Boxed: a connection stays where it is while the kernel has its buffer.
    let mut connections: HashMap<RawFd, Box<Connection>> = HashMap::new();
    let mut is_accepting = false;
    while !is_ending() {
        if !is_accepting {
            is_accepting = true;
            let accept = opcode::Accept::new(types::Fd(listener), null_mut(), null_mut()).build();
            push(&mut ring, accept, listener)?;
        }
        // The one system call: submits what was pushed, and waits until one call or more has ended.
        if let Err(error) = ring.submit_and_wait(1)
            && error.raw_os_error() != Some(libc::EINTR)
        {
            return Err(error);
        }
        let results: Vec<(RawFd, i32)> =
            ring.completion().map(|result| (result.user_data() as RawFd, result.result())).collect();
        for (fd, result) in results {
            if fd != listener {
                go_on(&mut ring, &mut connections, fd, Some(result), options)?;
                continue;
            }
            is_accepting = false;
            if result >= 0 {
                let new = Connection { talk: Talk::new(MODEL.name), buffer: [0; READ_BYTES] };
                connections.insert(result, Box::new(new));
                go_on(&mut ring, &mut connections, result, None, options)?;
            } else if result == -libc::EMFILE || result == -libc::ENFILE {
                rest(); // others are to give theirs back; the client waits in the kernel's queue
            }
        }
    }
    // The kernel may still write into buffers: they are left to it until the process ends.
    mem::forget(connections);
    Ok(())
}

/// Goes on with a conversation whose call has ended, until it has another call to make.
fn go_on(
    ring: &mut IoUring,
    connections: &mut HashMap<RawFd, Box<Connection>>,
    fd: RawFd,
    result: Option<i32>,
    options: &Options,
) -> io::Result<()> {
    let Some(connection) = connections.get_mut(&fd) else { return Ok(()) };
    match next_call(connection, fd, result, options) {
        Some(call) => push(ring, call, fd),
        None => {
            connections.remove(&fd);
            // SAFETY: the descriptor is ours, and no call under way has it.
            unsafe { libc::close(fd) };
            Ok(())
        }
    }
}

/// Takes the result of a call, if there was one, and makes the next; `None` when it is over.
fn next_call(
    connection: &mut Connection,
    fd: RawFd,
    result: Option<i32>,
    options: &Options,
) -> Option<squeue::Entry> {
    let Connection { talk, buffer } = connection;
    match result {
        None => {}
        Some(0) => return None, // the client says no more
        Some(count @ 1..) if talk.piece().is_empty() => talk.hear(&buffer[..count as usize]),
        Some(count @ 1..) => talk.sent(count as usize), // it may be less than the piece
        Some(error) if error == -libc::EINTR => {}
        Some(_) => return None, // the client has gone away
    }
    loop {
        let piece = talk.piece();
        if !piece.is_empty() {
            let send = opcode::Send::new(types::Fd(fd), piece.as_ptr(), piece.len() as u32);
            return Some(send.flags(libc::MSG_NOSIGNAL).build());
        }
        match talk.next_step() {
            Next::Answer => work::burn(options.work_ns),
            Next::Close => return None,
            // SAFETY: only numbers are handed over.
            Next::HalfClose => _ = unsafe { libc::shutdown(fd, libc::SHUT_WR) },
            Next::Listen => {
                let bytes = buffer.len() as u32;
                return Some(opcode::Recv::new(types::Fd(fd), buffer.as_mut_ptr(), bytes).build());
            }
        }
    }
}

/// Writes a call into the ring. Its result will carry the number of the descriptor.
fn push(ring: &mut IoUring, call: squeue::Entry, fd: RawFd) -> io::Result<()> {
    let call = call.user_data(fd as u64);
    // SAFETY: buffers are those of boxed connections, which live and are left alone until the result comes.
    while unsafe { ring.submission().push(&call) }.is_err() {
        ring.submit()?; // the ring is full
    }
    Ok(())
}
