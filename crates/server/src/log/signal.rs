//! How a worker wakes the log's thread: seldom, and never twice.
//!
//! Dozing, the thread comes back by itself before long and is woken only when a ring fills up. Asleep, it is
//! woken by the first record. It falls asleep in two steps, because a worker looks at the signal without a
//! barrier: it says that it is asleep, waits once more for a time in which any store becomes visible, looks
//! once more, and only then waits without end. So no record can be left lying, and a signal that need not
//! ring costs a worker one load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::Duration;

const AWAKE: u8 = 0;
const DOZING: u8 = 1;
const ASLEEP: u8 = 2;

/// The signal by which workers wake the log's thread.
#[derive(Debug, Default)]
pub(super) struct Signal {
    state: AtomicU8,
    sleeper: OnceLock<Thread>,
}

impl Signal {
    /// The calling thread is the one to be woken.
    pub(super) fn belongs_here(&self) {
        self.sleeper.get_or_init(thread::current);
    }

    /// There is something to be written. `pressing`: so much that it should be soon.
    #[inline]
    pub(super) fn ring(&self, pressing: bool) {
        let state = self.state.load(Relaxed);
        let is_due = state == ASLEEP || (pressing && state == DOZING);
        if is_due && self.state.swap(AWAKE, Relaxed) == state {
            self.wake();
        }
    }

    /// Wakes the thread whatever it does.
    #[cold]
    pub(super) fn wake(&self) {
        self.state.store(AWAKE, Relaxed);
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
    }

    /// Waits, to look again after `length` at the latest.
    pub(super) fn doze(&self, length: Duration) {
        self.state.store(DOZING, Relaxed);
        thread::park_timeout(length);
    }

    /// The first step of falling asleep.
    pub(super) fn close_eyes(&self, length: Duration) {
        self.state.store(ASLEEP, Relaxed);
        thread::park_timeout(length);
    }

    /// The second: without end. Whether it slept: if somebody rang in between, falling asleep begins anew.
    pub(super) fn sleep(&self) -> bool {
        let is_asleep = self.state.load(Relaxed) == ASLEEP;
        if is_asleep {
            thread::park();
        }
        is_asleep
    }
}
