//! The time of the present turn, read as it begins.
//!
//! The date must never change in between. The time does only in a turn so long that `pressure/pace` has the
//! clock looked at again: else all that happens in a turn happens at once.

use std::time::UNIX_EPOCH;

use staunch_netio::Io;

/// The time of the present turn.
pub(crate) struct Time {
    pub(crate) now_ms: u64,
    /// The moment of `now_ms`, in nanoseconds.
    pub(crate) now_ns: u64,
    /// How long the last turn worked. 0 while nothing is measured.
    pub(crate) last_turn_ns: u64,
    /// What `now_ms` was at the beginning of 1970, wrapped round.
    pub(crate) epoch_ms: u64,
    pub(crate) date: [u8; 29],
    pub(crate) date_until_ms: u64,
}

impl Time {
    /// Before the first turn.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { now_ms, now_ns: 0, last_turn_ns: 0, epoch_ms: 0, date: [b' '; 29], date_until_ms: 0 }
    }

    /// Reads the clock; the wall clock only when the date line has grown old.
    #[inline]
    pub(crate) fn read(&mut self, io: &impl Io) {
        self.now_ns = io.now_ns();
        self.now_ms = self.now_ns / 1_000_000;
        if self.now_ms >= self.date_until_ms {
            let wall = io.wall_time();
            let unix_ms = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
            self.epoch_ms = self.now_ms.wrapping_sub(unix_ms);
            self.date_until_ms = self.now_ms + 1000 - unix_ms % 1000;
            let text = httpdate::fmt_http_date(wall.max(UNIX_EPOCH));
            self.date.copy_from_slice(&text.as_bytes()[..29]);
        }
    }
}
