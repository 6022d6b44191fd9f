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
use crate::pressure::Pressure;

/// Errors of accept(2) that somebody can do something about.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOBUFS: i32 = 105;

impl<I: Io, H: Handler> Worker<I, H> {
    /// From now on it gives way so. Connections that are there stay; those above a new limit are closed as
    /// they become idle and others come.
    pub fn set_pressure(&mut self, pressure: Pressure) {
        self.transport.overload.set_pressure(pressure);
    }

    /// From now on deadlines are so long, those that run already too.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.transport.overload.set_timeouts(timeouts);
        for slot in 0..self.transport.connections.len() {
            self.transport.set_deadline(slot as Slot);
        }
    }

    /// A connection was accepted in this slot.
    pub(super) fn count_opened(&mut self, slot: Slot) {
        self.transport.overload.capacity.count_opened();
        if self.transport.overload.capacity.is_crowded() {
            self.transport.overload.timeouts = self.transport.overload.capacity.timeouts();
            self.evict();
        }
        self.transport.open(slot);
    }

    /// Decides about a new connection by where it comes from.
    #[inline]
    pub(super) fn is_welcome(&mut self, slot: Slot) -> bool {
        if self.clients.is_none() {
            return true;
        }
        let peer = self.transport.io.peer_address(slot);
        let is_walled = self.transport.secured.is_walled(slot);
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

    /// A connection is gone: another one may come.
    pub(super) fn count_closed(&mut self) {
        if self.transport.overload.capacity.is_crowded() {
            self.transport.overload.capacity.count_closed();
            self.transport.overload.timeouts = self.transport.overload.capacity.timeouts();
        } else {
            self.transport.overload.capacity.count_closed();
        }
        if self.transport.overload.capacity.has_room() {
            while let Some(listener) = self.listening.resting.take_waiting_for_room() {
                self.transport.io.accept(listener);
            }
        }
    }

    /// Closes the oldest idle one of the next few connections, if there is one. The hand goes around the
    /// table like a clock's, so that each comes under it once a round.
    fn evict(&mut self) {
        let (first, count) =
            (self.transport.outbox.upstreams().slots(), self.transport.connections.len() as u32);
        let mut oldest: Option<(u64, Slot)> = None;
        for _ in 0..EVICTION_SLOTS_COUNT.min(count) {
            let next = self.transport.overload.hand + 1;
            self.transport.overload.hand = if next < count { next.max(first) } else { first };
            let since_ms = self.transport.connections[self.transport.overload.hand as usize].idle_since_ms();
            oldest = since_ms.map(|ms| (ms, self.transport.overload.hand)).into_iter().chain(oldest).min();
        }
        if let Some((since_ms, slot)) = oldest
            && self.transport.time.now_ms.saturating_sub(since_ms) >= EVICTED_IDLE_MS_MIN
        {
            self.transport.stats.pressure.evicted_idle.add(1);
            self.end_connection(slot, "others need the room");
        }
    }

    /// Reads the clock within a long turn.
    #[cold]
    pub(super) fn look_at_the_clock(&mut self) {
        self.transport.look_at_the_clock();
        self.turn_the_valve();
    }

    /// The turn's work is done: how long did it take, and what has piled up meanwhile?
    #[inline]
    pub(super) fn end_turn(&mut self) {
        if self.transport.overload.pace.wants_end()
            && self
                .transport
                .overload
                .pace
                .end_turn(self.transport.io.now_ns(), self.transport.stats.requests.answered.get())
        {
            self.mailbox.probe();
        }
        self.turn_the_valve();
        if self.transport.overload.pace.may_accept(self.transport.overload.newcomers.count()) {
            while let Some(listener) = self.listening.resting.take_paused() {
                self.transport.io.accept(listener);
            }
        }
    }

    /// Keeps newcomers out, or lets them in again, if it is time to think of that.
    #[inline]
    fn turn_the_valve(&mut self) {
        if self
            .transport
            .overload
            .valve
            .is_due(self.transport.time.now_ms, self.transport.overload.pace.accepted())
            && self.draining.is_none()
        {
            self.look_at_the_queues();
        }
    }

    #[cold]
    fn look_at_the_queues(&mut self) {
        let accepted = self.transport.overload.newcomers.count() + self.transport.overload.pace.unheard();
        let waiting = self.listening.open.waiting(&self.transport.io) + accepted;
        let (worth, is_old) = (
            self.transport.overload.pace.queue_worth(),
            self.transport.overload.pace.is_old(self.transport.overload.newcomers.oldest_ns()),
        );
        let verdict = self.transport.overload.valve.look(self.transport.time.now_ms, waiting, worth, is_old);
        if let Some(keeps_out) = verdict {
            self.transport.stats.pressure.newcomers_stopped.add(u64::from(keeps_out));
            self.listening.open.keep_out(&mut self.transport.io, keeps_out);
        }
    }

    /// Accepting on a listener has stopped, and will go on by time or by room.
    pub(super) fn accept_stopped(&mut self, listener: u16, errno: i32) {
        self.transport.stats.pressure.accept_stops.add(1);
        let now_ms = self.transport.time.now_ms;
        let for_room = errno == ENFILE && self.transport.overload.capacity.has_none_left();
        self.listening.resting.stop(listener, for_room, now_ms);
        let (open, capacity) =
            (self.transport.overload.capacity.open(), self.transport.overload.capacity.capacity());
        let worker = self.index;
        self.transport.overload.complaints.say(now_ms, || match errno {
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
