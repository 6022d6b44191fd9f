//! Which deadline of a connection runs, and how progress moves it.
//!
//! It must never ask the time.

use staunch_protocol::{Deadline, Timeouts};

use super::{Connection, Phase};
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

impl Connection {
    /// The send or lingering deadline runs from now.
    #[inline]
    pub(crate) fn start_deadline(&mut self, deadline: Deadline, now_ms: u64, timeouts: &Timeouts) {
        self.deadline_ms = now_ms + u64::from(self.timeouts(timeouts).length_ms(deadline));
    }

    /// The peer took so many bytes: the send deadline begins anew, unless the peer is to take a minimum on
    /// the mean; then it moves by a second for every `rate_min` bytes.
    pub(crate) fn progress(&mut self, bytes: u32, rate_min: u64, now_ms: u64, timeouts: &Timeouts) {
        let before_ms = self.deadline_ms;
        self.start_deadline(Deadline::Send, now_ms, timeouts);
        if let Some(earned_ms) = (u64::from(bytes) * 1000).checked_div(rate_min) {
            self.deadline_ms = self.deadline_ms.min(before_ms + earned_ms);
        }
    }

    #[inline]
    pub(super) fn timeouts<'a>(&self, usual: &'a Timeouts) -> &'a Timeouts {
        if self.turned_away { &TURNED_AWAY } else { usual }
    }

    /// The deadline that is running, and when it ends.
    #[inline]
    pub(crate) fn due(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        match self.phase {
            Phase::Free => None,
            Phase::Lingering => Some((self.deadline_ms, Deadline::Linger)),
            Phase::Http2 => self.due_http2(self.timeouts(timeouts)),
            _ if self.sending => Some((self.deadline_ms, Deadline::Send)),
            Phase::Closing => None,
            Phase::Exchanging if !self.under_way.takes_body() => None,
            _ => self.session.poll_timeout(self.timeouts(timeouts)),
        }
    }
}

impl Connection {
    /// The same of HTTP/2, where a container may be in flight while a stream waits for its peer.
    fn due_http2(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let of_session = self.under_way.http2().and_then(|http2| http2.due(timeouts));
        if !self.sending {
            return of_session;
        }
        let of_send = (self.deadline_ms, Deadline::Send);
        let of_session = of_session.filter(|(_, deadline)| *deadline != Deadline::KeepAlive);
        of_session.into_iter().chain([of_send]).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// The deadline that has passed is that of the connection as a whole: of what is in flight, or of the
    /// peer's own close.
    pub(crate) fn is_stuck(&self, deadline: Deadline, now_ms: u64) -> bool {
        match deadline {
            Deadline::Linger => true,
            Deadline::Send => self.sending && self.deadline_ms <= now_ms,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes every so many milliseconds; gives when the deadline cut it off, if ever.
    fn cut_off_ms(bytes: u32, every_ms: u64, rate_min: u64) -> Option<u64> {
        let timeouts = Timeouts { send_ms: 30_000, ..Timeouts::default() };
        let mut connection = Connection::free();
        connection.start_deadline(Deadline::Send, 0, &timeouts);
        for now_ms in (every_ms..1_000_000).step_by(every_ms as usize) {
            if connection.deadline_ms < now_ms {
                return Some(connection.deadline_ms);
            }
            connection.progress(bytes, rate_min, now_ms, &timeouts);
        }
        None
    }

    #[test]
    fn a_slow_reader_finishes_and_one_that_only_pretends_does_not() {
        assert_eq!(cut_off_ms(1, 1_000, 0), None, "no minimum is asked for");
        assert_eq!(cut_off_ms(1, 31_000, 0), Some(30_000), "no progress in time");
        assert_eq!(cut_off_ms(100, 1_000, 100), None);
        assert_eq!(cut_off_ms(3_000, 25_000, 100), None, "in bursts");
        assert_eq!(cut_off_ms(1, 1_000, 100), Some(30_300));
        assert_eq!(cut_off_ms(50, 1_000, 100), Some(60_000 - 500), "half of it lasts twice as long");
    }
}
