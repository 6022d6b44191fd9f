//! Giving receive buffers back after a burst.
//!
//! A burst is what made the kernel run out of buffers. Some time after it, the rings keep twice what they
//! needed at once since: the memory of all buffers goes back to the system, and those that are too many are
//! given to the kernel no more when they have come back from it. Owns when that is done. It must never be
//! done while the kernel may have filled a buffer of which nobody knows yet, and wakes an idle worker once a
//! burst.

use io_uring::opcode;
use io_uring::types::TimeoutFlags;

use super::state::{Burst, Uring};
use super::token::{Operation, pack};
use crate::Completion;

impl Uring {
    /// The kernel ran out of buffers: it gets more, until the burst is over.
    #[cold]
    pub(crate) fn grow_buffers(&mut self, ring: usize) {
        self.rings[ring].buffers.grow();
        // Without deferred task run a completion may come at any time.
        if self.features.defer_taskrun {
            if self.burst == Burst::None {
                self.arm_burst_timer();
            }
            self.burst = Burst::Fresh;
        }
    }

    /// Called before each wait while there is a burst.
    #[cold]
    pub(crate) fn follow_burst(&mut self) {
        match self.burst {
            Burst::None => {}
            Burst::Fresh => {
                self.rings.iter_mut().for_each(|ring| ring.buffers.begin_measure());
                self.burst = Burst::Measured;
            }
            Burst::Measured => self.rings.iter_mut().for_each(|ring| ring.buffers.measure()),
            Burst::Over => self.give_buffers_back(),
        }
    }

    /// The timer is over.
    pub(crate) fn burst_timer_over(&mut self) -> Option<Completion> {
        if self.burst == Burst::Fresh {
            self.arm_burst_timer();
        } else {
            self.burst = Burst::Over;
        }
        None
    }

    fn give_buffers_back(&mut self) {
        if self.batch_next < self.batch.len() {
            return;
        }
        let mut waits = false;
        let mut grown = false;
        for ring in &mut self.rings {
            if ring.buffers.is_grown() {
                let quiet = ring.is_quiet() && ring.buffers.give_back_unneeded();
                waits |= !quiet;
                grown |= ring.buffers.is_grown();
            }
        }
        if waits {
            return;
        }
        self.burst = if grown { Burst::Fresh } else { Burst::None };
        if grown {
            self.arm_burst_timer();
        }
    }

    fn arm_burst_timer(&mut self) {
        let timeout = opcode::Timeout::new(&raw const *self.burst_timer).flags(TimeoutFlags::empty());
        self.rings[0].push(&timeout.build().user_data(pack(Operation::BurstTimer, 0, 0)));
    }

    /// How many receive buffers there are in all rings, those that come back only to be given up not counted.
    pub fn receive_buffers(&self) -> usize {
        self.rings.iter().map(|ring| usize::from(ring.buffers.kept())).sum()
    }
}
