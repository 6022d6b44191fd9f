//! The connections of a worker and what carries their bytes: plain, secured, or to a server behind this one.
//!
//! The transport owns the network backend, the slots, their deadlines, and the account of what they hold:
//! handing over, what follows a send, an end in order and counting are written here once, and what truly
//! differs is one arm of a match over [`Wire`]. It must never ask the handler: where that has to hear
//! something, a value says so, and the worker tells it. Order: [`Transport::hand_over`] and then
//! [`Transport::count`] whenever something of a connection has changed; [`Transport::sent`] for each
//! container that comes back.

mod arriving;
mod counting;
mod deadlines;
mod ending;
mod looking;
mod sealing;
mod sending;
mod upstreams;

use std::sync::Arc;

use staunch_netio::{Io, Slot};
use staunch_protocol::Timeouts;

pub(crate) use self::deadlines::PassedDeadline;
pub(crate) use self::ending::PeerEnd;
pub(crate) use self::sending::{Handed, Sent};
use crate::connection::Connection;
use crate::exchange::outbox::Outbox;
use crate::pressure::Overload;
use crate::secured::Secured;
use crate::spare::Spare;
use crate::stats::{Standing, Stats};
use crate::time::Time;
use crate::timer_wheel::TimerWheel;

/// The carrier of the bytes of a slot, found by the number of the slot and the table of walls, so that no
/// slot needs a byte for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// An accepted connection in plain text.
    Plain,
    /// An accepted connection with a wall: TLS is spoken there.
    Secured,
    /// A connection that the worker has made for its handler; it has a row of its own.
    Upstream,
}

/// The connections of one worker.
pub(crate) struct Transport<I> {
    pub(crate) io: I,
    /// By slot. The first ones stay free where the handler has connections made: those have rows of their
    /// own.
    pub(crate) connections: Vec<Connection>,
    pub(crate) secured: Secured,
    /// With the connections that the handler has made.
    pub(crate) outbox: Outbox,
    pub(crate) deadlines: Deadlines,
    pub(crate) overload: Overload,
    pub(crate) stats: Arc<Stats>,
    pub(crate) time: Time,
    /// Containers that are used again, so that a request allocates none.
    pub(crate) spare: Spare,
}

/// The deadlines of all connections.
pub(crate) struct Deadlines {
    pub(crate) wheel: TimerWheel,
    /// Slots whose node came up, while they are dealt with; kept to be filled again.
    pub(crate) due: Vec<Slot>,
    /// Connections whose send began in this turn, and after the turn those where it is not over: their nodes
    /// in the wheel do not know of it yet.
    pub(crate) sends_begun: Vec<Slot>,
}

impl Deadlines {
    fn new(wheel: TimerWheel) -> Self {
        Self { wheel, due: Vec::new(), sends_begun: Vec::new() }
    }
}

impl<I: Io> Transport<I> {
    pub(crate) fn new(io: I, timeouts: Timeouts, stats: Arc<Stats>) -> Self {
        let capacity = io.capacity();
        let now_ns = io.now_ns();
        let now_ms = now_ns / 1_000_000;
        let slots = capacity.slots() as usize;
        Self {
            io,
            connections: Vec::with_capacity(slots),
            secured: Secured::default(),
            outbox: Outbox::new(capacity.connected),
            deadlines: Deadlines::new(TimerWheel::new(now_ms, slots)),
            overload: Overload::new(capacity.accepted, now_ns, timeouts),
            stats,
            time: Time::new(now_ms),
            spare: Spare::default(),
        }
    }

    /// The wire of a slot.
    #[inline]
    pub(crate) fn wire(&self, slot: Slot) -> Wire {
        if self.outbox.upstreams().own(slot) {
            Wire::Upstream
        } else if self.secured.is_walled(slot) {
            Wire::Secured
        } else {
            Wire::Plain
        }
    }

    /// Reads the clock as a turn begins.
    #[inline]
    pub(crate) fn begin_turn(&mut self) {
        self.time.read(&self.io);
        self.outbox.begin_turn(self.time.now_ms);
        self.overload.pace.begin_turn(self.time.now_ns, self.stats.requests.answered.get());
        self.stats.turns.count.add(1);
    }

    /// Looks at the clock again within a long turn.
    #[cold]
    pub(crate) fn look_at_the_clock(&mut self) {
        let now_ns = self.io.now_ns();
        self.time.now_ms = now_ns / 1_000_000;
        self.outbox.begin_turn(self.time.now_ms);
        self.overload.pace.look(now_ns);
    }

    /// Counts how long each request of this turn took, at most: as long as the turn. And how long it
    /// waited, at most: the turn before, or so long in line.
    pub(crate) fn measure_turn(&mut self, before: Standing, in_line_ns: u64) {
        let Self { io, stats, time, .. } = self;
        let turn_ns = io.now_ns().saturating_sub(time.now_ns);
        let now = stats.requests.standing();
        if now.looked_at > before.looked_at {
            stats.turns.latency.add(turn_ns, now.answered_at_once - before.answered_at_once);
            let age_ns = time.last_turn_ns.max(in_line_ns);
            stats.turns.queue_age.add(age_ns, now.looked_at - before.looked_at);
        }
        time.last_turn_ns = turn_ns;
    }
}
