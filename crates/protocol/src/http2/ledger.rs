//! The ledger of oddities: what a peer makes us do for nothing.
//!
//! It owns the prices: one place, one number. A price is the time of a processor, in microseconds, that is
//! wasted at most; frames that cost next to nothing are cheap, however many they are. Nothing counted here is
//! forbidden: a peer that has nothing left is asked to be calm, and the connection ends (RFC 9113, section
//! 10.5). Answers and time bring credit back, so that a browser that leaves page after page, or a client that
//! lives for days, loses nothing.

/// What a connection may waste at once, in microseconds of a processor: 4 000 resets of answers. nghttp2
/// takes 1 000 before it slows a peer down, Go some hundreds of requests that wait, nginx megabytes of
/// frames.
pub(super) const CREDIT_US_MAX: u16 = 64_000;
/// What comes back each second: 40 resets. nghttp2 gives 33.
const SECOND_US: u32 = 640;
/// What a complete answer brings back.
const ANSWER_US: u16 = 8;

/// Oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glitch {
    /// A request is cancelled whose answer has not begun: others may be at work for it.
    Cancelled,
    /// An answer is reset that has begun. The rest of it was not made yet.
    ResetOfBegun,
    /// An answer is reset that was complete (CVE-2023-44487). It has brought credit.
    ResetAfterAnswer,
    /// We reset a stream because of what the peer sent (CVE-2025-8671).
    StreamError,
    /// A request that is answered without a handler: its head is too large.
    RefusedHead,
    /// DATA of a stream that nothing is known of any more.
    LateFrame,
    /// A block of so many bytes, read only because tables must go on alike.
    UselessBlock(u16),
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
    const fn price_us(self) -> u16 {
        match self {
            Self::TinyData | Self::TinyWindow | Self::Priority => 2,
            Self::Ping | Self::UnknownFrame => 4,
            Self::ResetOfBegun | Self::LateFrame | Self::EmptyData | Self::Refused => 16,
            Self::ResetAfterAnswer => 16 + ANSWER_US,
            Self::Cancelled => 32,
            Self::Continuation | Self::Settings | Self::RefusedHead => 64,
            // Some 50 ns for a byte.
            Self::UselessBlock(bytes) => 16 + bytes / 16,
            // No honest client is known that does this.
            Self::StreamError => 640,
        }
    }
}

/// Data or windows of fewer bytes are tiny: what stands around them is larger.
pub(super) const TINY_BYTES: usize = 16;

/// The credit of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ledger {
    credit_us: u16,
    /// The second in which credit came back last, without its higher bits.
    second: u16,
    /// Windows that a peer may open by a few bytes for nothing: we have sent so little.
    tiny_windows: u8,
}

impl Ledger {
    pub(super) fn new(now_ms: u64) -> Self {
        Self { credit_us: CREDIT_US_MAX, second: second(now_ms), tiny_windows: 0 }
    }

    /// Takes the price of a glitch; false if there is not as much credit.
    #[must_use]
    pub(super) fn pay(&mut self, glitch: Glitch, now_ms: u64) -> bool {
        if glitch == Glitch::TinyWindow && self.tiny_windows > 0 {
            self.tiny_windows -= 1;
            return true;
        }
        let passed = second(now_ms).wrapping_sub(self.second);
        if passed > 0 {
            self.second = second(now_ms);
            let earned_us = u32::from(passed) * SECOND_US;
            self.earn(u16::try_from(earned_us).unwrap_or(CREDIT_US_MAX));
        }
        match self.credit_us.checked_sub(glitch.price_us()) {
            Some(credit_us) => {
                self.credit_us = credit_us;
                true
            }
            None => false,
        }
    }

    /// Notes that so many bytes were sent, and that there were no more: if few, a peer may open the windows
    /// of stream and connection by as few when it has taken them.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        if bytes < TINY_BYTES as u32 {
            self.tiny_windows = self.tiny_windows.saturating_add(2);
        }
    }

    /// An answer is complete.
    #[inline]
    pub(super) fn answered(&mut self) {
        self.earn(ANSWER_US);
    }

    #[inline]
    fn earn(&mut self, earned_us: u16) {
        self.credit_us = self.credit_us.saturating_add(earned_us).min(CREDIT_US_MAX);
    }

    /// Credit that is gone.
    pub(super) fn spent_us(self) -> u16 {
        CREDIT_US_MAX - self.credit_us
    }
}

fn second(now_ms: u64) -> u16 {
    (now_ms / 1000) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_goes_and_comes_back() {
        let mut ledger = Ledger::new(5_000);
        let resets = (0..).take_while(|_| ledger.pay(Glitch::ResetOfBegun, 5_000)).count();
        assert_eq!(resets, 4_000);
        assert!(!ledger.pay(Glitch::ResetOfBegun, 5_999));
        ledger.answered();
        ledger.answered();
        assert!(ledger.pay(Glitch::ResetOfBegun, 5_999));
        let resets = (0..).take_while(|_| ledger.pay(Glitch::ResetOfBegun, 6_000)).count();
        assert_eq!(resets, 40);
        assert!(ledger.pay(Glitch::ResetOfBegun, 70_000));
        assert_eq!(ledger.spent_us(), 64_000 - 64 * 640 + 16);
    }

    #[test]
    fn windows_are_opened_by_what_was_sent() {
        let mut ledger = Ledger::new(0);
        for _ in 0..100_000 {
            ledger.sent(1);
            assert!(ledger.pay(Glitch::TinyWindow, 0) && ledger.pay(Glitch::TinyWindow, 0));
        }
        assert_eq!(ledger.spent_us(), 0);
        assert!(ledger.pay(Glitch::TinyWindow, 0));
        assert_eq!(ledger.spent_us(), 2);
    }

    #[test]
    fn a_reset_costs_more_than_its_answer_earned() {
        let mut ledger = Ledger::new(0);
        let resets = (0..).take_while(|_| {
            ledger.answered();
            ledger.pay(Glitch::ResetAfterAnswer, 0)
        });
        assert_eq!(resets.count(), 3_999);
    }

    /// What people and programs do for hours costs nothing in the end.
    #[test]
    fn what_is_done_now_and_then_is_free() {
        let habits = [(Glitch::Ping, 10), (Glitch::ResetOfBegun, 40), (Glitch::Cancelled, 20)];
        for (glitch, times_a_second) in habits {
            let mut ledger = Ledger::new(0);
            for second in 0..10_000 {
                assert!((0..times_a_second).all(|_| ledger.pay(glitch, second * 1_000)), "{glitch:?}");
            }
            assert!(ledger.spent_us() <= 640, "{glitch:?}");
        }
    }
}
