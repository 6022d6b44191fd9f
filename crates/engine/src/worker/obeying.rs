//! What a worker does when it is told to: listen elsewhere, give way otherwise, come to its end.
//!
//! It must never close a connection with a request under way before the time for that is over.

use staunch_netio::{Io, Slot};

use super::Worker;
use crate::connection::Phase;
use crate::draining::Draining;
use crate::handler::Handler;
use crate::limits::DRAIN_TURN_MS_MAX;
use crate::order::{Drain, Left, Order};
use crate::upstream::UpstreamLoss;

impl<I: Io, H: Handler> Worker<I, H> {
    pub(super) fn obey(&mut self, order: Order) {
        let now_ms = self.transport.time.now_ms;
        match order {
            Order::Drain(drain, left) => self.begin_draining(drain, left),
            Order::LookAgain => self.listening.look_again(&mut self.transport.io),
            Order::Timeouts(timeouts) => self.set_timeouts(timeouts),
            Order::Pressure(pressure) => self.set_pressure(pressure),
            Order::Clients(policy) => self.set_clients(policy),
            Order::Http2(on) => self.set_http2(on),
            // The other workers still listen there.
            Order::Listen(name, socket) => _ = self.listening.listen(&mut self.transport.io, name, socket),
            Order::Leave { name, at_once } => {
                self.listening.open.leave(&mut self.transport.io, |other| other == name, at_once, now_ms);
            }
            // The receiver may be gone.
            Order::Answer(sender) => _ = sender.send(self.index),
        }
    }

    fn begin_draining(&mut self, drain: Drain, left: Left) {
        let now_ms = self.transport.time.now_ms;
        self.transport.overload.forget_queues();
        self.listening.open.leave(&mut self.transport.io, |_| true, drain.leave_queues, now_ms);
        self.draining = Some(Draining::new(drain, now_ms));
        self.left = Some(left);
        // A client that speaks HTTP/2 hears of it before it is idle, and asks another server.
        for slot in 0..self.transport.connections.len() {
            if self.transport.connections[slot].has_streams() {
                let (connection, mut turn, _) = self.lend(slot as Slot);
                // The session asks the peer to send no more requests.
                connection.converse_http2(&[], &mut turn);
                self.flush(slot as Slot);
            }
        }
    }

    pub(super) fn go_on_draining(&mut self) {
        let now_ms = self.transport.time.now_ms;
        if self.listening.open.are_gone() {
            self.left = None;
        }
        if self.transport.stats.connections.accepted.get() == self.transport.stats.connections.closed.get() {
            self.transport.outbox.upstreams().lose_all(UpstreamLoss::Drained);
        }
        let Some(draining) = &mut self.draining else { return };
        if !draining.is_due(now_ms) {
            return;
        }
        let draining = *draining;
        let over = draining.is_over(now_ms);
        if over {
            self.listening.open.hurry();
        }
        // A client that seems idle may have asked long ago, if the worker has not come to it.
        if !over && self.transport.io.now_ms() - now_ms > DRAIN_TURN_MS_MAX {
            return;
        }
        for slot in 0..self.transport.connections.len() {
            let connection = &self.transport.connections[slot];
            if connection.phase != Phase::Free && draining.ends(connection, now_ms) {
                self.end_connection(slot as Slot, "leaving");
            }
        }
    }
}
