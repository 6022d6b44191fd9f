//! The counts that a receiver keeps of one stream.
//!
//! This module owns the arithmetic of lateness, loss and jitter. A score must never read a clock.

use staunch_dostp::kinds::Sender;
use staunch_dostp::kinds::realtime::{self, Receiver};

use super::report::{OneWay, StreamReport};
use super::window::{Coming, Window};
use super::words;

/// The sender of a stream, which has a [`Receiver`] of its own.
const SENDER: Sender = (1, 1);

/// The gain with which jitter follows: RFC 3550, section 6.4.1.
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// Messages that a stream may have at once, beyond one for each microsecond since it began: no sender's
/// rate is greater, and clocks differ a little.
const SENT_SLACK: u64 = 1_000_000;

/// A stream as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Score {
    stream: u64,
    has_one_clock: bool,
    judge: Receiver,
    report: StreamReport,
    /// When it was begun.
    begun_us: u64,
    numbers: Window,
    /// The number of messages that were sent, once the sender has said so.
    sent: Option<u64>,
    received: u64,
    took_us: i64,
    took_us_sum: f64,
}

impl Score {
    /// Begins a stream with this number now.
    pub(super) fn new(stream: u64, from: String, has_one_clock: bool, now_us: u64) -> Self {
        let report = StreamReport { from, ..StreamReport::default() };
        Self { stream, has_one_clock, report, begun_us: now_us, ..Self::default() }
    }

    /// Whether a message of it has come.
    pub(super) fn has_any(&self) -> bool {
        self.received > 0
    }

    /// Takes the sender's word for how many were sent; says whether there can be so many by now.
    pub(super) fn end(&mut self, sent: u64, now_us: u64) -> bool {
        let can_be = sent <= self.sent_most(now_us);
        if can_be {
            self.sent = Some(sent);
        }
        can_be
    }

    fn sent_most(&self, now_us: u64) -> u64 {
        let can_be = now_us.saturating_sub(self.begun_us).saturating_add(SENT_SLACK);
        self.sent.unwrap_or(u64::MAX).min(can_be)
    }

    /// The number of the stream.
    pub(super) fn stream(&self) -> u64 {
        self.stream
    }

    /// Takes a message that came now; says whether it was one of this stream.
    pub(super) fn take(&mut self, message: &[u8], now_us: u64) -> bool {
        let numbers = realtime::read(message).and_then(|(_, _, value)| words::numbers(value));
        let sent_most = self.sent_most(now_us);
        let is_counted = |(stream, number): &(u64, u64)| *stream == self.stream && *number < sent_most;
        let Some((_, number)) = numbers.filter(is_counted) else { return false };
        let end = self.numbers.end();
        match self.numbers.take(number) {
            Coming::New => {}
            Coming::Copy => {
                self.report.copies += 1;
                return true;
            }
            Coming::Old => return false,
        }
        let Some(arrival) = self.judge.judge(SENDER, message, now_us) else { return false };
        let report = &mut self.report;
        if arrival.is_late {
            report.late += 1;
        } else {
            report.in_time += 1;
        }
        report.held_us_most = report.held_us_most.max(arrival.held_us);
        if number < end {
            report.out_of_order += 1;
        }
        if self.received > 0 {
            let difference_us = arrival.took_us.wrapping_sub(self.took_us).unsigned_abs() as f64;
            report.jitter_us += (difference_us - report.jitter_us) * JITTER_GAIN;
        }
        self.took_us = arrival.took_us;
        if self.has_one_clock {
            let took_us = u64::try_from(arrival.took_us).unwrap_or(0);
            let first = OneWay { least: took_us, mean: 0.0, most: took_us };
            let known = report.one_way_us.unwrap_or(first);
            self.took_us_sum += took_us as f64;
            report.one_way_us = Some(OneWay {
                least: known.least.min(took_us),
                mean: self.took_us_sum / (self.received + 1) as f64,
                most: known.most.max(took_us),
            });
        }
        self.received += 1;
        true
    }

