//! What children have seen, in memory that all of them and their parent share.
//!
//! Each child has numbers of its own, which only it writes and everybody may read at any time: so what was
//! measured is there even if a child is ended in mid-run. It must never be waited for.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::fault::{self, Fault, KINDS_MAX};
use crate::results::{ClientReport, Usage};
use crate::syscall::shared_words;

/// What stands before the children's numbers, in lines of the processor's cache of their own.
const READY: usize = 0;
const STOP: usize = 8;
const FIRST: usize = 16;

/// The numbers of a child.
const ANSWERED: usize = 0;
const CONNECTIONS: usize = 1;
const BYTES: usize = 2;
const FAILED: usize = 3;
const BEGAN_NS: usize = 4;
const ENDED_NS: usize = 5;
const USAGE: usize = 6;
const FAULTS: usize = 16;
/// So many words has each child: its counts and one for every kind of fault, in whole lines of the cache.
const CHILD_WORDS_COUNT: usize = (FAULTS + KINDS_MAX).next_multiple_of(8);

/// All numbers of a run.
pub(super) struct Board {
    words: &'static [AtomicU64],
}

impl Board {
    /// Room for so many children.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn new(children: usize) -> io::Result<Self> {
        Ok(Self { words: shared_words(FIRST + children * CHILD_WORDS_COUNT)? })
    }

    /// Children that wait for the begin.
    pub(super) fn ready(&self) -> usize {
        self.words[READY].load(Acquire) as usize
    }

    /// A child waits for the begin.
    pub(super) fn be_ready(&self) {
        self.words[READY].fetch_add(1, Release);
    }

    /// No child begins another loop.
    pub(super) fn stop(&self) {
        self.words[STOP].store(1, Relaxed);
    }

    /// Whether no child is to begin another loop.
    pub(super) fn is_stopped(&self) -> bool {
        self.words[STOP].load(Relaxed) != 0
    }

    /// The numbers of one child.
    pub(super) fn tally(&self, child: usize) -> Tally<'_> {
        Tally { words: &self.words[FIRST + child * CHILD_WORDS_COUNT..][..CHILD_WORDS_COUNT] }
    }

    fn tallies(&self) -> impl Iterator<Item = Tally<'_>> {
        self.words[FIRST..].chunks_exact(CHILD_WORDS_COUNT).map(|words| Tally { words })
    }

    /// Loops that have ended, well or badly.
    pub(super) fn loops_ended(&self) -> u64 {
        self.tallies().map(|tally| tally.get(ANSWERED) + tally.get(FAILED)).sum()
    }

    /// All of it together. A child that was ended did so `now_ns`; what processor time it used is not known.
    pub(super) fn report(&self, parent: &Usage, now_ns: u64) -> ClientReport {
        let mut report = ClientReport { usage: *parent, ..ClientReport::default() };
        let mut faults = [0; KINDS_MAX];
        let (mut first_ns, mut last_ns) = (u64::MAX, 0);
        for tally in self.tallies() {
            report.answered += tally.get(ANSWERED);
            report.connections += tally.get(CONNECTIONS);
            report.bytes += tally.get(BYTES);
            report.usage += tally.usage();
            for (kind, count) in faults.iter_mut().enumerate() {
                *count += tally.get(FAULTS + kind);
            }
            let (began_ns, ended_ns) = tally.span_ns(now_ns);
            first_ns = first_ns.min(began_ns);
            last_ns = last_ns.max(ended_ns);
            report.child_s.push(seconds(ended_ns - began_ns));
        }
        report.wall_s = seconds(last_ns.saturating_sub(first_ns));
        report.errors = fault::in_words(&faults);
        report
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The numbers of one child. Only that child adds to them, so nothing is lost without a lock.
#[derive(Clone, Copy)]
pub(super) struct Tally<'a> {
    words: &'a [AtomicU64],
}

