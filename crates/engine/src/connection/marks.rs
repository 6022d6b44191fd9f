//! What is true of a connection, in one byte: a slot has room for no more.
//!
//! It must never decide anything.

use staunch_protocol::{Deadline, Timeouts};

use crate::limits::TURNED_AWAY_MS;

/// Deadlines of one that is turned away.
const TURNED_AWAY: Timeouts = Timeouts {
    header_ms: TURNED_AWAY_MS,
    keep_alive_ms: TURNED_AWAY_MS,
    body_ms: TURNED_AWAY_MS,
    send_ms: TURNED_AWAY_MS,
    linger_ms: TURNED_AWAY_MS,
    body_rate_min: 0,
};

/// A set of the constants here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);
    /// The peer had acknowledged what the connection notes, when it was looked at since the deadline of its
    /// send began.
    pub(crate) const SEEN: u8 = 1;
    /// What the peer acknowledges cannot be told.
    pub(crate) const BLIND: u8 = 1 << 1;
    /// The kernel was asked for it, and has not told yet.
    pub(crate) const ASKED: u8 = 1 << 2;
    /// The kernel keeps little of what is sent, see [`crate::Open::keep_little_unsent`].
    pub(crate) const KEEPS_LITTLE: u8 = 1 << 3;
    /// Some of that may wait for the peer: the deadline of a send is then that of its acknowledgement.
    pub(crate) const WAITS: u8 = 1 << 4;
    /// The peer will send no more.
    pub(crate) const ENDED: u8 = 1 << 5;
    /// Came when only reserved slots were left: whatever it asks, it is told to come back.
    pub(crate) const TURNED_AWAY: u8 = 1 << 6;
    /// An answer was handed over already.
    pub(crate) const ANSWERED: u8 = 1 << 7;

    /// Whether any of these is set.
    #[inline]
    pub(crate) fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    /// Sets these.
    #[inline]
    pub(crate) fn set(&mut self, marks: u8) {
        self.0 |= marks;
    }

    /// Clears these.
    #[inline]
    pub(crate) fn clear(&mut self, marks: u8) {
        self.0 &= !marks;
    }

    /// Whether all that was sent is acknowledged of which the kernel keeps little.
    #[inline]
    pub(crate) fn rests(self) -> bool {
        self.0 & (Self::KEEPS_LITTLE | Self::WAITS) == Self::KEEPS_LITTLE
    }

    /// Whether the peer will send no more.
    #[inline]
    pub(crate) fn has_ended(self) -> bool {
        self.has(Self::ENDED)
    }

    /// Whether the connection came when only reserved slots were left.
    #[inline]
    pub(crate) fn is_turned_away(self) -> bool {
        self.has(Self::TURNED_AWAY)
    }

    /// Notes that the kernel is asked. Whether it was asked already.
    pub(crate) fn ask(&mut self) -> bool {
        let is_asked = self.has(Self::ASKED);
        self.set(Self::ASKED);
        is_asked
    }

    /// Whether the kernel is to be asked what the peer has acknowledged before it is cut off.
    pub(crate) fn want_a_look(self, deadline: Deadline) -> bool {
        deadline == Deadline::Send && !self.has(Self::TURNED_AWAY | Self::BLIND)
    }

    /// How long the peer may take.
    #[inline]
    pub(super) fn timeouts(self, usual: &Timeouts) -> &Timeouts {
        if self.is_turned_away() { &TURNED_AWAY } else { usual }
    }
}
