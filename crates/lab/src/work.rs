//! Work: what a request costs beside being served.
//!
//! It must never sleep: a server that waits and a server that computes behave differently, and this is the
//! one that computes.

use staunch_netio::clock;

/// Uses so much processor time of the calling thread.
pub fn burn(work_ns: u64) {
    if work_ns == 0 {
        return;
    }
    let start_ns = clock::thread_busy_ns();
    while clock::thread_busy_ns() - start_ns < work_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        for work_ns in [0, 1_000, 300_000] {
            let start_ns = clock::thread_busy_ns();
            burn(work_ns);
            assert!(clock::thread_busy_ns() - start_ns >= work_ns);
        }
    }
}
