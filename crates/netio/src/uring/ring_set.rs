//! The rings of one worker: how many there are, which slot is in which, and which has work.
//!
//! The set must never look into an operation of a connection.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::opcode;
use io_uring::types::{Fd, Fixed, Timespec};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::features::Features;
use super::placement::Placement;
use super::ring::{Ring, RingLimits};
use super::token::{Operation, pack};
use crate::{Capacity, Slot};

/// Sizes that are chosen by the machine unless a test wants others.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Direct descriptors a ring, at most RLIMIT_NOFILE.
    pub ring_capacity: u32,
    /// Receive buffers a ring at most; a power of two up to 32768.
    pub buffers_max: u16,
    /// After this long receive buffers that are not needed any more are given back.
    pub burst: Duration,
}

/// How far the look at a burst has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Burst {
    /// The rings have the buffers they had at first.
    None,
    /// Buffers were added in this turn; the timer is armed.
    Fresh,
    /// How much is needed at once is measured until the timer is over.
    Measured,
    /// The timer is over.
    Over,
}

/// The rings, what they are made by, and the receive buffers that bursts have added.
pub(crate) struct RingSet {
    /// The first one is waited in; it watches the others.
    pub(crate) all: Vec<Ring>,
    /// Signalled when a ring other than the first has work.
    pub(crate) event: Option<OwnedFd>,
    /// Rings that have work.
    pub(crate) ready: VecDeque<usize>,
    pub(crate) placement: Placement,
    pub(crate) features: Features,
    pub(crate) limits: Limits,
    /// Whether receive buffers are to be given back.
    pub(crate) burst: Burst,
    pub(crate) burst_timer: Box<Timespec>,
}

impl RingSet {
    pub(super) fn new(capacity: Capacity, features: &Features, limits: Limits) -> Self {
        Self {
            all: Vec::new(),
            event: None,
            ready: VecDeque::new(),
            placement: Placement::new(capacity, limits.ring_capacity, features.divided_tables),
            features: *features,
            limits,
            burst: Burst::None,
            burst_timer: Box::new(Timespec::from(limits.burst)),
        }
    }

    /// Makes one more ring, for the connections the present ones cannot hold.
    pub(crate) fn add(&mut self) -> io::Result<()> {
        let index = self.all.len();
        let table = self.placement.table(index).ok_or(Errno::NFILE)?;
        let limits = RingLimits { table, buffers: self.limits.buffers_max, watched: index > 0 };
        let ring = Ring::new(&self.features, limits)?;
        if index > 0 {
            if self.event.is_none() {
                self.event = Some(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
                self.watch_others();
            }
            if let Some(event) = &self.event {
                ring.signal_work(event)?;
            }
        }
        self.all.push(ring);
        Ok(())
    }

    /// Watches the other rings from the first. Polling their descriptors would not do: with deferred task run
    /// they become readable only by work that is done when they are entered. The eventfd tells of work to be
    /// done.
    pub(crate) fn watch_others(&mut self) {
        if let Some(event) = &self.event {
            let poll = opcode::PollAdd::new(Fd(event.as_raw_fd()), libc::POLLIN as u32).multi(true).build();
            self.all[0].push(&poll.user_data(pack(Operation::RingReady, 0, 0)));
        }
    }

    /// The ring that holds a slot, and the slot's direct descriptor in it.
    #[inline]
    pub(crate) fn place_of(&self, slot: Slot) -> (usize, Fixed) {
        self.placement.of(slot)
    }

    /// Notes that a ring other than the first has something to be taken or done.
    pub(crate) fn note_work(&mut self, index: usize) {
        if index > 0 && self.all[index].has_work() && !self.ready.contains(&index) {
            self.ready.push_back(index);
        }
    }

    /// The first ring with a free slot, which is made if that is possible.
    pub(crate) fn with_room(&mut self) -> Option<usize> {
        if let Some(ring) = self.all.iter().position(|ring| ring.free() > 0) {
            return Some(ring);
        }
        let ring = self.all.len();
        let accepts = self.placement.table(ring).is_some_and(|table| table.accepted > 0);
        (accepts && self.add().is_ok()).then_some(ring)
    }
}
