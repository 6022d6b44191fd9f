//! How an entry is known to be what stands on the disk.
//!
//! It must never ask the time: the second is told.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why an entry may be used without a look at the disk.
#[derive(Debug)]
pub(crate) enum Freshness {
    /// The watcher sees every change.
    Watched,
    /// It was found true in this second (since 1970), and is checked when used in another one.
    Checked(AtomicU64),
}

impl Freshness {
    /// Of an entry that was found true in the second `unix_s`.
    pub(crate) fn new(is_watched: bool, unix_s: u64) -> Self {
        if is_watched { Self::Watched } else { Self::Checked(AtomicU64::new(unix_s)) }
    }

    /// Whether the entry may be used at this time without a look at the disk.
    #[inline]
    pub(crate) fn holds_at(&self, unix_ms: u64) -> bool {
        match self {
            Self::Watched => true,
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

impl Clone for Freshness {
    fn clone(&self) -> Self {
        match self {
            Self::Watched => Self::Watched,
            Self::Checked(unix_s) => Self::Checked(AtomicU64::new(unix_s.load(Relaxed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_watched_is_true_for_its_second() {
        assert!(Freshness::new(true, 0).holds_at(123_456));
        let checked = Freshness::new(false, 7);
        assert!(checked.holds_at(7_000) && checked.holds_at(7_999) && !checked.holds_at(8_000));
        checked.renew(8);
        assert!(checked.clone().holds_at(8_500) && !checked.holds_at(7_500));
    }
}
