//! The ledger of glitches: what a peer does that costs us more than it, counted in points.
//!
//! It owns the prices: one place, one number. Nothing counted here is forbidden; who has no points left is
//! asked to be calm, and the connection ends (RFC 9113, section 10.5). Answers and time bring points back, so
//! that a browser that leaves a page, or a client that lives for days, loses nothing.

/// What a connection begins with, and the most it can have.
pub(super) const POINTS_MAX: u8 = 100;

/// Oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glitch {
    /// A request that waits is cancelled.
    Cancelled,
    /// A stream is reset that was answered already: cheaper for the peer than for us (CVE-2023-44487).
    ResetAfterAnswer,
    /// We reset a stream because of what the peer sent (CVE-2025-8671).
    StreamError,
    /// A frame of a stream that is over.
    LateFrame,
    /// DATA without data (CVE-2019-9518).
    EmptyData,
    /// DATA with next to nothing.
    TinyData,
    /// CONTINUATION beyond the second, or one with nothing in it (CVE-2024-27316).
    Continuation,
    /// PING (CVE-2019-9512).
    Ping,
    /// SETTINGS beyond the first (CVE-2019-9515).
    Settings,
    /// A window opened by a few bytes while an answer waits for it (CVE-2019-9511).
    TinyWindow,
    /// PRIORITY or PRIORITY_UPDATE (CVE-2019-9513).
    Priority,
    /// A frame of a kind that is not known.
    UnknownFrame,
    /// A request above the number that may wait.
    Refused,
}

impl Glitch {
    const fn points(self) -> u8 {
        match self {
            Self::Cancelled | Self::TinyData | Self::Ping | Self::TinyWindow | Self::Priority => 1,
            Self::UnknownFrame | Self::Refused => 1,
            Self::ResetAfterAnswer | Self::LateFrame => 2,
            Self::StreamError | Self::EmptyData | Self::Continuation | Self::Settings => 5,
        }
    }
}

/// Data or windows of fewer bytes are tiny.
pub(super) const TINY_BYTES: usize = 64;

/// The points of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ledger {
    points: u8,
    /// Windows that a peer may open by a few bytes for nothing: we have sent so little.
    tiny_windows: u8,
    /// The second in which points were given back last, without its higher bits.
    second: u16,
}

impl Ledger {
    pub(super) fn new(now_ms: u64) -> Self {
        Self { points: POINTS_MAX, tiny_windows: 0, second: second(now_ms) }
    }

    /// Takes the points of a glitch; false if there are not as many.
    #[must_use]
    pub(super) fn pay(&mut self, glitch: Glitch, now_ms: u64) -> bool {
        if glitch == Glitch::TinyWindow && self.tiny_windows > 0 {
            self.tiny_windows -= 1;
            return true;
        }
        let passed = second(now_ms).wrapping_sub(self.second);
        if passed > 0 {
            self.second = second(now_ms);
            self.earn(passed);
        }
        match self.points.checked_sub(glitch.points()) {
            Some(points) => {
                self.points = points;
                true
            }
            None => false,
        }
    }

    /// A few bytes were sent, and all there were: a peer may open the windows of stream and connection by as
    /// few when it has taken them.
    pub(super) fn sent_little(&mut self) {
        self.tiny_windows = self.tiny_windows.saturating_add(2);
    }

    /// An answer is complete.
    #[inline]
    pub(super) fn answered(&mut self) {
        self.earn(1);
    }

    #[inline]
    fn earn(&mut self, points: u16) {
        let earned = u8::try_from(points).unwrap_or(u8::MAX);
        self.points = self.points.saturating_add(earned).min(POINTS_MAX);
    }

    /// Points that are gone.
    pub(super) fn spent(self) -> u8 {
        POINTS_MAX - self.points
    }
}

fn second(now_ms: u64) -> u16 {
    (now_ms / 1000) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_go_and_come_back() {
        let mut ledger = Ledger::new(5_000);
        let pings = (0..).take_while(|_| ledger.pay(Glitch::Ping, 5_000)).count();
        assert_eq!(pings, usize::from(POINTS_MAX));
        assert!(!ledger.pay(Glitch::Ping, 5_999));
        ledger.answered();
        assert!(ledger.pay(Glitch::Ping, 5_999));
        assert!(ledger.pay(Glitch::Ping, 6_000));
        assert!(!ledger.pay(Glitch::Ping, 6_000));
        assert!(ledger.pay(Glitch::Ping, 70_000));
        assert_eq!(ledger.spent(), 100 - 63);
    }

    #[test]
    fn windows_are_opened_by_what_was_sent() {
        let mut ledger = Ledger::new(0);
        for _ in 0..1_000 {
            ledger.sent_little();
            assert!(ledger.pay(Glitch::TinyWindow, 0) && ledger.pay(Glitch::TinyWindow, 0));
        }
        assert_eq!(ledger.spent(), 0);
        assert!(ledger.pay(Glitch::TinyWindow, 0));
        assert_eq!(ledger.spent(), 1);
    }

    #[test]
    fn a_reset_costs_more_than_its_answer_earned() {
        let mut ledger = Ledger::new(0);
        let resets = (0..).take_while(|_| {
            ledger.answered();
            ledger.pay(Glitch::ResetAfterAnswer, 0)
        });
        assert!(resets.count() <= usize::from(POINTS_MAX));
    }
}
