//! # Pre-forked processes, accept under a shared mutex
//!
//! As `prefork-flock`, but the lock is a mutex in memory that all processes share. To take one that is free
//! costs no system call at all: one atomic instruction. Only who has to wait asks the kernel (futex).
//!
//! It must never stay locked by a dead process: the mutex is robust, so the next to lock it is told, and goes
//! on.
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
    name: "prefork-mutex",
    title: "Pre-forked processes, accept under a shared mutex",
    lesson: "A mutex in shared memory around accept: free when nobody waits, else a system call.",
    picture: PICTURE,
    pool: PoolUse::Processes,
    speaks_paper: true,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
                                              |-- child: lock, accept, unlock -> read -> write -> close
clients ---> [kernel's queue] ---> (mutex) ---|-- child: lock ...waits
                                              |-- child: lock ...waits
                                  parent: waits, and replaces the dead";

fn serve(options: &Options) -> io::Result<()> {
    let socket = listener::open(options)?;
    let listener = socket.as_raw_fd();
    let mutex = shared_mutex()?;
    // How many clients each child took: counters that a `fork` does not copy, told at the end.
    let meters = meter::meters(options.pool)?;
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD]);
    listener::announce(&socket, options)?;
    let mut children = Vec::new();
    for meter in meters {
        children.push(start_child(listener, mutex, meter, options)?);
    }
    // The parent serves nobody. It waits: for the death of a child, which gets a successor, or for its own
    // end.
    while wait_for_signal(&signals) == libc::SIGCHLD {
        // A single signal may stand for several deaths.
        // SAFETY: nobody asks how they ended, so nothing is written.
        while let child @ 1.. = unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } {
            if let Some(place) = children.iter().position(|&other| other == child) {
                children[place] = start_child(listener, mutex, &meters[place], options)?;
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

fn start_child(
    listener: RawFd,
    mutex: *mut libc::pthread_mutex_t,
    meter: &Meter,
    options: &Options,
) -> io::Result<libc::pid_t> {
    let parent = process::id() as libc::pid_t;
    // SAFETY: this process has one thread, so the child finds nothing half done.
    match unsafe { libc::fork() } {
        0 => {
            be_child_of(parent);
            serve_clients(listener, mutex, meter, options)
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}

/// A mutex in memory that a `fork` does not copy: parent and children see the same.
fn shared_mutex() -> io::Result<*mut libc::pthread_mutex_t> {
    // SAFETY: new memory, larger than the mutex and aligned to a page; all calls get valid pointers.
    unsafe {
        let bytes = size_of::<libc::pthread_mutex_t>();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(null_mut(), bytes, access, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut wanted: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&mut wanted);
        libc::pthread_mutexattr_setpshared(&mut wanted, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutexattr_setrobust(&mut wanted, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init(memory.cast(), &wanted);
        Ok(memory.cast())
    }
}

/// A child's life: one client after the other. One child waits for a connection, the others for the mutex.
fn serve_clients(listener: RawFd, mutex: *mut libc::pthread_mutex_t, meter: &Meter, options: &Options) -> ! {
    loop {
        // SAFETY: the mutex was made before this process, and lasts as long. No address is asked for.
        let (connection, error) = unsafe {
            if libc::pthread_mutex_lock(mutex) == libc::EOWNERDEAD {
                libc::pthread_mutex_consistent(mutex); // it guards nothing that could be half done
            }
            let connection = libc::accept(listener, null_mut(), null_mut());
            let error = errno();
            libc::pthread_mutex_unlock(mutex);
            (connection, error)
        };
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
