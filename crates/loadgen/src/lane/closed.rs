//! The closed loop: so many clients, each of which asks again when it has its answer. The server sets the
//! pace.
//!
//! It must never be read as what a crowd does: a crowd does not slow down with the server.

use staunch_netio::{Io, Slot};

use crate::client::LaneClient;
use crate::dialer::Dialer;
use crate::network_side::NetworkSide;

/// The lane.
pub(crate) struct Closed {
    pub(crate) client: LaneClient,
    pub(crate) dialer: Dialer,
    pipeline: u32,
    requests_max: u32,
    /// How many requests may still be begun.
    left: u64,
    stopped: bool,
}

/// What a closed loop is to do.
pub(crate) struct ClosedPlan {
    /// How many connections.
    pub(crate) connections: u32,
    /// How many requests are under way on each.
    pub(crate) pipeline: u32,
    /// How many a connection carries at most.
    pub(crate) requests_per_connection: Option<u32>,
    /// How many there are to be.
    pub(crate) requests: Option<u64>,
}

impl ClosedPlan {
    /// Over at once: the part of a thread that has none in a lane.
    pub(crate) const NOTHING: Self =
        Self { connections: 0, pipeline: 1, requests_per_connection: None, requests: Some(0) };
}

impl Closed {
    pub(crate) fn new(client: LaneClient, plan: &ClosedPlan) -> Self {
        let requests_max = plan.requests_per_connection.unwrap_or(u32::MAX).max(1);
        Self {
            client,
            dialer: Dialer::new(plan.connections, None),
            pipeline: plan.pipeline.clamp(1, requests_max),
            requests_max,
            left: plan.requests.unwrap_or(u64::MAX),
            stopped: false,
        }
    }

    /// Begins what is due. Returns when something is due again.
    pub(crate) fn due<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        let (pipeline, left) = (u64::from(self.pipeline), &mut self.left);
        let dials_max = left.div_ceil(pipeline);
        let (dial_ns, full) = self.dialer.due(&mut self.client, net, dials_max, |client, net, slot| {
            for _ in 0..pipeline.min(*left) {
                *left -= 1;
                client.ask(net, slot, net.now_ns);
            }
        });
        if full && self.left > 0 {
            self.left -= 1;
            self.client.leave_unsent();
        }
        // At last, so that what was just begun is waited for no longer than it may be.
        self.client.expire(net).min(dial_ns)
    }

    /// Requests of a connection were answered.
    #[inline]
    pub(crate) fn answered<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, answers: u32) {
        let connection = &net.connections[slot as usize];
        if self.stopped || !connection.is_alive() {
            return;
        }
        let may_ask = u64::from(answers.min(self.requests_max - connection.asked)).min(self.left);
        self.left -= may_ask;
        for _ in 0..may_ask {
            self.client.ask(net, slot, net.now_ns);
        }
        self.client.flush(net, slot);
        if net.connections[slot as usize].flights.is_empty() {
            net.close(slot);
        }
    }

    /// Whether all its requests are answered or given up, when it has an end.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 && self.client.is_at_rest()
    }

    /// Begins nothing more.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.dialer.stop();
    }
}
