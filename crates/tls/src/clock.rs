//! The time that handshakes go by: told from outside, so that a simulation can play years.
//!
//! It must never ask the machine.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;

/// Seconds since 1970, set by whoever knows them; at least once before the first handshake, then as time goes
/// on.
#[derive(Debug, Default)]
pub struct WallTime(AtomicU64);

impl WallTime {
    /// The time is that many seconds after 1970.
    #[must_use]
    pub fn new(unix_s: u64) -> Self {
        Self(AtomicU64::new(unix_s))
    }

    /// Tells the time.
    pub fn set(&self, unix_s: u64) {
        self.0.store(unix_s, Ordering::Relaxed);
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn unix_s(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.unix_s())))
    }
}
