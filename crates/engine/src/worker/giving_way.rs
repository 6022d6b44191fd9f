//! The worker under pressure: what `pressure` tells is done here to connections, listeners and queues.
//!
//! It must never cut off work in flight: only connections between two requests are closed for others.

use staunch_netio::{Io, Slot};
use staunch_protocol::Timeouts;

use super::Worker;
use crate::clients::Arrival;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::{EVICTED_IDLE_MS_MIN, EVICTION_SLOTS_COUNT};
use crate::pressure::Complaints;
use crate::pressure::Pressure;

/// Errors of accept(2) that somebody can do something about.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOBUFS: i32 = 105;

impl<I: Io, H: Handler> Worker<I, H> {
    /// Tells the worker how many share what a [`Pressure`] says, and where to complain.
    pub(crate) fn among(mut self, workers: u16, complaints: Complaints) -> Self {
        self.overload.capacity.set_workers(workers);
        self.overload.complaints = complaints;
        self
    }

    /// From now on it gives way so. Connections that are there stay; those above a new limit are closed as
    /// they become idle and others come.
    pub fn set_pressure(&mut self, pressure: Pressure) {
        self.overload.set_pressure(pressure);
    }

    /// From now on deadlines are so long, those that run already too.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.overload.set_timeouts(timeouts);
        for slot in 0..self.connections.len() {
            self.set_deadline(slot as Slot);
        }
    }

    /// A connection was opened.
    pub(super) fn count_opened(&mut self) {
        self.overload.capacity.count_opened();
        if self.overload.capacity.is_crowded() {
            self.overload.timeouts = self.overload.capacity.timeouts();
            self.evict();
        }
    }

    /// Decides about a new connection by where it comes from.
    #[inline]
    pub(super) fn is_welcome(&mut self, slot: Slot) -> bool {
        if self.clients.is_none() {
            return true;
        }
        let peer = self.io.peer_address(slot);
        let is_walled = self.secured.is_walled(slot);
        let (connection, mut turn, _) = self.lend(slot);
        let Some(clients) = &mut turn.context.clients else { return true };
        match clients.arrive(slot, peer, turn.now_ms, turn.context.stats) {
            Arrival::Welcome => return true,
            Arrival::Unintroduced => {
                connection.phase = Phase::Introducing;
                return true;
            }
            Arrival::Stranger => connection.phase = Phase::Ending { linger: false },
            // A handshake would cost more than an answer, and without one nothing can be said.
            Arrival::TooMany if is_walled => connection.phase = Phase::Ending { linger: false },
            Arrival::TooMany => connection.turn_away(&mut turn),
        }
        false
    }

    /// Begins to read from those who came before and whose turn it is now. Their deadlines begin only here.
    /// Returns how long the first of them has waited, in nanoseconds.
    #[inline]
    pub(super) fn attend_newcomers(&mut self) -> u64 {
        self.overload.newcomers.begin_turn();
        let now_ns = self.time.now_ns;
        let mut longest_ns = 0;
        while let Some(newcomer) = self.overload.newcomers.next(self.overload.pace.work_ns()) {
            let connection = &mut self.connections[newcomer.slot as usize];
            let closed = matches!(connection.phase, Phase::Free | Phase::Closing);
            if closed || connection.generation != newcomer.generation {
                continue;
            }
            let waited_ns = now_ns.saturating_sub(newcomer.accepted_ns);
            connection.leave_line(now_ns / 1_000_000, self.overload.pace.is_too_long(waited_ns));
            longest_ns = waited_ns.max(longest_ns);
            self.attend(newcomer.slot);
        }
        longest_ns
    }

    /// Reads from one that was accepted just now, or puts it in line; too much in this turn, and accepting
    /// rests.
    #[inline]
    pub(super) fn welcome(&mut self, slot: Slot) {
        let generation = self.connections[slot as usize].generation;
        if self.overload.newcomers.welcome(slot, generation, self.time.now_ns, self.overload.pace.work_ns()) {
            self.attend(slot);
        } else {
            self.connections[slot as usize].in_line = true;
        }
        self.overload.pace.count_accepted();
        if self.overload.pace.accepted_too_many(self.overload.newcomers.count()) {
            self.pause_accepting();
        }
    }

    /// Something is to be heard of it soon.
    #[inline]
    pub(super) fn attend(&mut self, slot: Slot) {
        self.connections[slot as usize].unheard_since = self.overload.pace.count_listened();
        self.io.receive(slot);
    }

    /// The first bytes of a connection came, or it ended without any: it does not wait any more.
    #[inline]
    pub(super) fn hear(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.unheard_since != 0 {
            self.overload.pace.count_heard(std::mem::take(&mut connection.unheard_since));
        }
    }

    /// A connection is gone: another one may come.
    pub(super) fn count_closed(&mut self) {
        if self.overload.capacity.is_crowded() {
            self.overload.capacity.count_closed();
            self.overload.timeouts = self.overload.capacity.timeouts();
        } else {
            self.overload.capacity.count_closed();
        }
        if self.overload.capacity.has_room() {
            while let Some(listener) = self.listening.resting.take_waiting_for_room() {
                self.io.accept(listener);
            }
        }
    }

    /// Closes the oldest idle one of the next few connections, if there is one. The hand goes around the
    /// table like a clock's, so that each comes under it once a round.
    fn evict(&mut self) {
        let (first, count) = (self.outbox.upstreams().slots(), self.connections.len() as u32);
        let mut oldest: Option<(u64, Slot)> = None;
        for _ in 0..EVICTION_SLOTS_COUNT.min(count) {
            let next = self.overload.hand + 1;
            self.overload.hand = if next < count { next.max(first) } else { first };
            let since_ms = self.connections[self.overload.hand as usize].idle_since_ms();
            oldest = since_ms.map(|ms| (ms, self.overload.hand)).into_iter().chain(oldest).min();
        }
        if let Some((since_ms, slot)) = oldest
            && self.time.now_ms.saturating_sub(since_ms) >= EVICTED_IDLE_MS_MIN
        {
            self.stats.evicted_idle.add(1);
            self.end_connection(slot, "others need the room");
        }
    }

    /// No more in this turn: what was accepted is more work than may wait.
    fn pause_accepting(&mut self) {
        for listener in 0..self.listening.resting.count() {
            if self.listening.resting.pause(listener) {
                self.stats.accept_pauses.add(1);
                self.io.refuse(listener);
            }
        }
    }

    /// Reads the clock within a long turn.
    #[cold]
    pub(super) fn look_at_the_clock(&mut self) {
        let now_ns = self.io.now_ns();
        self.time.now_ms = now_ns / 1_000_000;
        self.outbox.begin_turn(self.time.now_ms);
        self.overload.pace.look(now_ns);
        self.turn_the_valve();
    }

    /// The turn's work is done: how long did it take, and what has piled up meanwhile?
    #[inline]
    pub(super) fn end_turn(&mut self) {
        if self.overload.pace.wants_end()
            && self.overload.pace.end_turn(self.io.now_ns(), self.stats.requests.get())
        {
            self.mailbox.probe();
        }
        self.turn_the_valve();
        if self.overload.pace.may_accept(self.overload.newcomers.count()) {
            while let Some(listener) = self.listening.resting.take_paused() {
                self.io.accept(listener);
            }
        }
    }

    /// Keeps newcomers out, or lets them in again, if it is time to think of that.
    #[inline]
    fn turn_the_valve(&mut self) {
        if self.overload.valve.is_due(self.time.now_ms, self.overload.pace.accepted())
            && self.draining.is_none()
        {
            self.look_at_the_queues();
        }
    }

    #[cold]
    fn look_at_the_queues(&mut self) {
        let queues = self.listening.open.listeners().filter_map(|listener| self.io.queue(listener));
        let accepted = self.overload.newcomers.count() + self.overload.pace.unheard();
        let waiting = queues.map(|queue| queue.waiting).sum::<u32>() + accepted;
        let (worth, is_old) = (
            self.overload.pace.queue_worth(),
            self.overload.pace.is_old(self.overload.newcomers.oldest_ns()),
        );
        match self.overload.valve.look(self.time.now_ms, waiting, worth, is_old) {
            Some(true) => {
                self.stats.newcomers_stopped.add(1);
                self.listening.open.listeners().for_each(|listener| self.io.drop_syn(listener));
            }
            Some(false) => self.listening.open.listeners().for_each(|listener| self.io.admit_syn(listener)),
            None => {}
        }
    }

    /// Accepting on a listener has stopped, and will go on by time or by room.
    pub(super) fn accept_stopped(&mut self, listener: u16, errno: i32) {
        self.stats.accept_stops.add(1);
        let now_ms = self.time.now_ms;
        let for_room = errno == ENFILE && self.overload.capacity.has_none_left();
        self.listening.resting.stop(listener, for_room, now_ms);
        let (open, capacity) = (self.overload.capacity.open(), self.overload.capacity.capacity());
        let worker = self.index;
        self.overload.complaints.say(now_ms, || match errno {
            _ if for_room => format!(
                "worker {worker}: all its {capacity} connections are in use, others wait in the kernel; \
                 raise --max-connections (and ulimit -n if it allows no more)"
            ),
            EMFILE => format!(
                "worker {worker}: no file descriptor is left for a connection (EMFILE, {open} are open); \
                 raise ulimit -n or lower --max-connections"
            ),
            ENFILE => format!(
                "worker {worker}: no place is left for a connection (ENFILE, {open} are open); raise the \
                 host's fs.file-max or lower --max-connections"
            ),
            ENOMEM | ENOBUFS => format!(
                "worker {worker}: the kernel has no memory for a connection (errno {errno}, {open} are \
                 open); raise the memory limit or lower --max-connections"
            ),
            _ => format!(
                "worker {worker}: accepting fails (errno {errno}, {open} are open); it is tried again"
            ),
        });
    }
}
