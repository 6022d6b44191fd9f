//! The backend on epoll: the call is made when the kernel says it will succeed, and reported as a completion.
//!
//! It owns the connections' sockets, one receive buffer for all of them, and what is in flight. It must never
//! read ahead: bytes are received when the engine asks for the next completion, so that they are still in the
//! processor's cache when it looks at them. Order of calls: see [`Io`]; an input has to be released before
//! the next completion is asked for.
//!
//! A turn: `submit_and_wait` turns the kernel's events into marks at the connections and a list of those that
//! have something to do; `next_completion` reports what is queued, then accepts, then serves the list, each
//! connection once. What is to be sent joins the end of the list, so that first all are read and then all
//! are answered: answers follow each other closely, for waking a peer is dear. Whoever is not done then goes
//! to the next turn, which does not wait.
//!
//! Rule 1: connections are edge-triggered and watched late, not before there is something to wait for: a
//! connection that sends its request at once and takes its answer is never added to epoll at all. The kernel
//! reports readiness that is older than the adding, so nothing is lost. Rule 2: room in the socket is watched
//! only from the first send that found none. Rule 3: a receive that did not fill the buffer has emptied the
//! socket, unless the peer's end was seen: no second call to be told so. Rule 4: listeners are
//! level-triggered, because a call of accept4(2) that finds nothing costs as much as one that does not; see
//! `listener.rs`.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use self::flight::{Flight, Flights};
use self::listener::{Accept, Listener};
use self::retries::Retries;
use self::table::{Connection, Table};
use self::waiting::wait;
use self::watch::watch;
use self::watches::Watches;
use crate::datagram::{Readiness, Watch};
use crate::socket::set_option;
use crate::warming::{Done, Warmed};
use crate::{Capacity, Completion, Input, Io, Outgoing, Queue, Slot, Target, Tuning, Waker};

mod connecting;
mod flight;
mod listener;
mod retries;
mod sending;
mod table;
mod waiting;
mod watch;
mod watches;

/// The one receive buffer. A request with many fields fits; what does not comes in several pieces. More would
/// have to be kept for peers that do not read their answers.
const RECEIVE_BYTES: usize = 8 * 1024;

/// Events taken from the kernel in one turn; those beyond come with the next.
const EVENTS_MAX: usize = 512;

/// Memory an [`Outgoing`] keeps for its next use.
const OUTGOING_KEEP_BYTES: usize = 32 * 1024;

/// In epoll's data the upper half is a generation and the lower a slot; slots from here on are not
/// connections.
const SLOT_WATCH_FIRST: Slot = 0xfffe_0000;
const SLOT_LISTENER_FIRST: Slot = 0xffff_0000;
const SLOT_WAKER: Slot = 0xffff_ffff;

/// The epoll backend of one worker.
pub struct Epoll {
    epoll: OwnedFd,
    waker: Waker,
    listeners: Vec<Listener>,
    /// Counts the turns.
    turn: u64,
    /// Whether some listener has something left to accept in this turn.
    accept_due: bool,
    learns_peers: bool,
    /// The connection reported last as accepted, and where it comes from.
    peer: Option<(Slot, SocketAddr)>,
    table: Table,
    watches: Watches,
    flights: Flights,
    /// Completions that are known already.
    reports: VecDeque<Completion>,
    /// Connections to be served in this turn, and in the next.
    ready: VecDeque<Slot>,
    ready_next: Vec<Slot>,
    /// Connections to be watched before the next wait, if they still live then, with their generations.
    unwatched: Vec<(Slot, u32)>,
    retries: Retries,
    warmed: Arc<Warmed>,
    events: Vec<Event>,
    buffer: Box<[u8]>,
    buffer_lent: bool,
}

