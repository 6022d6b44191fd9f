//! The one interface between the engine and the kernel: what may be asked, and what is reported.
//!
//! Order of calls: `accept` once a listener; for each [`Completion::Accepted`] one `receive`, at once or
//! later; any number of `send`, and after that `receive` of `pause` and `receive`; at last one `close`, after
//! which only `Sent` (with an error, to give an outgoing in flight back) and finally `Closed` come for that
//! slot. Until `Closed` has come the slot names the same connection, so a completion can never be mistaken
//! for a later connection's. Whether a slot is that of an accepted connection or of one we make shows in its
//! number: see [`Capacity`].
//!
//! Or, to make a connection: `connect`; after [`Completion::Connected`] without an error everything is as
//! with an accepted connection, and after one with an error only `inspect` and `close` are left. `close` may
//! be called before; then `Connected` may still come (if it was known already) or not. `Inspected` comes in
//! any case, before `Closed`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use crate::datagram::{Readiness, Watch};
use crate::{Capacity, Outgoing, Queue, Slot, Taken, Target, Tuning, clock};

/// Received bytes, held in a buffer of the [`Io`] until given back by [`Io::release`].
///
/// Not `Clone`: one buffer is given back once.
#[derive(Debug, PartialEq, Eq)]
pub struct Input {
    /// Which buffer of the backend holds the bytes.
    pub buffer: u32,
    /// How many bytes were received; at least 1.
    pub length: u32,
}

/// What has happened. Errors are `errno` numbers as the kernel gives them (positive).
#[derive(Debug)]
pub enum Completion {
    /// A new connection. Nothing is received from it before `receive` is called.
    Accepted {
        /// Index of the listener in the order they were given to the backend.
        listener: u16,
        /// The new connection's slot.
        slot: Slot,
    },
    /// Accepting on this listener has stopped (EMFILE, ENFILE, ENOBUFS, ENOMEM, or a full table, which
    /// is reported as ENFILE). It starts again only by `accept`. The listener and its queue are intact.
    AcceptStopped {
        /// Index of the listener.
        listener: u16,
        /// Why.
        errno: i32,
    },
    /// Bytes came. They stand in `io.input(&input)` until `io.release(input)`.
    Received {
        /// From which connection.
        slot: Slot,
        /// Where they stand.
        input: Input,
    },
    /// The peer will send no more: it half-closed (`errno` 0) or the connection failed. Receiving has
    /// stopped.
    Ended {
        /// Which connection.
        slot: Slot,
        /// 0 for an orderly end, else for instance ECONNRESET.
        errno: i32,
    },
    /// Part of the outgoing was taken by the kernel, the rest goes on by itself: the peer makes progress.
    Progress {
        /// Which connection.
        slot: Slot,
        /// How many bytes were taken since the send began or the last `Progress`; at least 1.
        bytes: u32,
    },
    /// The outgoing was taken by the kernel as a whole, or has failed and will not go on.
    Sent {
        /// Which connection.
        slot: Slot,
        /// The container given to `send`, to be used again. Its contents are cleared.
        outgoing: Box<Outgoing>,
        /// 0, or why it failed: EPIPE, ECONNRESET, ESTALE (a file changed under it), ECANCELED (by `close`).
        errno: i32,
    },
    /// Connecting is over.
    Connected {
        /// Which connection.
        slot: Slot,
        /// 0: bytes may be sent and received now. Else why not, for instance ECONNREFUSED, ETIMEDOUT,
        /// ENETUNREACH, EADDRNOTAVAIL (all ports are in use); the slot has to be closed all the same.
        errno: i32,
    },
    /// The answer to `inspect`.
    Inspected {
        /// Which connection.
        slot: Slot,
        /// How often segments were sent again until now, that of the SYN included.
        retransmitted: u32,
        /// What the peer has taken, as far as it can be told here.
        taken: Option<Taken>,
    },
    /// The connection is gone and the slot is free. The peer sees it after the next `submit_and_wait` at the
    /// latest.
    Closed {
        /// Which slot.
        slot: Slot,
    },
    /// Something came at what is watched, or there is room to send if that was asked for. May be reported
    /// without either.
    Ready {
        /// What.
        watch: Watch,
    },
    /// A [`crate::Waker`] of this backend was used.
    Woken,
}

/// Operations in, completions out. One value a worker thread; it is neither shared nor moved between threads
/// after its first use.
pub trait Io {
    /// Milliseconds on a clock that never goes back (CLOCK_MONOTONIC). The simulator has its own.
    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// The clock of `now_ms` in nanoseconds, for measurements.
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// The wall clock, asked at most once a second (for Date).
    fn wall_time(&self) -> SystemTime {
        clock::unix_time()
    }

    /// How many connections the table can hold at most.
    fn capacity(&self) -> Capacity;

    /// Starts accepting on a listener. New connections are reported until `AcceptStopped`.
    fn accept(&mut self, listener: u16);

    /// Stops accepting on a listener until `accept`. Connections wait in the kernel's queue. No
    /// `AcceptStopped` is reported; an `Accepted` already under way still is.
    fn refuse(&mut self, listener: u16);

    /// Takes one more listening socket and gives its number; it does not accept yet. Numbers of listeners
    /// that are gone are used again. Only on a backend with room for accepted connections.
    ///
    /// # Errors
    /// What the kernel says of what is no listening socket. EOPNOTSUPP: this backend has no real sockets.
    fn add_listener(&mut self, socket: OwnedFd) -> io::Result<u16> {
        drop(socket);
        Err(Errno::OPNOTSUPP.into())
    }

