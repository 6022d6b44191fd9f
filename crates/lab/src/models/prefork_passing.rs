//! # Pre-forked processes, descriptors passed
//!
//! The parent alone accepts, and passes each connection to a child over a Unix socket (SCM_RIGHTS: the kernel
//! makes a descriptor in the other process for the same connection). All children wait at the other end, and
//! the kernel gives each message to one. The parent has the say; each connection is handled once more.
//!
//! It must never keep a connection open in both processes: the client would not see the end.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use crate::listener;
use crate::meter::{self, Meter};
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{also_shut_down, be_child_of, errno, is_ending, rest, shut_down_at_the_end};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "prefork-passing",
    title: "Pre-forked processes, descriptors passed",
    lesson: "One process accepts and hands connections to others: full control for two system calls more.",
    picture: PICTURE,
    pool: PoolUse::Processes,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                                             |-- child: recvmsg -> read -> write -> close
clients -> [kernel's queue] -> parent: accept, sendmsg -> [] |-- child: recvmsg -> read -> write -> close
                               (passes the descriptor)       |-- child: recvmsg -> read -> write -> close";

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    let mut ends = [0; 2]; // where we send, and where the children receive
    // SAFETY: two numbers are written. SEQPACKET: whole messages, each to one reader.
    if unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, ends.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let meters = meter::meters(options.pool)?; // how many clients each took; a `fork` does not copy them
    shut_down_at_the_end(listener);
    listener::announce(&socket, options)?;
    let start = |meter| start_child(ends[1], meter, options);
    let children = meters.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    also_shut_down(ends[0]); // we wait there while all children are busy and the messages pile up
    while !is_ending() {
        // SAFETY: nobody asks for the client's address, so nothing is written.
        let connection = unsafe { libc::accept(listener, null_mut(), null_mut()) };
        if connection < 0 {
            if !matches!(errno(), libc::EINTR | libc::ECONNABORTED) {
                rest(); // no descriptor, no memory: others are to give theirs back
            }
            continue;
        }
        pass(ends[0], connection); // it stays open in the message, and then in the child
        // SAFETY: the descriptor is ours, and not used any more.
        unsafe { libc::close(connection) };
    }
    // SAFETY: a child that was not reaped still has its number; `waitpid` returns -1 when none is left.
    unsafe {
        children.iter().for_each(|&child| _ = libc::kill(child, libc::SIGTERM));
        while libc::waitpid(-1, null_mut(), 0) > 0 {}
    }
    meter::print(meters)
}

fn start_child(channel: RawFd, meter: &Meter, options: &Options) -> io::Result<libc::pid_t> {
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: this process has one thread, so the child finds nothing half done.
    match unsafe { libc::fork() } {
        0 => {
            be_child_of(parent);
            serve_clients(channel, meter, options)
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}

/// Makes a message of one byte with room beside it for one descriptor, and hands it to a call.
fn with_message(call: impl FnOnce(&mut libc::msghdr)) {
    let (mut byte, mut beside) = (0_u8, [0_u64; 3]); // a header of 16 bytes, the number, and alignment
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all zeroes is a valid message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    (message.msg_control, message.msg_controllen) = (beside.as_mut_ptr().cast(), size_of_val(&beside) as _);
    call(&mut message);
}

/// Sends a descriptor: the kernel translates the number that stands beside the byte.
fn pass(channel: RawFd, connection: RawFd) {
    // SAFETY: there is room for a header and one descriptor.
    with_message(|message| unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(connection);
        // Waits while too many are under way. Another failure sends this client away.
        while libc::sendmsg(channel, message, libc::MSG_NOSIGNAL) < 0 && errno() == libc::EINTR {}
    });
}

/// Receives a descriptor, a new one of this process; -1 if there was none.
fn receive(channel: RawFd) -> RawFd {
    let mut connection = -1;
    // SAFETY: the header is read only if the kernel has written one.
    with_message(|message| unsafe {
        if libc::recvmsg(channel, message, 0) > 0 && !libc::CMSG_FIRSTHDR(message).is_null() {
            connection = libc::CMSG_DATA(libc::CMSG_FIRSTHDR(message)).cast::<RawFd>().read_unaligned();
        }
    });
    connection
}

/// A child's life: one client after the other.
fn serve_clients(channel: RawFd, meter: &Meter, options: &Options) -> ! {
    loop {
        let connection = receive(channel);
        if connection < 0 {
            rest(); // no descriptor, or the parent is about to end us
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