impl Tally<'_> {
    fn get(self, word: usize) -> u64 {
        self.words[word].load(Acquire)
    }

    fn set(self, word: usize, value: u64) {
        self.words[word].store(value, Release);
    }

    fn add(self, word: usize, count: u64) {
        self.set(word, self.words[word].load(Relaxed) + count);
    }

    /// A connection was made.
    pub(super) fn connected(self) {
        self.add(CONNECTIONS, 1);
    }

    /// Bytes of an answer came, be it whole or not.
    pub(super) fn received(self, bytes: u64) {
        self.add(BYTES, bytes);
    }

    /// An answer came whole.
    pub(super) fn answered(self) {
        self.add(ANSWERED, 1);
    }

    /// So many loops came to nothing.
    pub(super) fn failed(self, fault: Fault, loops: u64) {
        self.add(FAULTS + fault.number(), loops);
        self.add(FAILED, loops);
    }

    /// The first connection is about to be made.
    pub(super) fn begin(self, now_ns: u64) {
        self.set(BEGAN_NS, now_ns);
    }

    /// The last loop has ended; meanwhile the child has used this.
    pub(super) fn end(self, now_ns: u64, usage: &Usage) {
        let micros = |seconds: f64| (seconds * 1e6).round() as u64;
        let words = [
            micros(usage.user_s),
            micros(usage.system_s),
            usage.minor_faults,
            usage.major_faults,
            usage.voluntary_switches,
            usage.involuntary_switches,
        ];
        for (index, value) in words.into_iter().enumerate() {
            self.set(USAGE + index, value);
        }
        self.set(ENDED_NS, now_ns);
    }

    fn usage(self) -> Usage {
        Usage {
            user_s: self.get(USAGE) as f64 / 1e6,
            system_s: self.get(USAGE + 1) as f64 / 1e6,
            minor_faults: self.get(USAGE + 2),
            major_faults: self.get(USAGE + 3),
            voluntary_switches: self.get(USAGE + 4),
            involuntary_switches: self.get(USAGE + 5),
        }
    }

    /// From its first connection to the end of its last, on the clock of [`Tally::begin`].
    fn span_ns(self, now_ns: u64) -> (u64, u64) {
        let or_now = |ns| if ns == 0 { now_ns } else { ns };
        (or_now(self.get(BEGAN_NS)), or_now(self.get(ENDED_NS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_saw_is_added_up() {
        let board = Board::new(3).expect("memory");
        let spent = Usage { user_s: 0.25, system_s: 0.5, voluntary_switches: 7, ..Usage::default() };
        for (number, ended_ns) in [(0, 3_000_000_000), (1, 2_500_000_000)] {
            let tally = board.tally(number);
            tally.begin(1_000_000_000);
            for _ in 0..10 {
                tally.connected();
                tally.received(4000);
                tally.answered();
            }
            tally.failed(Fault::Short, 2);
            tally.end(ended_ns, &spent);
        }
        // The third was ended before it could say what it had used.
        let third = board.tally(2);
        third.begin(2_000_000_000);
        third.failed(Fault::NotTried, 90);
        assert_eq!(board.loops_ended(), 2 * 12 + 90);
        let report = board.report(&spent, 4_000_000_000);
        assert_eq!((report.answered, report.connections, report.bytes), (20, 20, 80_000));
        assert_eq!((report.wall_s, &report.child_s[..]), (3.0, &[2.0, 1.5, 2.0][..]));
        let errors = [("not tried after timing out".to_owned(), 90), ("short answer".to_owned(), 4)];
        assert_eq!((&report.errors[..], report.failed()), (&errors[..], 94));
        assert_eq!((report.usage.user_s, report.usage.system_s), (0.75, 1.5));
        assert_eq!(report.usage.voluntary_switches, 21);
    }

    #[test]
    fn children_can_be_told() {
        let board = Board::new(1).expect("memory");
        assert!(!board.is_stopped() && board.ready() == 0);
        board.be_ready();
        board.stop();
        assert!(board.is_stopped() && board.ready() == 1);
        assert_eq!(board.report(&Usage::default(), 5).wall_s, 0.0);
    }
}