    /// Drops SYN segments to a listener from now on: a client that begins to connect is not answered, and
    /// tries again; a segment costs about a microsecond. What is in the queue, or on its way into it, is
    /// accepted as before.
    fn drop_syn(&mut self, listener: u16);

    /// Takes SYN segments again, whichever process dropped them: the socket may have come from another one.
    fn admit_syn(&mut self, listener: u16);

    /// As `refuse`, and gives the socket up for good. Connections in its queue are lost, unless somebody else
    /// holds the socket too.
    fn drop_listener(&mut self, listener: u16);

    /// What waits in the kernel to be accepted on a listener, and how much may; `None` once it was dropped
    /// and no `Accepted` of it can be under way any more. Costs a system call.
    fn queue(&self, listener: u16) -> Option<Queue>;

    /// From now on the address of each accepted connection is learnt, for [`Io::peer_address`]. It costs
    /// something for each, so it is not done unasked.
    fn learn_peers(&mut self);

    /// Where the connection reported last by `Accepted` comes from; to be asked before the next
    /// `next_completion`, for nothing is kept. `None` for every other slot, and for connections taken by the
    /// kernel before `learn_peers`.
    fn peer_address(&self, slot: Slot) -> Option<SocketAddr>;

    /// Begins to connect, and reports one `Connected`.
    ///
    /// # Errors
    /// What is known before the peer is asked; no slot is in use then. ENFILE: all slots to connect with are
    /// in use, or the system's table is full. EMFILE, ENOMEM, ENOBUFS. EADDRNOTAVAIL: the source is not an
    /// address of this machine. EAFNOSUPPORT: no such family here, or the source is of another one.
    /// ENAMETOOLONG: the path of a Unix socket.
    fn connect(&mut self, target: &Target) -> io::Result<Slot>;

    /// Asks the kernel how often it has sent segments of this connection again (tcpi_total_retrans of
    /// TCP_INFO), and what its peer has acknowledged, and reports one `Inspected`. Allowed from `Accepted` or
    /// `connect` on until `close`, once at a time, also while a send is under way. 0 and nothing where
    /// [`Io::can_inspect`] says no; nothing of a connection whose last send is being finished by the kernel.
    /// 0 for Unix sockets.
    fn inspect(&mut self, slot: Slot);

    /// Whether `inspect` tells the truth here.
    fn can_inspect(&self) -> bool {
        true
    }

    /// Starts receiving. Deliveries go on until `pause`, `Ended` or `close`. May be called when already
    /// receiving.
    fn receive(&mut self, slot: Slot);

    /// Stops receiving until `receive`; the peer feels it through its window. What was already received is
    /// still reported.
    fn pause(&mut self, slot: Slot);

    /// Sends everything in order, files included, and reports one `Sent`. At most one send a slot at a time.
    /// With `last`, nothing will follow: the connection is closed once all is taken, and `Closed` comes after
    /// `Sent`. A `close` after `send(last)` is allowed and cuts the send short.
    fn send(&mut self, slot: Slot, outgoing: Box<Outgoing>, last: bool);

    /// Sets an option of a connection, before anything that is sent from now on. What its socket does not
    /// know is left out, and so is all where [`Io::can_tune`] says no: it is for saving memory, not for being
    /// right.
    fn tune(&mut self, slot: Slot, tuning: Tuning);

    /// Whether `tune` does anything here.
    fn can_tune(&self) -> bool {
        true
    }

    /// Half-closes: the peer sees the end of the stream after all that was sent.
    fn shutdown(&mut self, slot: Slot);

    /// Closes. Ends every operation of the slot. Calling it again before `Closed` changes nothing.
    fn close(&mut self, slot: Slot);

    /// The bytes of an input.
    fn input(&self, input: &Input) -> &[u8];

    /// The bytes of an input, to be changed where they stand: a sealed record is opened in place.
    fn input_mut(&mut self, input: &Input) -> &mut [u8];

    /// Gives an input's buffer back. Every input must be given back, best at once.
    fn release(&mut self, input: Input);

    /// Watches what is no connection of this backend: [`Completion::Ready`] is reported when something has
    /// come, and again only for what comes after that.
    ///
    /// # Errors
    /// Those of epoll_ctl(2); ENFILE: too much is watched. EOPNOTSUPP: this backend knows no such things: a
    /// real one no flags, a simulated one no descriptors.
    fn watch(&mut self, readiness: Readiness) -> io::Result<Watch>;

    /// Reports one `Ready` as soon as there is room to send at what is watched.
    fn watch_room(&mut self, watch: Watch);

    /// Ends the watching. A `Ready` already under way may still be reported.
    fn unwatch(&mut self, watch: Watch);

    /// Gives back memory that only a crowd needed. For a quiet moment: it looks at all there is.
    fn give_back_memory(&mut self) {}

    /// Hands the operations to the kernel and waits until there is a completion or the timeout is over.
    /// `None` waits without end; `Some(ZERO)` does not wait.
    ///
    /// # Errors
    /// Only what the worker cannot go on after; interruption by a signal is not an error.
    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// The next completion of this turn, or `None` when the turn is over. Work may be done lazily here: the
    /// epoll backend receives when it is asked. Operations may be called between two completions.
    fn next_completion(&mut self) -> Option<Completion>;
}