impl Epoll {
    /// A backend for these listeners that holds at most so many connections.
    ///
    /// # Errors
    /// Those of epoll_create1(2) and epoll_ctl(2): EMFILE, ENFILE, ENOMEM, ENOSPC. Something that is no
    /// socket.
    ///
    /// # Panics
    /// If there are more than 65 000 listeners.
    pub fn new(listeners: Vec<OwnedFd>, waker: Waker, capacity: impl Into<Capacity>) -> io::Result<Self> {
        let capacity = capacity.into().at_most(SLOT_WATCH_FIRST);
        assert!(listeners.len() <= 65_000, "so many listeners have no numbers");
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(u64::from(SLOT_WAKER));
        epoll::add(&epoll, waker.as_fd(), data, EventFlags::IN)?;
        Ok(Self {
            epoll,
            warmed: Warmed::new(waker.clone()),
            waker,
            listeners: listeners.into_iter().map(Listener::new).collect::<io::Result<_>>()?,
            turn: 0,
            accept_due: false,
            learns_peers: false,
            peer: None,
            table: Table::new(capacity),
            watches: Watches::default(),
            flights: Flights::default(),
            reports: VecDeque::new(),
            ready: VecDeque::new(),
            ready_next: Vec::new(),
            unwatched: Vec::new(),
            retries: Retries::default(),
            events: Vec::with_capacity(EVENTS_MAX),
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            buffer_lent: false,
        })
    }
}

impl Io for Epoll {
    fn capacity(&self) -> Capacity {
        self.table.capacity()
    }

    fn accept(&mut self, listener: u16) {
        let data = EventData::new_u64(u64::from(SLOT_LISTENER_FIRST + u32::from(listener)));
        if let Err(errno) = self.listeners[usize::from(listener)].watch(&self.epoll, data) {
            self.reports.push_back(Completion::AcceptStopped { listener, errno: errno.raw_os_error() });
        }
    }

    fn refuse(&mut self, listener: u16) {
        self.listeners[usize::from(listener)].unwatch(&self.epoll);
    }

    fn add_listener(&mut self, socket: OwnedFd) -> io::Result<u16> {
        let listener = Listener::new(socket)?;
        let free = self.listeners.iter().position(Listener::is_gone).unwrap_or(self.listeners.len());
        self.listeners.splice(free..self.listeners.len().min(free + 1), [listener]);
        Ok(free as u16)
    }

    fn drop_syn(&mut self, listener: u16) {
        self.listeners[usize::from(listener)].drop_syn();
    }

    fn drop_listener(&mut self, listener: u16) {
        self.listeners[usize::from(listener)].give_up(&self.epoll);
    }

    fn admit_syn(&mut self, listener: u16) {
        self.listeners[usize::from(listener)].admit_syn();
    }

    fn queue(&self, listener: u16) -> Option<Queue> {
        self.listeners[usize::from(listener)].queue()
    }

    fn learn_peers(&mut self) {
        self.learns_peers = true;
    }

    fn peer_address(&self, slot: Slot) -> Option<SocketAddr> {
        self.peer.filter(|peer| peer.0 == slot).map(|peer| peer.1)
    }

    fn connect(&mut self, target: &Target) -> io::Result<Slot> {
        self.begin_connecting(target)
    }

    fn inspect(&mut self, slot: Slot) {
        self.inspect_now(slot);
    }

