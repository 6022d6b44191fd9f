//! Time of a truth server: sleeping, and stalls in which nothing goes on.
//!
//! It must never let anybody sleep through the end of the server.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The server ends: whoever gets this stops.
#[derive(Debug)]
pub(crate) struct Ended;

/// The gate through which everything goes that is to stop in a stall.
#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    stalled: bool,
    ended: bool,
    resumed_at: Instant,
}

impl Pace {
    /// An open gate.
    pub(crate) fn new() -> Self {
        let state = State { stalled: false, ended: false, resumed_at: Instant::now() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Closes the gate (or opens it again). Says whether that changed anything.
    pub(crate) fn set_stalled(&self, stalled: bool) -> bool {
        let mut state = self.lock();
        let changes = state.stalled != stalled;
        if changes && !stalled {
            state.resumed_at = Instant::now();
        }
        state.stalled = stalled;
        self.changed.notify_all();
        changes
    }

    /// Wakes everybody for the last time.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Whether the server ends.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Waits while there is a stall. Says when the last one ended, or when the server began.
    pub(crate) fn pass(&self) -> Result<Instant, Ended> {
        let waits = |state: &mut State| state.stalled && !state.ended;
        let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if state.ended { Err(Ended) } else { Ok(state.resumed_at) }
    }

    /// Sleeps, whether there is a stall or not.
    pub(crate) fn sleep_until(&self, wake_at: Instant) -> Result<(), Ended> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return Err(Ended);
            }
            let left = wake_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sleeps this long.
    pub(crate) fn sleep(&self, length: Duration) -> Result<(), Ended> {
        self.sleep_until(Instant::now() + length)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
