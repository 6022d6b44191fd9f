//! Which deadline of a connection runs, and how progress moves it.
//!
//! It must never ask the time, or cut off a peer of which it is not known what it has acknowledged.

use staunch_netio::Taken;
use staunch_protocol::{Deadline, Timeouts};

use super::marks::Marks;
use super::{Connection, Phase};
use crate::exchange::under_way::UnderWay;
use crate::limits::{LOOK_PART, MARK_BYTES, UNTOLD_MS};

impl Connection {
    /// The send or lingering deadline runs from now.
    #[inline]
    pub(crate) fn start_deadline(&mut self, deadline: Deadline, now_ms: u64, timeouts: &Timeouts) {
        // While something waits to be acknowledged, more that is sent changes nothing of since when.
        if self.marks.has(Marks::WAITS) && deadline == Deadline::Send {
            return;
        }
        self.marks.clear(Marks::SEEN | Marks::BLIND);
        self.deadline_ms = now_ms + u64::from(self.marks.timeouts(timeouts).length_ms(deadline));
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

    /// The kernel has told what the peer has acknowledged: so many bytes since the last look. A deadline is
    /// one of what the peer takes, not of what the kernel takes for it, which reports nothing before there is
    /// room for 128 KiB.
    pub(crate) fn note_taken(&mut self, taken: Option<Taken>, rate_min: u64, now_ms: u64, usual: &Timeouts) {
        let timeouts = *self.marks.timeouts(usual);
        let Some(taken) = taken else {
            if !self.marks.has(Marks::SEEN | Marks::BLIND) {
                self.marks.set(Marks::BLIND);
                self.deadline_ms += UNTOLD_MS;
            }
            return;
        };
        if !self.marks.has(Marks::SEEN) {
            // A first look that comes late leaves the peer some time until the second.
            let least_ms = now_ms + u64::from(timeouts.length_ms(Deadline::Send) / LOOK_PART);
            self.deadline_ms = self.deadline_ms.max(least_ms);
        }
        let bytes = self.acknowledged(taken);
        if bytes > 0 {
            self.progress(bytes, rate_min, now_ms, &timeouts);
            self.marks.set(Marks::SEEN);
            if let Some(http2) = self.exchanges.http2_mut() {
                http2.note_acknowledged(bytes, rate_min, now_ms);
            }
        }
    }

    /// How much the peer has acknowledged since it was looked at last, if it was: to 16 bytes, which is all
    /// that a slot has room for, and of up to a megabyte, for the kernel reports more by itself.
    fn acknowledged(&mut self, taken: Taken) -> u32 {
        let mark = (taken.mark / MARK_BYTES) as u16;
        let before = std::mem::replace(&mut self.mark, mark);
        let was_seen = self.marks.has(Marks::SEEN);
        self.marks.set(Marks::SEEN);
        if was_seen { u32::from(mark.wrapping_sub(before)) * MARK_BYTES as u32 } else { 0 }
    }

    /// What was sent of an answer that goes on was taken by the kernel, which keeps little of it.
    pub(crate) fn await_acknowledgement(&mut self, now_ms: u64, gone_ms: u32) {
        self.marks.set(Marks::WAITS);
        self.marks.clear(Marks::SEEN | Marks::BLIND);
        self.deadline_ms = now_ms + u64::from(gone_ms);
    }

    /// The kernel has told how much of that the peer has acknowledged. Whether the peer is given up.
    pub(crate) fn is_gone(&mut self, taken: Option<Taken>, now_ms: u64, gone_ms: u32) -> bool {
        let Some(taken) = taken.filter(|taken| taken.left_bytes > 0) else {
            self.marks.clear(Marks::WAITS | Marks::SEEN | Marks::BLIND);
            self.forget_kernel();
            self.deadline_ms = now_ms + u64::from(gone_ms);
            return false;
        };
        // Until something is sent again, the kernel's memory counts as the connection's.
        let left_bytes = u32::try_from(taken.left_bytes).unwrap_or(u32::MAX);
        self.in_flight_bytes = self.in_flight_bytes.max(left_bytes);
        let was_seen = self.marks.has(Marks::SEEN);
        if self.acknowledged(taken) == 0 && was_seen {
            return self.deadline_ms <= now_ms;
        }
        self.deadline_ms = now_ms + u64::from(gone_ms);
        false
    }

    /// The kernel's memory counts no longer.
    fn forget_kernel(&mut self) {
        if !self.sending {
            self.in_flight_bytes = 0;
        }
    }

    /// Whether the kernel keeps little of what is sent from now on.
    pub(crate) fn keep_little(&mut self, keeps_little: bool) {
        self.forget_kernel();
        self.marks.clear(Marks::KEEPS_LITTLE | Marks::WAITS);
        if keeps_little {
            self.marks.set(Marks::KEEPS_LITTLE);
        }
    }

    /// When a send is to be looked at next: a while after its deadline began, and as that passes.
    fn send_look_ms(&self, timeouts: &Timeouts) -> u64 {
        const LATER: u8 = Marks::SEEN | Marks::BLIND | Marks::ASKED | Marks::TURNED_AWAY | Marks::WAITS;
        let is_first = !self.marks.has(LATER);
        if is_first { look_ms(self.deadline_ms, timeouts) } else { self.deadline_ms }
    }

    /// The deadline that is running, and when it ends or something is to be looked at before.
    #[inline]
    pub(crate) fn due(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        match self.phase {
            Phase::Free => None,
            Phase::Lingering => Some((self.deadline_ms, Deadline::Linger)),
            Phase::Open if self.exchanges.http2().is_some() => self.due_http2(self.marks.timeouts(timeouts)),
            _ if self.sending => Some((self.send_look_ms(self.marks.timeouts(timeouts)), Deadline::Send)),
            Phase::Closing => None,
            Phase::Open if !self.exchanges.are_none() => self.due_exchanging(self.marks.timeouts(timeouts)),
            _ => self.session.poll_timeout(self.marks.timeouts(timeouts)),
        }
    }
}

impl Connection {
    /// The deadline of an exchange that is not over at once, while nothing is being sent.
    fn due_exchanging(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let takes_body = self.exchanges.one().is_some_and(UnderWay::takes_body);
        let of_session = takes_body.then(|| self.session.poll_timeout(timeouts)).flatten();
        let of_peer = self.marks.has(Marks::WAITS).then_some((self.deadline_ms, Deadline::Send));
        of_session.into_iter().chain(of_peer).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// The deadline of an HTTP/2 connection: a container may be in flight while a stream waits for its peer.
    fn due_http2(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let of_session = self.exchanges.http2().and_then(|http2| http2.due(timeouts));
        // A stream waits for its window: it is looked at a while before, as a send is.
        let is_first = !self.marks.has(Marks::SEEN | Marks::BLIND | Marks::ASKED);
        let of_session = of_session.map(|(at_ms, deadline)| match deadline {
            Deadline::Send if is_first => (look_ms(at_ms, timeouts), deadline),
            _ => (at_ms, deadline),
        });
        if !self.sending {
            return of_session;
        }
        let of_send = (self.send_look_ms(timeouts), Deadline::Send);
        let of_session = of_session.filter(|(_, deadline)| *deadline != Deadline::KeepAlive);
        of_session.into_iter().chain([of_send]).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// The deadline that has passed is that of the connection as a whole: of what is in flight, or of the
    /// peer's own close.
    pub(crate) fn is_stuck(&self, deadline: Deadline, now_ms: u64) -> bool {
        match deadline {
            Deadline::Linger => self.phase == Phase::Lingering,
            Deadline::Send => self.sending && self.deadline_ms <= now_ms,
            _ => false,
        }
    }
}

/// When that is looked at first which has to make progress until then.
fn look_ms(deadline_ms: u64, timeouts: &Timeouts) -> u64 {
    let length_ms = timeouts.length_ms(Deadline::Send);
    deadline_ms.saturating_sub(u64::from(length_ms - length_ms / LOOK_PART))
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