    fn receive(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot) {
            connection.set(Connection::RECEIVING);
            // Only once in the same turn: else a peer that always has more, met by an owner that pauses and
            // receives again for every request, would make a turn without end.
            if connection.is(Connection::FRESH) {
                self.enqueue(slot);
            } else {
                self.enqueue_next_turn(slot);
            }
        }
    }

    fn pause(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot) {
            connection.clear(Connection::RECEIVING);
        }
    }

    fn send(&mut self, slot: Slot, outgoing: Box<Outgoing>, last: bool) {
        let connection = self.table.get_mut(slot).expect("send: the slot is closed");
        assert!(connection.flight().is_none(), "send: another one is in flight");
        let flight = self.flights.insert(Flight::new(outgoing, last));
        connection.set_flight(Some(flight));
        self.enqueue(slot);
    }

    fn tune(&mut self, slot: Slot, tuning: Tuning) {
        if let Some(connection) = self.table.get_mut(slot) {
            let (level, name, value) = tuning.option();
            let _ = set_option(connection.socket(), level, name, value);
        }
    }

    fn shutdown(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        if connection.flight().is_some() {
            connection.set(Connection::SHUTDOWN_LATER);
        } else {
            connection.shutdown();
        }
    }

    fn close(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        match connection.flight() {
            Some(_) => {
                connection.clear(Connection::SHUTDOWN_LATER);
                let mut flight = self.take_flight(slot);
                flight.last = true;
                self.finish(slot, flight, Errno::CANCELED.raw_os_error());
            }
            None => self.retire(slot),
        }
    }

    fn input(&self, input: &Input) -> &[u8] {
        &self.buffer[..input.length as usize]
    }

    fn input_mut(&mut self, input: &Input) -> &mut [u8] {
        &mut self.buffer[..input.length as usize]
    }

    fn release(&mut self, input: Input) {
        debug_assert_eq!(input.buffer, 0);
        self.buffer_lent = false;
    }

    fn watch(&mut self, readiness: Readiness) -> io::Result<Watch> {
        match readiness {
            Readiness::Descriptor(descriptor) => {
                let count_max = SLOT_LISTENER_FIRST - SLOT_WATCH_FIRST;
                self.watches.add(&self.epoll, descriptor, SLOT_WATCH_FIRST, count_max)
            }
            Readiness::Flag(_) => Err(Errno::OPNOTSUPP.into()),
        }
    }

    fn watch_room(&mut self, watch: Watch) {
        self.watches.await_room(&self.epoll, watch, SLOT_WATCH_FIRST);
    }

    fn unwatch(&mut self, watch: Watch) {
        self.watches.remove(&self.epoll, watch);
    }

    fn give_back_memory(&mut self) {
        self.flights.shrink();
        self.reports.shrink_to_fit();
        self.ready.shrink_to_fit();
        self.ready_next.shrink_to_fit();
        self.unwatched.shrink_to_fit();
    }

    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.watch_the_unwatched();
        self.ready.extend(self.ready_next.drain(..));
        let busy = self.accept_due || !self.ready.is_empty() || !self.reports.is_empty();
        let timeout = if busy { Some(Duration::ZERO) } else { self.retries.before_next(timeout) };
        self.turn += 1;
        wait(&self.epoll, &mut self.events, timeout)?;
        self.take_events();
        self.retry_expired();
        Ok(())
    }

    fn next_completion(&mut self) -> Option<Completion> {
        assert!(!self.buffer_lent, "next_completion: the last input was not released");
        loop {
            if let Some(report) = self.reports.pop_front() {
                if let Completion::Closed { slot } = report {
                    self.table.free(slot);
                }
                return Some(report);
            }
            if self.accept_due
                && let Some(report) = self.accept_next()
            {
                return Some(report);
            }
            let slot = self.ready.pop_front()?;
            if let Some(report) = self.serve(slot) {
                return Some(report);
            }
        }
    }
}

/// What a turn is made of.
impl Epoll {
    fn take_events(&mut self) {
        for index in 0..self.events.len() {
            let Event { flags, data, .. } = self.events[index];
            let data = data.u64();
            let slot = data as Slot;
            if slot < SLOT_WATCH_FIRST {
                self.mark(slot, (data >> 32) as u32, flags);
            } else if slot < SLOT_LISTENER_FIRST {
                let watch = slot - SLOT_WATCH_FIRST;
                if self.watches.take(&self.epoll, watch, SLOT_WATCH_FIRST, flags) {
                    self.reports.push_back(Completion::Ready { watch });
                }
            } else if slot == SLOT_WAKER {
                self.take_wake_up();
            } else {
                self.accept_due |=
                    self.listeners[(slot - SLOT_LISTENER_FIRST) as usize].begin_turn(self.turn);
            }
        }
    }