    /// The report about the stream until now.
    pub(super) fn report(&self) -> StreamReport {
        let sent = self.sent.unwrap_or(self.numbers.end());
        // A message of somebody else with a greater number hides no loss.
        let received = self.received.saturating_sub(self.numbers.count_from(sent));
        StreamReport {
            sent,
            is_whole: self.sent.is_some(),
            lost: sent.saturating_sub(received),
            ..self.report.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE_US: u32 = 500;

    #[test]
    fn what_comes_is_counted_by_its_number_and_its_time() {
        let mut score = Score::new(9, "a".into(), true, 0);
        // Number, and how long it took.
        for (number, took_us) in [(0, 100), (1, 116), (3, 700), (2, 100)] {
            let sent_us = 1_000 * number;
            let message = words::message(9, number, 64, DEADLINE_US, sent_us);
            assert!(score.take(&message, sent_us + took_us));
        }
        assert!(!score.take(&words::message(8, 0, 64, DEADLINE_US, 0), 0), "of another stream");
        assert!(!score.take(&words::message(9, u64::MAX, 64, DEADLINE_US, 0), 0), "no number has a next");
        assert!(score.end(6, 6_000));
        let report = score.report();
        let StreamReport { sent, in_time, late, lost, out_of_order, held_us_most, .. } = report;
        assert_eq!([sent, in_time, late, lost, out_of_order, held_us_most], [6, 3, 1, 2, 1, 600]);
        // Differences of 16, 584 and 600 us, each a sixteenth of the way.
        let expected = [16.0, 584.0, 600.0].iter().fold(0.0, |jitter, of| jitter + (of - jitter) / 16.0);
        assert!((report.jitter_us - expected).abs() < 1e-9);
        assert_eq!(report.one_way_us, Some(OneWay { least: 100, mean: 254.0, most: 700 }));
        let line = report.line();
        assert!(line.starts_with("from a: 6 sent, 3 in time, 1 too late, 2 lost, 1 out of order;"), "{line}");
    }

    #[test]
    fn of_a_sender_that_did_not_end_is_told_what_it_has_sent_at_least() {
        let mut score = Score::new(9, "a".into(), false, 0);
        score.take(&words::message(9, 4, 64, DEADLINE_US, 5_000_000), 7);
        let report = score.report();
        assert_eq!((report.sent, report.lost, report.is_whole, report.one_way_us), (5, 4, false, None));
        assert!(report.line().starts_with("from a: 5 or more sent, 1 in time, 0 too late, 4 lost"));
    }

    #[test]
    fn a_copy_is_counted_by_itself_however_late_it_is_and_hides_no_loss() {
        let mut score = Score::new(9, "a".into(), false, 0);
        for number in (0..100).filter(|number| *number != 50).chain([0, 1]) {
            assert!(score.take(&words::message(9, number, 64, DEADLINE_US, 0), number));
        }
        assert!(score.end(100, 0));
        let StreamReport { in_time, late, lost, copies, .. } = score.report();
        assert_eq!((in_time + late, lost, copies), (99, 1, 2));
        assert!(score.report().line().contains(", 2 copies; "), "{}", score.report().line());
    }

    #[test]
    fn numbers_that_cannot_be_yet_or_that_the_sender_did_not_send_are_not_counted() {
        let mut score = Score::new(9, "a".into(), false, 1_000);
        let message = |number| words::message(9, number, 64, DEADLINE_US, 0);
        for number in [u64::MAX - 1, SENT_SLACK + 5] {
            assert!(!score.take(&message(number), 1_005), "{number}");
        }
        assert!(score.take(&message(0), 1_005) && score.take(&message(7), 1_005));
        assert!(!score.end(SENT_SLACK + 6, 1_005) && score.end(3, 1_005));
        assert!(!score.take(&message(3), 1_005) && score.take(&message(2), 1_005));
        let StreamReport { sent, lost, is_whole, .. } = score.report();
        assert_eq!((sent, lost, is_whole), (3, 1, true));
    }
}
