//! The part of a client that is TLS: handshakes, records, and what is lost by a fault of either.
//!
//! It must never be on the way of a plain connection: without TLS nothing here is called but `send_records`,
//! which is one comparison then. Order of calls: `begin_handshake`, `received_sealed` and `secured` until
//! that says so, then `received_sealed`.

use staunch_netio::{Input, Io, Slot};

use super::LaneClient;
use crate::connection::ConnectionState;
use crate::end::End;
use crate::network_side::NetworkSide;
use crate::secured::ClientWall;

/// Memory kept for what records held: four of the longest.
const OPENED_BYTES_KEPT: usize = 64 * 1024;

impl LaneClient {
    /// Begins a handshake. Returns whether it could be begun.
    #[cold]
    pub(super) fn begin_handshake<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) -> bool {
        let Some(tls) = &self.tls else { return false };
        let wall = ClientWall::new(tls, net.now_ns);
        let connection = &mut net.connections[slot as usize];
        connection.state = ConnectionState::Securing;
        match wall {
            Ok(wall) => {
                connection.wall = Some(Box::new(wall));
                self.send_records(net, slot);
                true
            }
            Err(reason) => {
                self.lose(net, slot, &reason, End::Failed);
                false
            }
        }
    }

    /// Sends what TLS itself has to say, unless a send is under way. The last of a handshake waits for
    /// [`LaneClient::secured`], so that it goes out together with the first request.
    #[inline]
    pub(crate) fn send_records<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let connection = &net.connections[slot as usize];
        let Some(wall) = &connection.wall else { return };
        let may_speak = match connection.state {
            ConnectionState::Securing => wall.is_handshaking(),
            ConnectionState::Open => true,
            _ => false,
        };
        if may_speak && !connection.sending && wall.wants_to_send() {
            let outgoing = net.take_spare();
            self.send(net, slot, outgoing);
        }
    }

    /// Makes the connection one that requests may be sent on, once its handshake is over and no send is under
    /// way. Returns whether it has become one now; then [`LaneClient::send_records`] is still to be called,
    /// for the last of the handshake where no request took it along.
    pub(crate) fn secured<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) -> bool {
        let connection = &mut net.connections[slot as usize];
        if connection.state != ConnectionState::Securing || connection.sending {
            return false;
        }
        let Some(agreement) = connection.wall.as_ref().and_then(|wall| wall.agreement()) else {
            return false;
        };
        connection.state = ConnectionState::Open;
        self.tally.counts.handshakes += 1;
        self.tally.counts.handshakes_resumed += u64::from(agreement.resumed);
        self.tally.times.handshake.record(net.now_ns.saturating_sub(agreement.began_ns));
        self.tally.tls.count_suite(agreement.suite);
        self.flush(net, slot);
        true
    }

    /// Opens what came. Returns how many requests it answered.
    pub(super) fn received_sealed<I: Io>(
        &mut self,
        net: &mut NetworkSide<I>,
        slot: Slot,
        input: Input,
    ) -> u32 {
        let connection = &mut net.connections[slot as usize];
        let (true, Some(wall)) = (connection.is_alive(), &mut connection.wall) else {
            net.io.release(input);
            return 0;
        };
        let mut plain = std::mem::take(&mut self.opened);
        let opened = wall.open(net.io.input(&input), &mut plain);
        let ended = wall.has_ended();
        net.io.release(input);
        let answers = if plain.is_empty() {
            0
        } else {
            let reading = self.read(connection, &plain, net.now_ns);
            self.go_on(net, slot, reading)
        };
        plain.clear();
        plain.shrink_to(OPENED_BYTES_KEPT);
        self.opened = plain;
        match opened {
            _ if !net.connections[slot as usize].is_alive() => {}
            Err(reason) => self.lose(net, slot, &reason, End::Failed),
            Ok(()) if ended => self.ended(net, slot, 0),
            Ok(()) => self.send_records(net, slot),
        }
        answers
    }

    /// Gives a connection up for a fault of TLS.
    #[cold]
    pub(super) fn lose<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, reason: &str, end: End) {
        let in_handshake = net.connections[slot as usize].state == ConnectionState::Securing;
        self.tally.counts.handshakes_failed += u64::from(in_handshake);
        self.tally.tls.count_faults(reason, 1);
        self.give_up(net, slot, end);
    }
}