    /// Notes at a connection what the kernel said. An event of an earlier user of the slot changes nothing.
    fn mark(&mut self, slot: Slot, generation: u32, flags: EventFlags) {
        let Some(connection) = self.table.get_mut_of(slot, generation) else { return };
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(ending) {
            connection.set(Connection::READABLE | Connection::ENDING);
        } else if flags.contains(EventFlags::IN) {
            connection.set(Connection::READABLE);
        }
        if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
            connection.clear(Connection::WAITS_FOR_ROOM);
            if connection.is(Connection::CONNECTING) {
                self.finish_connecting(slot);
            }
        }
        self.enqueue(slot);
    }

    fn take_wake_up(&mut self) {
        self.waker.drain();
        for Done { token, read } in self.warmed.take() {
            let slot = token as Slot;
            let Some(connection) = self.table.get_mut_of(slot, (token >> 32) as u32) else { continue };
            if connection.is(Connection::WAITS_FOR_DISK)
                && let Some(flight) = connection.flight()
            {
                connection.clear(Connection::WAITS_FOR_DISK);
                self.flights.get_mut(flight).note_warmed(read);
                self.enqueue(slot);
            }
        }
        self.reports.push_back(Completion::Woken);
    }

    /// Puts a connection on the list of this turn, if it has something to do and is not there yet.
    fn enqueue(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot)
            && connection.has_work()
            && !connection.is(Connection::ENQUEUED)
        {
            connection.set(Connection::ENQUEUED);
            self.ready.push_back(slot);
        }
    }

    fn enqueue_next_turn(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot)
            && connection.has_work()
            && !connection.is(Connection::ENQUEUED)
        {
            connection.set(Connection::ENQUEUED);
            self.ready_next.push(slot);
        }
    }

    fn accept_next(&mut self) -> Option<Completion> {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            let number = index as u16;
            match listener.accept(&self.epoll, self.table.is_full_of_accepted(), self.learns_peers) {
                Accept::New(socket, peer) => {
                    let slot = self.table.insert_accepted(socket);
                    self.peer = peer.map(|peer| (slot, peer));
                    return Some(Completion::Accepted { listener: number, slot });
                }
                Accept::Stopped(errno) => {
                    let errno = errno.raw_os_error();
                    return Some(Completion::AcceptStopped { listener: number, errno });
                }
                Accept::Nothing => {}
            }
        }
        self.accept_due = false;
        None
    }

    /// Does one thing for a connection: goes on with its send, or receives.
    fn serve(&mut self, slot: Slot) -> Option<Completion> {
        let connection = self.table.get_mut(slot)?;
        connection.clear(Connection::ENQUEUED);
        let receives_next = connection.may_receive() && connection.is(Connection::SENT_FOR);
        let report = if connection.may_send() && !receives_next {
            connection.set(Connection::SENT_FOR);
            self.go_on_sending(slot)
        } else if connection.may_receive() {
            connection.clear(Connection::SENT_FOR | Connection::FRESH);
            self.receive_now(slot)
        } else {
            None
        };
        self.enqueue_next_turn(slot);
        report
    }
}

/// Receiving.
impl Epoll {
    fn receive_now(&mut self, slot: Slot) -> Option<Completion> {
        let connection = self.table.get_mut(slot)?;
        if connection.is(Connection::UNWATCHABLE) {
            connection.clear(Connection::RECEIVING);
            return Some(Completion::Ended { slot, errno: Errno::NOMEM.raw_os_error() });
        }
        match rustix::net::recv(connection.socket(), &mut *self.buffer, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                connection.clear(Connection::RECEIVING);
                Some(Completion::Ended { slot, errno: 0 })
            }
            Ok((_, length)) => {
                if length < self.buffer.len() && !connection.is(Connection::ENDING) {
                    connection.clear(Connection::READABLE);
                }
                self.watch_later(slot);
                self.buffer_lent = true;
                Some(Completion::Received { slot, input: Input { buffer: 0, length: length as u32 } })
            }
            Err(Errno::AGAIN) => {
                connection.clear(Connection::READABLE);
                self.watch_later(slot);
                None
            }
            Err(Errno::INTR) => None,
            Err(errno) => {
                connection.clear(Connection::RECEIVING);
                Some(Completion::Ended { slot, errno: errno.raw_os_error() })
            }
        }
    }

    fn watch_later(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot)
            && !connection.is(Connection::WATCHED)
        {
            self.unwatched.push((slot, connection.generation()));
        }
    }

    fn watch_the_unwatched(&mut self) {
        while let Some((slot, generation)) = self.unwatched.pop() {
            let Some(connection) = self.table.get_mut_of(slot, generation) else { continue };
            if connection.is(Connection::WATCHED) {
                continue;
            }
            if watch(&self.epoll, slot, connection).is_err() {
                connection.set(Connection::UNWATCHABLE | Connection::READABLE);
                self.enqueue(slot);
            }
        }
    }
}
