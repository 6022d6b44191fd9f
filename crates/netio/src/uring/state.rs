//! Everything one worker's io_uring backend consists of, and how it comes into being and ends.
//!
//! Owns the rings, the table of slots, the sends in flight and the lists of what has to be done next. It must
//! never be moved to another thread: a ring belongs to the thread that made it. What is done with it stands
//! in turn.rs (waiting and handing out), accepting.rs, connecting.rs, receiving.rs, sending.rs, files.rs and
//! closing.rs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, Fixed, Timespec};
use io_uring::{cqueue, opcode};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::features::Features;
use super::in_flight::InFlightPool;
use super::listeners::{Listener, multishot_reserve};
use super::passages::Passages;
use super::placement::Placement;
use super::ring::{Ring, RingLimits};
use super::slots::Slots;
use super::token::{Operation, pack};
use super::watched::Watched;
use crate::capacity::FreeSlots;
use crate::wake::Waker;
use crate::warming::Warmed;
use crate::{Capacity, Completion, Slot};

/// How many completions are copied out of a ring at once.
const BATCH_MAX: usize = 256;

/// Receive buffers a ring at most: 4 MiB, of which only as much is touched as was needed at once.
const BUFFERS_MAX: u16 = 1024;

/// After this long a burst is over: a crowd that comes again and again finds its buffers ready, and an idle
/// server wakes up once.
const BURST: Duration = Duration::from_secs(10);

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
    /// What is needed at once is measured until the timer is over.
    Measured,
    /// The timer is over.
    Over,
}

/// The io_uring backend of one worker.
pub struct Uring {
    /// The first one is waited in; it watches the others.
    pub(crate) rings: Vec<Ring>,
    /// Completions copied out of the ring `batch_ring`, handed out up to `batch_next`.
    pub(crate) batch: Vec<cqueue::Entry>,
    pub(crate) batch_next: usize,
    pub(crate) batch_ring: usize,
    /// Signalled when a ring other than the first has work.
    pub(crate) rings_event: Option<OwnedFd>,
    /// Those that have.
    pub(crate) ready: VecDeque<usize>,
    /// Completions that did not come from the kernel by themselves.
    pub(crate) pending: VecDeque<Completion>,
    /// How many completions may still be handed out in this turn.
    pub(crate) turn_left: u32,
    pub(crate) slots: Slots,
    /// The slots there are for connecting.
    pub(crate) free: FreeSlots,
    pub(crate) passages: Passages,
    pub(crate) in_flight: InFlightPool,
    /// Slots whose receiving has to be adjusted before the next submission.
    pub(crate) listed: Vec<Slot>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) learns_peers: bool,
    /// The connection reported last as accepted, and where it comes from.
    pub(crate) peer: Option<(Slot, SocketAddr)>,
    /// Sends whose file can go on at once, by index.
    pub(crate) files: VecDeque<u32>,
    /// How many of them may still take a step in this turn.
    pub(crate) file_steps_left: usize,
    /// Sends whose file waits for a moment, by index.
    pub(crate) draining: Vec<u32>,
    pub(crate) drain_timer: Box<Timespec>,
    pub(crate) drain_timer_armed: bool,
    /// Whether receive buffers are to be given back.
    pub(crate) burst: Burst,
    pub(crate) burst_timer: Box<Timespec>,
    /// Values that options of sockets are set to: few, and never moved.
    pub(crate) option_values: BTreeMap<libc::c_int, Box<libc::c_int>>,
    /// What is watched beside connections, by number.
    pub(crate) watches: Vec<Watched>,
    pub(crate) warmed: Arc<Warmed>,
    pub(crate) waker: Waker,
    pub(crate) features: Features,
    pub(crate) placement: Placement,
    pub(crate) limits: Limits,
    /// As long as a ring has more free slots than this, one multishot accept cannot overfill it in one turn.
    pub(crate) multishot_reserve: u32,
}

impl Uring {
    /// Makes the backend on the worker's own thread. `capacity` is the most connections it will hold; when
    /// one ring cannot hold as many (RLIMIT_NOFILE), further rings are made as they are needed.
    ///
    /// # Errors
    /// When a ring cannot be made (EMFILE, ENOMEM, EPERM) or a listener is not listening.
    pub fn new(
        listeners: Vec<OwnedFd>,
        waker: Waker,
        capacity: impl Into<Capacity>,
        features: &Features,
    ) -> io::Result<Self> {
        let capacity = capacity.into();
        let descriptors_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let ring_capacity = capacity.slots().min(u32::try_from(descriptors_max).unwrap_or(u32::MAX));
        let limits = Limits { ring_capacity, buffers_max: BUFFERS_MAX, burst: BURST };
        Self::with_limits(listeners, waker, capacity, features, limits)
    }

