//! The open loop: requests start when the schedule says so, whatever the server does, as those of a crowd do.
//!
//! Rule 1: nothing waits for a free slot. What cannot be begun is counted as unsent, which is the generator's
//! fault and said loudly. Rule 2: time is counted from the intended start.

use staunch_netio::{Io, Slot};

use crate::client::LaneClient;
use crate::network_side::NetworkSide;
use crate::plan::SlotPlan;
use crate::schedule::Schedule;

/// How many requests are begun in one turn, so that answers are not left waiting when the schedule is behind.
const STARTS_MAX: u32 = 256;

/// How many connections are being made at a time before the schedule begins.
const PREPARING_MAX: u32 = 64;

/// What an open loop is to do.
pub(crate) struct OpenPlan {
    /// When requests start.
    pub(crate) schedule: Schedule,
    /// What they travel on.
    pub(crate) slots: SlotPlan,
    /// How many kept connections are made before.
    pub(crate) prepared: u32,
}

/// The lane.
pub(crate) struct Open {
    pub(crate) client: LaneClient,
    schedule: Schedule,
    slots: SlotPlan,
    /// When the lane began; the schedule counts from there.
    began_ns: u64,
    /// The next intended start; `None` when there is none, as far as is known now.
    next_ns: Option<u64>,
    /// Nothing is planned to start from here on.
    end_ns: u64,
    /// Nothing starts from here on, once the lane was stopped.
    until_ns: u64,
    /// How many connections are still to be begun before the schedule begins.
    to_prepare: u32,
    /// Connections begun and not gone.
    pub(crate) live: u32,
    /// Kept connections without a request, with the moment they were begun, which tells them from later users
    /// of the slot.
    pub(crate) idle: Vec<(Slot, u64)>,
}

impl Open {
    pub(crate) fn new(client: LaneClient, plan: OpenPlan, began_ns: u64, end_ns: u64) -> Self {
        let mut lane = Self {
            client,
            schedule: plan.schedule,
            slots: plan.slots,
            to_prepare: plan.prepared,
            began_ns,
            next_ns: None,
            end_ns,
            until_ns: u64::MAX,
            live: 0,
            idle: Vec::new(),
        };
        lane.look();
        lane
    }

    /// Begins kept connections before the schedule begins: a crowd on kept connections is connected already,
    /// and making them all in the first moments would be a load that nobody asked for.
    pub(crate) fn prepare<I: Io>(&mut self, net: &mut NetworkSide<I>) {
        while self.to_prepare > 0 && self.live - (self.idle.len() as u32).min(self.live) < PREPARING_MAX {
            self.to_prepare -= 1;
            if self.client.dial(net).is_err() {
                return;
            }
            self.live += 1;
        }
    }

    /// A connection is made. One that no request waits for is idle.
    pub(crate) fn opened<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let connection = &net.connections[slot as usize];
        if connection.flights.is_empty() {
            self.idle.push((slot, connection.begun_ns));
        }
    }

    /// Begins what is due. Returns when something is due again.
    pub(crate) fn due<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        for _ in 0..STARTS_MAX {
            match self.start_ns() {
                Some(at_ns) if at_ns <= net.now_ns => {
                    self.take();
                    self.begin(net, at_ns);
                    net.now_ns = net.io.now_ns();
                }
                // Patience is looked at after the starts, so that what was just begun is waited for no longer
                // than it may be.
                start_ns => return self.client.expire(net).min(start_ns.unwrap_or(u64::MAX)),
            }
        }
        self.client.expire(net);
        net.now_ns
    }

    /// Requests of a connection were answered.
    #[inline]
    pub(crate) fn answered<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let connection = &net.connections[slot as usize];
        if !connection.is_alive() || !connection.flights.is_empty() {
            return;
        }
        match self.slots {
            SlotPlan::PerRequest => self.client.leave(net, slot),
            SlotPlan::Kept { .. } => self.idle.push((slot, connection.begun_ns)),
        }
    }

    /// A connection is gone.
    pub(crate) fn gone<I: Io>(&mut self, net: &NetworkSide<I>) {
        self.live -= 1;
        // Entries of connections that ended while idle are dropped when they are most of the list.
        if self.idle.len() > 2 * self.live as usize + 64 {
            self.idle.retain(|entry| is_idle(net, *entry));
        }
    }

    /// Begins nothing that was meant to start after this moment.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        self.until_ns = self.until_ns.min(now_ns);
    }

    /// Whether nothing will start any more. A rate of zero may be changed again, a trace has an end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.start_ns().is_none() && (self.until_ns < u64::MAX || self.schedule.is_over())
    }

    /// What was to start and did not, because there was no time left: the generator's fault.
    pub(crate) fn leave_rest_unsent(&mut self) {
        while self.start_ns().is_some() {
            self.take();
            self.client.leave_unsent();
        }
    }

    /// From now on the rate is so many times what the plan says.
    pub(crate) fn set_factor(&mut self, now_ns: u64, factor: f64) {
        self.schedule.set_factor(now_ns.saturating_sub(self.began_ns), factor);
        self.look();
    }

    /// The next intended start, unless the lane is stopped before.
    fn start_ns(&self) -> Option<u64> {
        self.next_ns.filter(|at_ns| *at_ns < self.until_ns.min(self.end_ns))
    }

    fn take(&mut self) {
        let _ = self.schedule.next_ns();
        self.look();
    }

    /// The next start is not taken before it is due, because a change of rate moves it.
    fn look(&mut self) {
        self.next_ns = self.schedule.peek_ns().map(|at| self.began_ns.saturating_add(at));
    }

    fn begin<I: Io>(&mut self, net: &mut NetworkSide<I>, intended_ns: u64) {
        if !self.client.has_patience(intended_ns, net.now_ns) {
            return self.client.leave_unsent();
        }
        if let Some(slot) = self.take_idle(net) {
            self.client.ask(net, slot, intended_ns);
            return self.client.flush(net, slot);
        }
        let full = matches!(self.slots, SlotPlan::Kept { connections_max } if self.live >= connections_max);
        match if full { Err(0) } else { self.client.dial(net) } {
            Ok(slot) => {
                self.live += 1;
                self.client.ask(net, slot, intended_ns);
            }
            Err(_) => self.client.leave_unsent(),
        }
    }

    fn take_idle<I: Io>(&mut self, net: &NetworkSide<I>) -> Option<Slot> {
        while let Some(entry) = self.idle.pop() {
            if is_idle(net, entry) {
                return Some(entry.0);
            }
        }
        None
    }
}

fn is_idle<I: Io>(net: &NetworkSide<I>, (slot, begun_ns): (Slot, u64)) -> bool {
    let connection = &net.connections[slot as usize];
    connection.begun_ns == begun_ns && connection.is_alive() && connection.flights.is_empty()
}
