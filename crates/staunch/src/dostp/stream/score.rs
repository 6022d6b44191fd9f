//! What a receiver counts of one stream.
//!
//! It owns the arithmetic of lateness, loss and jitter. It must never read a clock.

use staunch_dostp::kinds::Sender;
use staunch_dostp::kinds::realtime::{self, Receiver};

use super::report::{OneWay, StreamReport};
use super::words;

/// The sender of a stream, which has a [`Receiver`] of its own.
const SENDER: Sender = (1, 1);

/// How fast jitter follows: RFC 3550, section 6.4.1.
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// A stream as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Score {
    stream: u64,
    has_one_clock: bool,
    judge: Receiver,
    report: StreamReport,
    /// The greatest number that came, and one.
    end: u64,
    received: u64,
    took_us: i64,
    took_us_sum: f64,
}

impl Score {
    /// Begins a stream with this number.
    pub(super) fn new(stream: u64, from: String, has_one_clock: bool) -> Self {
        let report = StreamReport { from, ..StreamReport::default() };
        Self { stream, has_one_clock, report, ..Self::default() }
    }

    /// The number of the stream.
    pub(super) fn stream(&self) -> u64 {
        self.stream
    }

    /// Takes a message that came now; says whether it was one of this stream.
    pub(super) fn take(&mut self, message: &[u8], now_us: u64) -> bool {
        let numbers = realtime::read(message).and_then(|(_, _, value)| words::numbers(value));
        let is_counted = |(stream, number): &(u64, u64)| *stream == self.stream && *number < u64::MAX;
        let Some((_, number)) = numbers.filter(is_counted) else { return false };
        let Some(arrival) = self.judge.judge(SENDER, message, now_us) else { return false };
        let report = &mut self.report;
        if arrival.is_late {
            report.late += 1;
        } else {
            report.in_time += 1;
        }
        report.held_us_most = report.held_us_most.max(arrival.held_us);
        if number < self.end {
            report.out_of_order += 1;
        }
        self.end = self.end.max(number + 1);
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

    /// What was counted; `sent` is how many there were, if the sender has said so.
    pub(super) fn report(&self, sent: Option<u64>) -> StreamReport {
        let sent_at_least = sent.unwrap_or(0).max(self.end);
        StreamReport {
            sent: sent_at_least,
            is_whole: sent.is_some(),
            lost: sent_at_least.saturating_sub(self.received),
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
        let mut score = Score::new(9, "a".into(), true);
        // Number, and how long it took.
        for (number, took_us) in [(0, 100), (1, 116), (3, 700), (2, 100)] {
            let sent_us = 1_000 * number;
            let message = words::message(9, number, 64, DEADLINE_US, sent_us);
            assert!(score.take(&message, sent_us + took_us));
        }
        assert!(!score.take(&words::message(8, 0, 64, DEADLINE_US, 0), 0), "of another stream");
        assert!(!score.take(&words::message(9, u64::MAX, 64, DEADLINE_US, 0), 0), "no number has a next");
        let report = score.report(Some(6));
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
        let mut score = Score::new(9, "a".into(), false);
        score.take(&words::message(9, 4, 64, DEADLINE_US, 5_000_000), 7);
        let report = score.report(None);
        assert_eq!((report.sent, report.lost, report.is_whole, report.one_way_us), (5, 4, false, None));
        assert!(report.line().starts_with("from a: 5 or more sent, 1 in time, 0 too late, 4 lost"));
    }
}
