//! # Real-time signals
//!
//! Each descriptor is told to send a signal when something happens on it (O_ASYNC with F_SETSIG), and the
//! process does nothing but take signals from its queue: `sigwaitinfo` gives the number of the descriptor.
//! Nothing is kept on a list, so silent clients cost nothing; this is what Linux had before epoll. But each
//! packet is a signal, and the queue has an end. When it runs over, signals are lost, the kernel says so by
//! SIGIO, and `poll` has to be asked once for everyone.
//!
//! It must never handle these signals by a handler: they wait, blocked, until they are asked for.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr::null_mut;

use crate::listener;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, hold_signals};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "sigio",
    title: "Real-time signals",
    lesson: "Events as signals in a queue: quick, until the queue runs over and poll must be asked.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                   [queue of signals, bounded]
                                     | a signal for each event        (overflow: SIGIO, then poll once)
clients ---> [kernel's queue] ---> sigwaitinfo -> accept, read, write until EAGAIN --+
                                     ^-----------------------------------------------+
                                   one process, any number of connections";

const F_SETSIG: i32 = 10; // says which signal a descriptor sends; the crate `libc` has no name for it
/// The beginning of `siginfo_t` for signals of a descriptor (SIGPOLL in sigaction(2)).
#[repr(C)]
struct Signal {
    number: i32,
    _others: [i32; 5],
    descriptor: RawFd,
}

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    let event = libc::SIGRTMIN() + 1; // the first may be used by others
    let signals = hold_signals(&[event, libc::SIGIO, libc::SIGTERM, libc::SIGINT]);
    listener::announce(&socket, options)?;
    // SAFETY: a text with its NUL is handed over.
    let mut spare = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) };
    let mut talks: HashMap<RawFd, Talk> = HashMap::new();
    send_signals(listener, event);
    let mut ready = vec![listener]; // who came before it sent signals was not reported
    loop {
        // Signals may be late, and the number another connection's by now: then there is nothing to do.
        while let Some(fd) = ready.pop() {
            if fd == listener {
                while let Some(fd) = accept(listener, &mut spare) {
                    send_signals(fd, event);
                    talks.insert(fd, Talk::new(MODEL.name));
                    ready.push(fd);
                }
            } else if talks.get_mut(&fd).is_some_and(|talk| !converse(fd, talk, options)) {
                talks.remove(&fd);
                // SAFETY: the descriptor is ours, and not used any more.
                unsafe { libc::close(fd) };
            }
        }
        // SAFETY: a siginfo_t is written, which is larger than a `Signal` and begins like one.
        let signal: Signal = unsafe {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            libc::sigwaitinfo(&signals, &mut information);
            std::mem::transmute_copy(&information)
        };
        match signal.number {
            libc::SIGTERM | libc::SIGINT => return Ok(()),
            libc::SIGIO => ready = ask_poll(listener, &talks),
            _ => ready.push(signal.descriptor),
        }
    }
}

/// From now on the descriptor sends signals to this process, and never waits.
fn send_signals(fd: RawFd, event: i32) {
    // SAFETY: only numbers are handed over.
    unsafe {
        libc::fcntl(fd, F_SETSIG, event);
        libc::fcntl(fd, libc::F_SETOWN, libc::getpid());
        libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK);
    }
}

/// Everyone who is ready.
fn ask_poll(listener: RawFd, talks: &HashMap<RawFd, Talk>) -> Vec<RawFd> {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| eprintln!("sigio: the queue of signals ran over: poll is asked, once each time"));
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
    let mut list: Vec<_> = talks.keys().copied().chain([listener]).map(entry).collect();
    // SAFETY: the list is ours and so long. 0: does not wait.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, 0) };
    list.into_iter().filter(|entry| entry.revents != 0).map(|entry| entry.fd).collect()
}

/// The next connection, if one waits. Without a descriptor for it the client is sent away, by a spare one.
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
                    let refused = libc::accept(listener, null_mut(), null_mut());
                    libc::close(refused);
                    *spare = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
                    if refused < 0 {
                        return None; // nobody waits
                    }
                }
                _ => return None, // EAGAIN: nobody waits
            }
        }
    }
}

/// Goes on with a conversation until the kernel says that it would have to wait (EAGAIN), not a step less:
/// what is left unread we are not told of again. Whether it goes on at all.
fn converse(fd: RawFd, talk: &mut Talk, options: &Options) -> bool {
    let mut buffer = [0; READ_BYTES];
    loop {
        let piece = talk.piece();
        if !piece.is_empty() {
            // SAFETY: the piece is so long. MSG_NOSIGNAL: if the client is gone, an error and no SIGPIPE.
            let sent = unsafe { libc::send(fd, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
            match sent {
                0.. => talk.sent(sent as usize), // it may be less than the piece
                _ if errno() == libc::EINTR => {}
                _ if errno() == libc::EAGAIN => return true, // the kernel holds enough for now
                _ => return false,                           // the client has gone away
            }
            continue;
        }
        match talk.next_step() {
            Next::Answer => work::burn(options.work_ns),
            Next::Close => return false,
            // SAFETY: only numbers are handed over.
            Next::HalfClose => _ = unsafe { libc::shutdown(fd, libc::SHUT_WR) },
            Next::Listen => {
                // SAFETY: the buffer is ours and so long.
                match unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } {
                    0 => return false, // the client says no more
                    count @ 1.. => talk.hear(&buffer[..count as usize]),
                    _ if errno() == libc::EINTR => {}
                    _ if errno() == libc::EAGAIN => return true,
                    _ => return false,
                }
            }
        }
    }
}
