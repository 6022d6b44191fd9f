//! Overload of one worker: what there is too much of, and what follows from it.
//!
//! It owns the counts and the decisions: connections (`capacity`), memory (`memory`), time (`pace`,
//! `newcomers`), the kernel's queue (`valve`), and the operator's notices (`complaint`). `connection_limit`
//! and `memory_budget` derive the bounds once, at the start. It must never touch a connection or the network:
//! the worker does (`worker/giving_way.rs`, `worker/holding.rs`), as it is told here.

mod capacity;
mod complaint;
mod connection_limit;
mod memory;
mod memory_budget;
mod newcomers;
mod pace;
mod valve;

use staunch_netio::Slot;
use staunch_protocol::Timeouts;

use self::capacity::Capacity;
pub use self::capacity::Pressure;
pub(crate) use self::complaint::Complaints;
pub use self::complaint::notice_on_standard_error;
pub(crate) use self::connection_limit::{HostResources, connection_limit};
use self::memory::Account;
pub(crate) use self::memory_budget::{Memory, memory_budget};
use self::newcomers::Newcomers;
use self::pace::Pace;
pub(crate) use self::pace::Waited;
use self::valve::Valve;

/// Everything a worker knows about its own overload.
pub(crate) struct Overload {
    pub(crate) capacity: Capacity,
    pub(crate) memory: Account,
    pub(crate) pace: Pace,
    pub(crate) newcomers: Newcomers,
    pub(crate) valve: Valve,
    pub(crate) complaints: Complaints,
    /// The deadlines in force: under pressure shorter than the configured ones.
    pub(crate) timeouts: Timeouts,
    /// The slot at which the last search for an idle connection to close ended.
    pub(crate) hand: Slot,
}

/// What requests have to suffer for at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strain {
    /// How long requests have waited before they are looked at.
    pub(crate) waited: Waited,
    /// Only reserved slots are left: connections are to end with the next answer.
    pub(crate) full: bool,
}

impl Overload {
    /// A worker with room for `capacity` connections that gives way to nothing yet.
    pub(crate) fn new(capacity: u32, now_ns: u64, timeouts: Timeouts) -> Self {
        Self {
            capacity: Capacity::new(capacity, timeouts),
            memory: Account::new(),
            pace: Pace::new(now_ns),
            newcomers: Newcomers::default(),
            valve: Valve::default(),
            complaints: Complaints::silent(),
            timeouts,
            hand: 0,
        }
    }

    /// Another way to give way from now on.
    pub(crate) fn set_pressure(&mut self, pressure: Pressure) {
        self.capacity.set_pressure(pressure);
        self.pace.set_patience(pressure.patience_ms);
        self.timeouts = self.capacity.timeouts();
    }

    /// Other deadlines from now on.
    pub(crate) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.capacity.set_timeouts(timeouts);
        self.timeouts = self.capacity.timeouts();
    }

    /// A connection was accepted. Whether another one should go for it.
    pub(crate) fn count_opened(&mut self) -> bool {
        self.capacity.count_opened();
        let is_crowded = self.capacity.is_crowded();
        if is_crowded {
            self.timeouts = self.capacity.timeouts();
        }
        is_crowded
    }

    /// A connection is gone.
    pub(crate) fn count_closed(&mut self) {
        let was_crowded = self.capacity.is_crowded();
        self.capacity.count_closed();
        if was_crowded {
            self.timeouts = self.capacity.timeouts();
        }
    }

    #[inline]
    pub(crate) fn strain(&self) -> Strain {
        Strain { waited: self.pace.waited(), full: self.capacity.is_full() }
    }

    /// The kernel's queues need no watching any more.
    pub(crate) fn forget_queues(&mut self) {
        self.valve = Valve::default();
    }
}
