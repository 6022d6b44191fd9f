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
use crate::transport::Transport;

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

    /// Closes the oldest idle one of the next few connections, if there is one. The hand goes around the
    /// table like a clock's, so that each comes under it once a round.
    pub(super) fn evict(&mut self) {
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

    /// The turn's work is done: how long did it take, and what has piled up meanwhile?
    #[inline]
    pub(super) fn end_turn(&mut self) {
        let Transport { io, overload, stats, .. } = &mut self.transport;
        if overload.pace.wants_end() && overload.pace.end_turn(io.now_ns(), stats.requests.answered.get()) {
            self.mailbox.probe();
        }
        self.look_at_the_valve();
        self.listening.go_on_paused(&mut self.transport);
    }

    /// Newcomers are kept out where too much waits; not by a worker that comes to its end.
    #[inline]
    pub(super) fn look_at_the_valve(&mut self) {
        if self.draining.is_none() {
            self.listening.turn_the_valve(&mut self.transport);
        }
    }
}
