//! How an entry is known to be what stands on the disk.
//!
//! It must never ask the time: the second is told.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::limits::LOOK_AGAIN_S;

/// Why an entry may be used without a look at the disk.
#[derive(Debug)]
pub(crate) enum Freshness {
    /// The watcher hears of every change that can be heard of. It was looked at in this millisecond (since
    /// 1970).
    Watched(AtomicU64),
    /// The entry was found true in this second (since 1970), and is checked when used in another one.
    Checked(AtomicU64),
}

impl Freshness {
    /// Of an entry that was found true in the second `unix_s`.
    pub(crate) fn new(is_watched: bool, unix_s: u64) -> Self {
        if is_watched {
            Self::Watched(AtomicU64::new(unix_s * 1000))
        } else {
            Self::Checked(AtomicU64::new(unix_s))
        }
    }

    /// Whether the entry may be used at this time, and needs no look: nearly always, and so in few
    /// instructions.
    #[inline]
    pub(crate) fn is_settled(&self, unix_ms: u64) -> bool {
        matches!(self, Self::Watched(looked_ms) if !is_long_ago(looked_ms.load(Relaxed), unix_ms))
    }

    /// Whether it is time to look at the entry again, though nothing was heard: true for one who asks.
    pub(crate) fn claims_look(&self, unix_ms: u64) -> bool {
        matches!(self, Self::Watched(looked_ms) if claims(looked_ms, unix_ms))
    }

    /// Whether the entry may be used at this time without a look at the disk.
    pub(crate) fn holds_at(&self, unix_ms: u64) -> bool {
        match self {
            Self::Watched(_) => true,
            Self::Checked(unix_s) => unix_s.load(Relaxed) == unix_ms / 1000,
        }
    }

    /// The entry was found true in the second `unix_s`.
    pub(crate) fn renew(&self, unix_s: u64) {
        if let Self::Checked(checked_s) = self {
            checked_s.store(unix_s, Relaxed);
        }
    }
}

/// By so much may workers differ in what the time is: each reads its clock once a turn.
const SKEW_MS: u64 = 1000;

/// Whether a look in this millisecond is due again; also if it is in the future, for the clock may have been
/// set back.
#[inline]
pub(crate) fn is_long_ago(looked_ms: u64, unix_ms: u64) -> bool {
    (unix_ms + SKEW_MS).wrapping_sub(looked_ms) >= LOOK_AGAIN_S * 1000 + SKEW_MS
}

/// Whether a look is due; if so, this millisecond is noted as that of the next one, which is the caller's.
pub(crate) fn claims(looked_ms: &AtomicU64, unix_ms: u64) -> bool {
    let last_ms = looked_ms.load(Relaxed);
    is_long_ago(last_ms, unix_ms) && looked_ms.compare_exchange(last_ms, unix_ms, Relaxed, Relaxed).is_ok()
}

impl Clone for Freshness {
    fn clone(&self) -> Self {
        match self {
            Self::Watched(looked_ms) => Self::Watched(AtomicU64::new(looked_ms.load(Relaxed))),
            Self::Checked(unix_s) => Self::Checked(AtomicU64::new(unix_s.load(Relaxed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_again_after_a_while() {
        let watched = Freshness::new(true, 7);
        let after_ms = (7 + LOOK_AGAIN_S) * 1000;
        assert!(!watched.claims_look(after_ms - 1));
        assert!(watched.claims_look(after_ms) && !watched.claims_look(after_ms), "one looks, not all");
        assert!(!watched.claims_look(after_ms - 3), "another worker's clock");
        assert!(!watched.is_settled(1_000) && watched.claims_look(1_000), "the clock was set back");
        assert!(watched.is_settled(1_000));
    }

    #[test]
    fn what_is_not_watched_is_true_for_its_second() {
        assert!(Freshness::new(true, 0).holds_at(123_456));
        let checked = Freshness::new(false, 7);
        assert!(checked.holds_at(7_000) && checked.holds_at(7_999) && !checked.holds_at(8_000));
        assert!(!checked.claims_look(100_000), "it is checked when used");
        checked.renew(8);
        assert!(checked.clone().holds_at(8_500) && !checked.holds_at(7_500));
    }
}
