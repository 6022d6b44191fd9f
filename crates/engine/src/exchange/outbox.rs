//! What a handler asks of its worker beside the exchange in hand.
//!
//! It must never act by itself: the worker does, when it has dealt with the present event.

use std::cell::{Cell, RefCell};

use staunch_netio::Slot;

use super::address::Address;
use crate::upstream::Upstreams;

/// Collects what is asked for.
#[derive(Debug, Default)]
pub struct Outbox {
    wakes: RefCell<Vec<Address>>,
    /// Connections of which the kernel is to keep little from now on, or as much as of others again.
    tunings: RefCell<Vec<(Slot, bool)>>,
    upstreams: Upstreams,
    now_ms: Cell<u64>,
}

impl Outbox {
    /// Of a worker that makes at most so many connections.
    pub(crate) fn new(upstreams_max: u32) -> Self {
        let (wakes, tunings) = (RefCell::default(), RefCell::default());
        Self { wakes, tunings, upstreams: Upstreams::new(upstreams_max), now_ms: Cell::new(0) }
    }

    /// The moment in which this turn of the worker began, in milliseconds of a clock that never goes back.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Notes the moment in which a turn of the worker begins.
    #[inline]
    pub(crate) fn begin_turn(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
    }

    /// The connections that the worker has made for its handler.
    #[inline]
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Asks the handler again about this exchange of the same worker soon: by [`crate::Handler::ready`] if
    /// its answer goes on, whether or not it has room, by [`crate::Handler::reading`] if it is read, and by
    /// [`crate::Handler::woken`] if it waits. Nothing happens if it is finished by then.
    pub fn wake(&self, address: Address) {
        self.wakes.borrow_mut().push(address);
    }

    /// Whether nothing is asked for.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.borrow().is_empty() && self.tunings.borrow().is_empty() && self.upstreams.are_quiet()
    }

    /// The kernel is to keep little of what a connection sends, or as much as of others again.
    pub(crate) fn tune(&self, slot: Slot, keeps_little: bool) {
        self.tunings.borrow_mut().push((slot, keeps_little));
    }

    /// Takes all connections to tune, in the order in which they were named.
    pub(crate) fn take_tunings(&self) -> Vec<(Slot, bool)> {
        std::mem::take(&mut *self.tunings.borrow_mut())
    }

    /// Takes all exchanges to wake, in the order in which they were named.
    pub(crate) fn take_wakes(&self) -> Vec<Address> {
        std::mem::take(&mut *self.wakes.borrow_mut())
    }
}
