//! Uses the nest.

use crate::nest::Nest;

/// Sits in a nest.
pub struct Bird(pub Nest);

/// Waits, with a reason.
pub fn brood() {
    // tidy: allow(clock): a bird has no worker to hold up.
    std::thread::sleep(std::time::Duration::from_secs(1));
}
