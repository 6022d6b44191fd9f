//! # epoll, one loop per processor
//!
//! `epoll-level` once for each processor: a thread that stays there, with an epoll and a listener of its own.
//! All listeners have the same port (SO_REUSEPORT), and the kernel deals connections out between them by a
//! hash of the addresses. Nothing is shared, so nothing is locked or waited for, and two processors serve
//! twice as many. But a connection stays where it fell, even if the neighbour has nothing to do.
//!
//! It must never share anything between its threads.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::thread;

use staunch_netio::host::cpu::pin_current_thread;

use crate::listener;
use crate::meter::{self, Meter};
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{errno, hold_signals, rest, wait_for_signal};
use crate::wire::{Next, READ_BYTES, Talk};
use crate::work;

pub(super) const MODEL: Model = Model {
    name: "epoll-per-core",
    title: "epoll, one loop a processor",
    lesson: "Nothing shared: a loop, a list and a queue for each processor; the kernel deals the clients.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
              +--> [queue 0] ---> thread on processor 0: epoll_wait -> accept, read, write
clients --> hash-> [queue 1] ---> thread on processor 1: epoll_wait -> accept, read, write
              +--> [queue N] ---> thread on processor N: epoll_wait -> accept, read, write
                                  main thread: waits for the end";

const EVENTS: usize = 64; // how many are taken at once

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Readable,
    Writable,
    Over,
}

fn serve(options: &Options) -> io::Result<()> {
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT]);
    let (mut address, mut sockets) = (options.address, Vec::new());
    for _ in &options.cpus {
        sockets.push(listener::open_beside(address, options)?);
        address = listener::address_of(&sockets[0])?; // the first has taken a free port, if any was asked for
    }
    let meters = meter::meters(options.cpus.len())?; // how many clients each thread took, told at the end
    for ((socket, &cpu), meter) in sockets.into_iter().zip(&options.cpus).zip(meters) {
        let own = options.clone();
        thread::spawn(move || {
            let end = pin_current_thread(cpu).and_then(|()| serve_clients(&socket, meter, &own));
            end.inspect_err(|error| eprintln!("epoll-per-core: on processor {cpu}: {error}"))
        });
    }
    (options.announce)(address);
    // The main thread serves nobody: it waits to be told to end, and with it the process and all its threads.
    wait_for_signal(&signals);
    meter::print(meters)
}

/// A processor's life: the same loop as in `epoll-level`.
fn serve_clients(socket: &OwnedFd, meter: &Meter, options: &Options) -> io::Result<()> {
    let listener = socket.as_raw_fd();
    // SAFETY: only numbers are handed over.
    let epoll = unsafe {
        libc::fcntl(listener, libc::F_SETFL, libc::O_NONBLOCK);
        libc::epoll_create1(libc::EPOLL_CLOEXEC)
    };
    watch(epoll, libc::EPOLL_CTL_ADD, listener, libc::EPOLLIN)?;
    let mut connections: HashMap<RawFd, (Talk, Wait)> = HashMap::new();
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    loop {
        // SAFETY: the events are ours and so many. -1: as long as it takes.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, -1) };
        if count < 0 && errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
        for event in &events[..count.max(0) as usize] {
            let fd = event.u64 as RawFd;
            if fd == listener {
                // SAFETY: nobody asks for the client's address, so nothing is written.
                let accept =
                    || unsafe { libc::accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK) };
                while let fd @ 0.. = accept() {
                    meter.count();
                    watch(epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN)?;
                    connections.insert(fd, (Talk::new(MODEL.name), Wait::Readable));
                }
                if errno() == libc::EMFILE {
                    rest(); // clients wait in the kernel's queue until a descriptor is given back
                }
                continue;
            }
            let Some((talk, last)) = connections.get_mut(&fd) else { continue };
            let wait = converse(fd, talk, options);
            match wait {
                _ if wait == *last => {} // the list is right as it is
                Wait::Readable => watch(epoll, libc::EPOLL_CTL_MOD, fd, libc::EPOLLIN)?,
                Wait::Writable => watch(epoll, libc::EPOLL_CTL_MOD, fd, libc::EPOLLOUT)?,
                Wait::Over => {
                    connections.remove(&fd);
                    // SAFETY: the descriptor is ours, and not used any more. Closing takes it off the list.
                    unsafe { libc::close(fd) };
                    continue;
                }
            }
            *last = wait;
        }
    }
}

/// Puts a descriptor on the list, or changes what is wanted of it.
fn watch(epoll: RawFd, what: i32, fd: RawFd, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
    // SAFETY: the event is only read.
    let result = unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Goes on with a conversation until it would have to wait.
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
