//! Waiting for what is awaited, never for a time.
//!
//! It owns the limit after which a test has hung. It must never be used to prove that something is quick.
use std::time::{Duration, Instant};

/// After so long a test has hung. On a machine that is busy with other work everything takes longer, so this
/// is far more than anything needs.
pub const HANG: Duration = Duration::from_secs(300);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks again and again until it holds.
///
/// # Panics
/// It never does; says `what` was awaited.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::until;

    #[test]
    fn looks_go_on_until_it_holds() {
        let mut looks = 0;
        until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }
}
