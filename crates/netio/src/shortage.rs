//! What to do while the kernel is short of memory: wait a little, and ask again.
//!
//! It must never be used where there is other work to do.

use std::time::Duration;

use rustix::event::{Timespec, poll};

/// How long is waited before the kernel is asked again: long enough that asking costs nothing, short enough
/// that a peer hardly sees it.
pub(crate) const WAIT: Duration = Duration::from_millis(10);

/// Waits that long, or as long as the caller would have waited for its events, if that is shorter.
pub(crate) fn rest(timeout: Option<Duration>) {
    let wait = bounded(timeout);
    if !wait.is_zero() {
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        // A signal that ends it early does no harm.
        let _ = poll(&mut [], Some(&wait));
    }
}

/// A timeout that is no longer than the wait.
pub(crate) fn bounded(timeout: Option<Duration>) -> Duration {
    timeout.map_or(WAIT, |timeout| timeout.min(WAIT))
}
