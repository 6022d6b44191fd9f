//! A lane of one thread: what the network reports goes to the lane whose connection it is.
//!
//! It must never know what a lane does with it: one arm a lane and an event, nothing else.

pub(crate) mod closed;
pub(crate) mod hold;
pub(crate) mod open;
pub(crate) mod slow;

use staunch_netio::{Completion, Io, Slot};

use crate::client::LaneClient;
use crate::connection::ConnectionState;
use crate::dialer::Dialer;
use crate::network_side::NetworkSide;
use closed::Closed;
use hold::Hold;
use open::Open;
use slow::Slow;

pub(crate) enum Lane {
    Closed(Closed),
    Open(Open),
    Slow(Slow),
    Hold(Hold),
}

impl Lane {
    /// Begins what is due. Returns when something is due again.
    #[inline]
    pub(crate) fn due<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        match self {
            Self::Closed(lane) => lane.due(net),
            Self::Open(lane) => lane.due(net),
            Self::Slow(lane) => lane.due(net),
            Self::Hold(lane) => lane.due(net),
        }
    }

    /// Does what can be done before the run begins.
    pub(crate) fn prepare<I: Io>(&mut self, net: &mut NetworkSide<I>) {
        if let Self::Open(lane) = self {
            lane.prepare(net);
        }
    }

    /// Deals with what has happened to one of its connections, the one in that slot.
    #[inline]
    pub(crate) fn handle<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, completion: Completion) {
        match completion {
            Completion::Received { input, .. } => {
                let answers = self.client().received(net, slot, input);
                self.go_on_secured(net, slot);
                self.received(net, slot, answers);
            }
            Completion::Sent { outgoing, errno, .. } => {
                self.client().sent(net, slot, outgoing, errno);
                self.go_on_secured(net, slot);
            }
            Completion::Connected { errno, .. } => self.connected(net, slot, errno),
            Completion::Ended { errno, .. } => self.client().ended(net, slot, errno),
            Completion::Inspected { retransmitted, .. } => {
                self.client().inspected(net, slot, retransmitted);
            }
            Completion::Closed { .. } => {
                net.closed(slot);
                self.gone(net, slot);
            }
            Completion::Progress { .. }
            | Completion::Woken
            | Completion::Ready { .. }
            | Completion::Accepted { .. }
            | Completion::AcceptStopped { .. } => {}
        }
        if let Self::Hold(lane) = self {
            lane.recount(&mut net.connections[slot as usize]);
        }
    }

    /// Begins nothing that was meant to start after this moment.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        match self {
            Self::Closed(lane) => lane.stop(),
            Self::Open(lane) => lane.stop(now_ns),
            Self::Slow(lane) => lane.stop(),
            Self::Hold(lane) => lane.dialer.stop(),
        }
    }

    /// The run is over: what is under way stays unfinished.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        if let Self::Open(lane) = self {
            lane.leave_rest_unsent();
        }
        self.client().finish(now_ns);
    }

    /// Whether nothing is left to be done, when the run was `stopped` or without that. Only an open loop
    /// waits for its answers after the end: they were promised to the schedule.
    pub(crate) fn is_over(&self, stopped: bool) -> bool {
        match self {
            Self::Open(lane) => lane.is_stopped() && lane.client.is_at_rest(),
            Self::Closed(lane) => stopped || lane.is_over(),
            Self::Slow(_) | Self::Hold(_) => stopped,
        }
    }

    /// How many connections are held for their own sake.
    pub(crate) fn held(&self) -> u64 {
        if let Self::Hold(lane) = self { lane.held } else { 0 }
    }

    /// From now on an open loop's rate is so many times what its plan says.
    pub(crate) fn set_factor(&mut self, now_ns: u64, factor: f64) {
        if let Self::Open(lane) = self {
            lane.set_factor(now_ns, factor);
        }
    }

    fn connected<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, errno: i32) {
        let made = self.client().connected(net, slot, errno);
        if net.connections[slot as usize].state != ConnectionState::Securing {
            self.ready(net, slot, made);
        }
    }

    /// A connection whose handshake is over from now on is made like any other.
    #[inline]
    fn go_on_secured<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let is_securing = net.connections[slot as usize].state == ConnectionState::Securing;
        if is_securing && self.client().secured(net, slot) {
            self.ready(net, slot, true);
            self.client().send_records(net, slot);
        }
    }

    /// A connection may be used, or could not be made.
    fn ready<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, made: bool) {
        let was_dialing = std::mem::take(&mut net.connections[slot as usize].dialing);
        if was_dialing && let Some(dialer) = self.dialer() {
            dialer.connected(net.now_ns, made);
        }
        match self {
            Self::Slow(lane) if made => lane.opened(net, slot),
            Self::Open(lane) if made => lane.opened(net, slot),
            _ => {}
        }
    }

    #[inline]
    fn received<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, answers: u32) {
        match self {
            Self::Slow(lane) => lane.received(net, slot, answers),
            _ if answers == 0 => {}
            Self::Closed(lane) => lane.answered(net, slot, answers),
            Self::Open(lane) => lane.answered(net, slot),
            Self::Hold(_) => {}
        }
    }

    fn gone<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let was_dialing = std::mem::take(&mut net.connections[slot as usize].dialing);
        match self {
            Self::Open(lane) => return lane.gone(net),
            Self::Slow(lane) => lane.gone(net),
            Self::Hold(lane) => lane.dialer.lost(net.now_ns),
            Self::Closed(_) => {}
        }
        if let Some(dialer) = self.dialer() {
            dialer.gone(net.now_ns, was_dialing);
        }
    }

    /// What keeps up the number of connections; an open loop has none.
    pub(crate) fn dialer(&mut self) -> Option<&mut Dialer> {
        match self {
            Self::Closed(lane) => Some(&mut lane.dialer),
            Self::Slow(lane) => Some(&mut lane.dialer),
            Self::Hold(lane) => Some(&mut lane.dialer),
            Self::Open(_) => None,
        }
    }

    /// The lane's client, for its counts.
    #[inline]
    pub(crate) fn client(&mut self) -> &mut LaneClient {
        match self {
            Self::Closed(lane) => &mut lane.client,
            Self::Open(lane) => &mut lane.client,
            Self::Slow(lane) => &mut lane.client,
            Self::Hold(lane) => &mut lane.client,
        }
    }
}
