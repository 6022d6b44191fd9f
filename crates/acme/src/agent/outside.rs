//! The two inputs that are not deterministic: wall clock and random numbers.

use ring::rand::{SecureRandom as _, SystemRandom};
use staunch_netio::clock;

use crate::answers::unix_s;

/// The wall clock, in seconds since 1970.
pub(super) fn now_unix_s() -> u64 {
    unix_s(clock::unix_time()).unwrap_or(0)
}

/// A random number from 0 up to and without 1, for jitter.
pub(super) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without random numbers nothing else works either; jitter can be left out.
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