    /// A backend like [`Uring::new`] makes, with limits of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Uring::new`].
    pub fn with_limits(
        listeners: Vec<OwnedFd>,
        waker: Waker,
        capacity: impl Into<Capacity>,
        features: &Features,
        limits: Limits,
    ) -> io::Result<Self> {
        let capacity = capacity.into().at_most(u32::MAX);
        assert!(capacity.slots() > 0 && limits.ring_capacity > 0);
        assert!(listeners.is_empty() || capacity.accepted > 0, "no room for accepted connections");
        let listeners: Vec<Listener> = listeners.into_iter().map(Listener::new).collect::<io::Result<_>>()?;
        let mut uring = Self {
            rings: Vec::new(),
            batch: Vec::with_capacity(BATCH_MAX),
            batch_next: 0,
            batch_ring: 0,
            rings_event: None,
            ready: VecDeque::new(),
            pending: VecDeque::new(),
            turn_left: 0,
            slots: Slots::default(),
            free: FreeSlots::default(),
            passages: Passages::default(),
            in_flight: InFlightPool::default(),
            listed: Vec::new(),
            multishot_reserve: multishot_reserve(&listeners),
            listeners,
            learns_peers: false,
            peer: None,
            files: VecDeque::new(),
            file_steps_left: 0,
            draining: Vec::new(),
            drain_timer: Box::new(Timespec::new()),
            drain_timer_armed: false,
            burst: Burst::None,
            burst_timer: Box::new(Timespec::from(limits.burst)),
            option_values: BTreeMap::new(),
            watches: Vec::new(),
            warmed: Warmed::new(waker.clone()),
            waker,
            features: *features,
            placement: Placement::new(capacity, limits.ring_capacity, features.divided_tables),
            limits,
        };
        for _ in 0..uring.placement.rings_at_first() {
            uring.add_ring()?;
        }
        uring.watch_waker();
        Ok(uring)
    }

    /// How many rings there are.
    pub fn rings(&self) -> usize {
        self.rings.len()
    }

    /// Makes one more ring, for the connections the present ones cannot hold.
    pub(crate) fn add_ring(&mut self) -> io::Result<()> {
        let index = self.rings.len();
        let table = self.placement.table(index).ok_or(Errno::NFILE)?;
        let limits = RingLimits { table, buffers: self.limits.buffers_max, watched: index > 0 };
        let ring = Ring::new(&self.features, limits)?;
        if index > 0 {
            if self.rings_event.is_none() {
                self.rings_event = Some(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
                self.watch_rings();
            }
            if let Some(event) = &self.rings_event {
                ring.signal_work(event)?;
            }
        }
        self.rings.push(ring);
        Ok(())
    }

    /// Watches the other rings from the first. Polling their descriptors would not do: with deferred task run
    /// they become readable only by work that is done when they are entered. The eventfd tells of work to be
    /// done.
    pub(crate) fn watch_rings(&mut self) {
        if let Some(event) = &self.rings_event {
            let poll = opcode::PollAdd::new(Fd(event.as_raw_fd()), libc::POLLIN as u32).multi(true).build();
            self.rings[0].push(&poll.user_data(pack(Operation::RingReady, 0, 0)));
        }
    }

    /// Watches the waker from the first ring.
    pub(crate) fn watch_waker(&mut self) {
        let descriptor = Fd(self.waker.as_fd().as_raw_fd());
        let poll = opcode::PollAdd::new(descriptor, libc::POLLIN as u32).multi(true).build();
        self.rings[0].push(&poll.user_data(pack(Operation::Wake, 0, 0)));
    }

    /// The ring that holds a slot, and the slot's direct descriptor in it.
    #[inline]
    pub(crate) fn place_of(&self, slot: Slot) -> (usize, Fixed) {
        self.placement.of(slot)
    }

    /// The token of an operation on a slot.
    #[inline]
    pub(crate) fn token(&mut self, operation: Operation, slot: Slot) -> u64 {
        pack(operation, self.slots.get(slot).generation(), slot)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel must not read or write memory that is about to be freed. If a ring cannot be made quiet,
        // what it may use is leaked rather than freed.
        let quiet = self.rings.iter_mut().map(Ring::cancel_all).filter(|quiet| !quiet).count() == 0;
        if !quiet {
            std::mem::forget(std::mem::take(&mut self.in_flight));
            std::mem::forget(std::mem::take(&mut self.passages));
            std::mem::forget(std::mem::take(&mut self.listeners));
            std::mem::forget(std::mem::take(&mut self.option_values));
            self.rings.drain(..).for_each(std::mem::forget);
        }
    }
}
