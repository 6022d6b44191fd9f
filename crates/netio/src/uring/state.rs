//! Everything one worker's io_uring backend consists of, and how it comes into being and ends.
//!
//! Owns the rings, the table of slots, the sends in flight and the lists of what has to be done next. It must
//! never be moved to another thread: a ring belongs to the thread that made it. What is done with it stands
//! in ring_set.rs, turn.rs (waiting and handing out), accepting.rs, connecting.rs, receiving.rs, sending.rs,
//! files.rs and closing.rs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, Timespec};
use io_uring::{cqueue, opcode};
use rustix::process::{Resource, getrlimit};

use super::features::Features;
use super::in_flight::InFlightPool;
use super::listeners::{Listener, multishot_reserve};
use super::passages::Passages;
use super::ring::Ring;
use super::ring_set::{Limits, RingSet};
use super::slots::Slots;
use super::token::{Operation, pack};
use super::watched::Watches;
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

/// The io_uring backend of one worker, in parts by subject.
pub struct Uring {
    pub(crate) rings: RingSet,
    pub(crate) completions: CompletionQueue,
    pub(crate) connections: ConnectionTable,
    pub(crate) accepting: Accepting,
    pub(crate) files: FileSends,
    /// Descriptors watched beside connections, by number.
    pub(crate) watches: Watches,
    pub(crate) waker: Waker,
}

/// Completions that are handed out in a turn.
pub(crate) struct CompletionQueue {
    /// Completions copied out of the ring `ring`, handed out up to `next`.
    pub(crate) batch: Vec<cqueue::Entry>,
    pub(crate) next: usize,
    pub(crate) ring: usize,
    /// Completions that did not come from the kernel by themselves.
    pub(crate) pending: VecDeque<Completion>,
    /// How many completions may still be handed out in this turn.
    pub(crate) turn_left: u32,
}

/// The slots, and what of connections is with the kernel.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    pub(crate) slots: Slots,
    /// The slots there are for connecting.
    pub(crate) free: FreeSlots,
    pub(crate) passages: Passages,
    pub(crate) in_flight: InFlightPool,
    /// Slots whose receiving has to be adjusted before the next submission.
    pub(crate) listed: Vec<Slot>,
    /// Values that options of sockets are set to: few, and never moved.
    pub(crate) option_values: BTreeMap<libc::c_int, Box<libc::c_int>>,
}

/// The listeners, and how connections are accepted at them.
pub(crate) struct Accepting {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) learns_peers: bool,
    /// The connection reported last as accepted, and where it comes from.
    pub(crate) peer: Option<(Slot, SocketAddr)>,
    /// As long as a ring has more free slots than this, one multishot accept cannot overfill it in one turn.
    pub(crate) multishot_reserve: u32,
}

/// Sends that have come to a part of a file.
pub(crate) struct FileSends {
    /// Sends whose file can go on at once, by index.
    pub(crate) ready: VecDeque<u32>,
    /// How many of them may still take a step in this turn.
    pub(crate) steps_left: usize,
    /// Sends whose file waits for a moment, by index.
    pub(crate) draining: Vec<u32>,
    pub(crate) drain_timer: Box<Timespec>,
    pub(crate) drain_timer_armed: bool,
    pub(crate) warmed: Arc<Warmed>,
}

impl ConnectionTable {
    /// The token of an operation on a slot.
    #[inline]
    pub(crate) fn token(&mut self, operation: Operation, slot: Slot) -> u64 {
        pack(operation, self.slots.get(slot).generation(), slot)
    }
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
        let rings = RingSet::new(capacity, features, limits);
        let completions = CompletionQueue {
            batch: Vec::with_capacity(BATCH_MAX),
            next: 0,
            ring: 0,
            pending: VecDeque::new(),
            turn_left: 0,
        };
        let accepting = Accepting {
            multishot_reserve: multishot_reserve(&listeners),
            listeners,
            learns_peers: false,
            peer: None,
        };
        let files = FileSends {
            ready: VecDeque::new(),
            steps_left: 0,
            draining: Vec::new(),
            drain_timer: Box::new(Timespec::new()),
            drain_timer_armed: false,
            warmed: Warmed::new(waker.clone()),
        };
        let connections = ConnectionTable::default();
        let watches = Watches::default();
        let mut uring = Self { rings, completions, connections, accepting, files, watches, waker };
        for _ in 0..uring.rings.placement.rings_at_first() {
            uring.rings.add()?;
        }
        uring.watch_waker();
        Ok(uring)
    }

    /// How many receive buffers there are in all rings, those that come back only to be given up not counted.
    pub fn receive_buffers(&self) -> usize {
        self.rings.all.iter().map(|ring| usize::from(ring.buffers.kept())).sum()
    }

    /// How many rings there are.
    pub fn rings(&self) -> usize {
        self.rings.all.len()
    }

    /// Watches the waker from the first ring.
    pub(crate) fn watch_waker(&mut self) {
        let descriptor = Fd(self.waker.as_fd().as_raw_fd());
        let poll = opcode::PollAdd::new(descriptor, libc::POLLIN as u32).multi(true).build();
        self.rings.all[0].push(&poll.user_data(pack(Operation::Wake, 0, 0)));
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel must not read or write memory that is about to be freed. If a ring cannot be made quiet,
        // what it may use is leaked rather than freed.
        let quiet = self.rings.all.iter_mut().map(Ring::cancel_all).filter(|quiet| !quiet).count() == 0;
        if !quiet {
            std::mem::forget(std::mem::take(&mut self.connections.in_flight));
            std::mem::forget(std::mem::take(&mut self.connections.passages));
            std::mem::forget(std::mem::take(&mut self.accepting.listeners));
            std::mem::forget(std::mem::take(&mut self.connections.option_values));
            self.rings.all.drain(..).for_each(std::mem::forget);
        }
    }
}
