//! Clients that hold a server up: they send a head or a body byte by byte, or take their answer a little at a
//! time. Each connection is one request; one that ends is replaced.
//!
//! It must never send faster than its plan says.

use std::collections::VecDeque;
use std::sync::Arc;

use staunch_netio::{Io, Slice, Slot};

use crate::client::LaneClient;
use crate::connection::ConnectionState;
use crate::dialer::Dialer;
use crate::network_side::NetworkSide;

/// What is slow about a client.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    /// Sends some bytes at once and then the others one by one, from the start again when they are used up.
    Drip {
        /// Sent when the connection is made.
        at_once: Arc<[u8]>,
        /// Sent one by one.
        slowly: Arc<[u8]>,
        /// How many bytes are sent so; `u64::MAX` has no end.
        length_bytes: u64,
    },
    /// Sends its request at once and takes one buffer of the answer at a time.
    Sip,
}

/// The lane.
pub(crate) struct Slow {
    pub(crate) client: LaneClient,
    pub(crate) dialer: Dialer,
    pace: Pace,
    interval_ns: u64,
    /// When a connection goes on, which one, and when it was begun. In order, as the interval is the same.
    pub(crate) due: VecDeque<(u64, Slot, u64)>,
    stopped: bool,
}

impl Slow {
    pub(crate) fn new(client: LaneClient, connections: u32, interval_ns: u64, pace: Pace) -> Self {
        let dialer = Dialer::new(connections, None);
        // Without a pause at all nothing else would ever have its turn.
        let interval_ns = interval_ns.max(1);
        Self { client, dialer, pace, interval_ns, due: VecDeque::new(), stopped: false }
    }

    /// Begins and goes on with what is due. Returns when something is due again.
    pub(crate) fn due<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        let drips = matches!(self.pace, Pace::Drip { .. });
        let (dial_ns, full) = self.dialer.due(&mut self.client, net, u64::MAX, |client, net, slot| {
            if drips {
                client.expect(net, slot, net.now_ns);
            } else {
                client.ask(net, slot, net.now_ns);
            }
        });
        if full {
            self.client.leave_unsent();
        }
        let expiry_ns = self.client.expire(net);
        while let Some(&(at_ns, slot, begun_ns)) = self.due.front() {
            if at_ns > net.now_ns {
                return expiry_ns.min(dial_ns).min(at_ns);
            }
            self.due.pop_front();
            if is_open(net, slot, begun_ns) {
                self.go_on(net, slot);
            }
        }
        expiry_ns.min(dial_ns)
    }

    /// The connection is made.
    pub(crate) fn opened<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        if let Pace::Drip { at_once, .. } = &self.pace {
            if !at_once.is_empty() {
                let bytes = Arc::clone(at_once);
                self.send(net, slot, bytes, 0, usize::MAX);
            }
            self.go_on_later(net, slot);
        }
    }

    /// Bytes of an answer came; `answers` are whole.
    pub(crate) fn received<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, answers: u32) {
        if net.connections[slot as usize].state != ConnectionState::Open {
            return;
        }
        match &self.pace {
            // An answer to a request that is not even complete: the server has had enough.
            Pace::Drip { .. } if answers > 0 => net.close(slot),
            Pace::Drip { .. } => {}
            Pace::Sip => {
                if answers > 0 && !self.stopped {
                    self.client.ask(net, slot, net.now_ns);
                    self.client.flush(net, slot);
                }
                if !std::mem::replace(&mut net.connections[slot as usize].resting, true) {
                    net.io.pause(slot);
                    self.go_on_later(net, slot);
                }
            }
        }
    }

    /// A connection is gone.
    pub(crate) fn gone<I: Io>(&mut self, net: &NetworkSide<I>) {
        // Entries of connections that have ended are dropped when they are most of the list: a server that
        // closes at once would fill it during a long interval.
        if self.due.len() > 2 * self.dialer.live as usize + 64 {
            self.due.retain(|(_, slot, begun_ns)| is_open(net, *slot, *begun_ns));
        }
    }

    /// Begins nothing more.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.dialer.stop();
        self.due.clear();
    }

    fn go_on<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let Pace::Drip { slowly, length_bytes, .. } = &self.pace else {
            net.connections[slot as usize].resting = false;
            return net.io.receive(slot);
        };
        let connection = &mut net.connections[slot as usize];
        if connection.dripped_bytes >= *length_bytes {
            return;
        }
        // A server that takes nothing is not pressed: the next byte goes when the last was taken.
        if !connection.sending {
            let place = (connection.dripped_bytes % slowly.len() as u64) as usize;
            connection.dripped_bytes += 1;
            let bytes = Arc::clone(slowly);
            self.send(net, slot, bytes, place, place + 1);
        }
        self.go_on_later(net, slot);
    }

    fn go_on_later<I: Io>(&mut self, net: &NetworkSide<I>, slot: Slot) {
        let begun_ns = net.connections[slot as usize].begun_ns;
        self.due.push_back((net.now_ns + self.interval_ns, slot, begun_ns));
    }

    fn send<I: Io>(
        &mut self,
        net: &mut NetworkSide<I>,
        slot: Slot,
        bytes: Arc<[u8]>,
        start: usize,
        end: usize,
    ) {
        let mut outgoing = net.take_spare();
        let end = end.min(bytes.len());
        outgoing.push_shared(Slice { bytes, start, end });
        self.client.send(net, slot, outgoing);
    }
}

/// Whether a slot's connection is the one that was begun then, and open.
fn is_open<I: Io>(net: &NetworkSide<I>, slot: Slot, begun_ns: u64) -> bool {
    let connection = &net.connections[slot as usize];
    connection.state == ConnectionState::Open && connection.begun_ns == begun_ns
}
