//! Giving receive buffers back after a burst.
//!
//! A burst is what made the kernel run out of buffers. Some time after it, the rings keep twice what they
//! needed at once since: the memory of all buffers goes back to the system, and those that are too many are
//! given to the kernel no more when they have come back from it. Owns when that is done. It must never be
//! done while the kernel may have filled a buffer of which nobody knows yet, and wakes an idle worker once a
//! burst.

use io_uring::opcode;
use io_uring::types::TimeoutFlags;

use super::ring_set::{Burst, RingSet};
use super::token::{Operation, pack};
use crate::Completion;

impl RingSet {
    /// The kernel ran out of buffers: it gets more, until the burst is over.
    #[cold]
    pub(crate) fn grow_buffers(&mut self, ring: usize) {
        self.all[ring].buffers.grow();
        // Without deferred task run a completion may come at any time.
        if self.features.defer_taskrun {
            if self.burst == Burst::None {
                self.arm_burst_timer();
            }
            self.burst = Burst::Fresh;
        }
    }

    /// Called before each wait while there is a burst. `is_idle`: all that was copied out of a ring is handed
    /// out.
    #[cold]
    pub(crate) fn follow_burst(&mut self, is_idle: bool) {
        match self.burst {
            Burst::None => {}
            Burst::Fresh => {
                self.all.iter_mut().for_each(|ring| ring.buffers.begin_measure());
                self.burst = Burst::Measured;
            }
            Burst::Measured => self.all.iter_mut().for_each(|ring| ring.buffers.measure()),
            Burst::Over => self.give_buffers_back(is_idle),
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

    fn give_buffers_back(&mut self, is_idle: bool) {
        if !is_idle {
            return;
        }
        let mut waits = false;
        let mut grown = false;
        for ring in &mut self.all {
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
        self.all[0].push(&timeout.build().user_data(pack(Operation::BurstTimer, 0, 0)));
    }
}
