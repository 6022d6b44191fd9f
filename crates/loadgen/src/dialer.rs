//! Keeps up a number of connections: begins new ones for those that ended, not all at once, and not in a rush
//! after a failure.
//!
//! It must never know what the connections are for.

use staunch_netio::{Io, Slot};

use crate::client::LaneClient;
use crate::network_side::NetworkSide;

/// Pause after a connection failed, so that a server that is not there is not asked a million times a second.
const PAUSE_NS: u64 = 10_000_000;

/// How many connections of one lane and thread are being made at a time: a server's queue holds as many.
const CONNECTING_MAX: u32 = 256;

/// The connections of one lane on one thread.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// How many there are to be.
    wanted: u32,
    /// How many there are, those being made and those being closed included.
    pub(crate) live: u32,
    /// How many are being made.
    pub(crate) connecting: u32,
    /// No connection is begun before.
    at_ns: u64,
    /// Time between two begins.
    gap_ns: u64,
}

impl Dialer {
    /// As many connections as wanted, begun at most so many a second.
    pub(crate) fn new(wanted: u32, open_per_s: Option<f64>) -> Self {
        let gap_ns = open_per_s.map_or(0, |rate| (1e9 / rate.max(1e-3)) as u64);
        Self { wanted, live: 0, connecting: 0, at_ns: 0, gap_ns }
    }

    /// Begins what is due, at most so many, and tells of each. Returns when something is due again, and
    /// whether one could not be begun for want of room.
    pub(crate) fn due<I: Io>(
        &mut self,
        client: &mut LaneClient,
        net: &mut NetworkSide<I>,
        mut dials_max: u64,
        mut begun: impl FnMut(&mut LaneClient, &mut NetworkSide<I>, Slot),
    ) -> (u64, bool) {
        while self.live < self.wanted && self.connecting < CONNECTING_MAX && dials_max > 0 {
            dials_max -= 1;
            if self.at_ns > net.now_ns {
                return (self.at_ns, false);
            }
            self.at_ns = self.at_ns.max(net.now_ns.saturating_sub(PAUSE_NS)) + self.gap_ns;
            match client.dial(net) {
                Ok(slot) => {
                    self.live += 1;
                    self.connecting += 1;
                    begun(client, net, slot);
                }
                Err(_) => {
                    self.at_ns = net.now_ns + PAUSE_NS;
                    return (self.at_ns, true);
                }
            }
        }
        (u64::MAX, false)
    }

    /// A connection is made, or could not be.
    pub(crate) fn connected(&mut self, now_ns: u64, made: bool) {
        self.connecting = self.connecting.saturating_sub(1);
        if !made {
            self.at_ns = now_ns + PAUSE_NS;
        }
    }

    /// A connection that was to stay is being lost: a server that is full is not asked again at once. Others
    /// that are lost meanwhile do not lengthen the pause.
    pub(crate) fn lost(&mut self, now_ns: u64) {
        if self.at_ns <= now_ns {
            self.at_ns = now_ns + PAUSE_NS;
        }
    }

    /// A connection is gone; it had been given up before it was made if so told.
    pub(crate) fn gone(&mut self, now_ns: u64, was_connecting: bool) {
        self.live -= 1;
        if was_connecting {
            self.connected(now_ns, false);
        }
    }

    /// Begins nothing more.
    pub(crate) fn stop(&mut self) {
        self.wanted = 0;
    }
}
