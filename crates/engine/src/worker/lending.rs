//! A connection is lent to its handler here, and what that has said goes on its way.
//!
//! A worker must never lend two connections at once.

use staunch_netio::{Io, Slot};
use staunch_protocol::Deadline;

use super::Worker;
use crate::connection::{Connection, Phase};
use crate::exchange::address::{Address, StreamRef};
use crate::exchange::context::Context;
use crate::exchange::open::Ended;
use crate::exchange::turn::Turn;
use crate::handler::Handler;
use crate::transport::{Handed, Transport};

impl<I: Io, H: Handler> Worker<I, H> {
    /// Lends a connection with what it needs to handle something for one of its exchanges.
    pub(super) fn lend_to(&mut self, address: Address) -> (&mut Connection, Turn<'_, H>, &I) {
        let (connection, mut turn, io) = self.lend(address.slot);
        turn.context.address.stream = address.stream;
        (connection, turn, io)
    }

    /// A connection with what it needs to handle something.
    #[inline]
    pub(super) fn lend(&mut self, slot: Slot) -> (&mut Connection, Turn<'_, H>, &I) {
        let Transport { io, connections, secured, outbox, overload, stats, time, spare, .. } =
            &mut self.transport;
        let mut strain = overload.strain();
        let connection = &mut connections[slot as usize];
        strain.waited = strain.waited.or(connection.waited);
        let address =
            Address { worker: self.index, slot, generation: connection.generation, stream: StreamRef::ONLY };
        let context = Context {
            stats,
            date: &time.date,
            address,
            unix_ms: time.now_ms.wrapping_sub(time.epoch_ms),
            second: time.date_until_ms,
            clients: self.clients.as_deref_mut(),
            guarded: Default::default(),
            outbox,
            secured: Some(&*secured),
        };
        let turn = Turn {
            handler: &mut self.handler,
            spare,
            context,
            now_ms: time.now_ms,
            heads: &mut self.reused.heads,
            rendered: &mut self.reused.rendered,
            http2: Some(&mut self.reused.http2),
            draining: self.draining.is_some(),
            strain,
            written_bytes_max: overload.memory.written_bytes_max(),
            came_ms: overload.pace.came_ms(time.now_ms),
        };
        (connection, turn, &*io)
    }

    /// Hands over what a connection has to send, ends it if it is at its end, sets its deadline, and counts
    /// what it holds.
    #[inline]
    pub(super) fn flush(&mut self, slot: Slot) {
        if self.transport.hand_over(slot) == Handed::Broken {
            self.close(slot);
        }
        self.count(slot);
    }

    /// Something of a connection has changed.
    #[inline]
    pub(super) fn count(&mut self, slot: Slot) {
        self.transport.count(slot);
        self.relieve_if_over();
    }

    /// Closes a connection at once. Its exchanges are told.
    pub(super) fn close(&mut self, slot: Slot) {
        self.break_exchanges(slot);
        self.transport.close(slot);
    }

    /// No exchange of a connection will come to its end.
    pub(super) fn break_exchanges(&mut self, slot: Slot) {
        if self.transport.connections[slot as usize].has_exchanges() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.break_exchanges(Ended::Gone, &mut turn);
        }
    }

    /// A deadline of a connection has passed.
    pub(super) fn give_up_on(&mut self, slot: Slot, deadline: Deadline) {
        self.transport.stats.connections.count_timeout(deadline);
        if self.transport.connections[slot as usize].is_stuck(deadline, self.transport.time.now_ms) {
            return self.close(slot);
        }
        let timeouts = self.transport.overload.timeouts;
        let (connection, mut turn, _) = self.lend(slot);
        connection.time_out(&timeouts, &mut turn);
        self.flush(slot);
    }

    /// The worker ends, or others need the slot: a connection that nothing is being sent on is closed in
    /// order, any other at once.
    pub(super) fn end_connection(&mut self, slot: Slot, why: &'static str) {
        let connection = &self.transport.connections[slot as usize];
        if connection.sending {
            return self.close(slot);
        }
        if connection.has_streams() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.dismiss_http2(why, &mut turn);
            connection.phase = Phase::Ending { linger: false };
            return self.flush(slot);
        }
        let is_at_rest = connection.phase == Phase::Open && !connection.has_exchanges();
        if is_at_rest && self.transport.secured.has_keys(slot) && self.transport.close_records(slot, true) {
            if self.transport.begin_sealed(slot) == Handed::Broken {
                self.close(slot);
            }
            return self.count(slot);
        }
        self.close(slot);
    }
}
