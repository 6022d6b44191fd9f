//! The line of connections before the server: how long it is, how old its head, how fast it moves.
//!
//! Three estimates, of which all control is made:
//!
//! - **head**: the shortest time from handshake to first read among those read in this tick. A server reads
//!   from the oldest first, so it is how long the line is in time. When nobody was read it grows with time.
//! - **queue**: connections established since the head was, but no more than wait at all. Those who opened a
//!   connection and send nothing are older than the head, so they are not counted: they do not stand in line.
//! - **rate**: first reads a second while the head is older than the tick, for only then the server was busy
//!   throughout and the count is what it can do, not what it was asked for. It falls only when that has
//!   lasted for 50 ms.

use super::history::History;
use crate::observation::Observation;

/// What the rate is a mean of: long against a tick, short against a second.
const RATE_NS: f64 = 100_000_000.0;
/// It is a mean of so many connections at least, for a slow server: 100 of exponential length are known to
/// 10 %.
const RATE_CONNECTIONS: f64 = 100.0;
/// But of no more than this, or it would not follow.
const RATE_NS_LIMIT: f64 = 500_000_000.0;
/// A former rate counts as much as so many connections when a new busy time begins, within two bounds of
/// time.
const FORMER_CONNECTIONS: f64 = 20.0;
const FORMER_NS: (f64, f64) = (20_000_000.0, 100_000_000.0);
/// The rate falls only in a busy time of this length: a host that stalls for some milliseconds makes a line
/// of those who came meanwhile, and what is read in the stall says nothing of the server.
const STALL_NS: f64 = 50_000_000.0;
/// A tick as late as this means that the host stood still, if it is the first such: nothing is read from it.
const STOOD_NS: u64 = 40_000_000;
/// What is sure of the rate is a mean over so much busy time and, within limits, so many connections: release
/// is decided by it, and nothing is in haste.
const SURE_NS: f64 = 1_000_000_000.0;
const SURE_NS_LIMIT: f64 = 8_000_000_000.0;
const SURE_CONNECTIONS: f64 = 2_000.0;
/// Without being busy the server shows by what it does that it can do it, over this time.
const FLOW_NS: u64 = 500_000_000;
/// What was served in so long the server can do, whatever it was asked for before.
const SHOWN_NS: u64 = 10_000_000;
/// When nobody was read for so long, silence says something of the application only if its accept queue
/// fills.
pub(crate) const SILENCE_NS: u64 = 50_000_000;
/// An accept queue as full as this is lost anyhow: the kernel is about to drop.
pub(crate) const FULL_SHARE: f64 = 0.95;
/// Ages come in quarter octaves by their lower edge: the true one is up to 19 % above.
const AGE_ROUNDED: f64 = 1.19;
/// A wait nobody waits: what is said when nothing moves.
const WAIT_S_LIMIT: f64 = 10.0;

/// The line before the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    /// First reads a second when busy; 0 until there were any.
    pub rate: f64,
    /// Connections that stand in line.
    pub queue: f64,
    /// Age of the head.
    pub head_ns: u64,
    /// Since somebody was read last, while somebody waits.
    pub silent_ns: u64,
    /// Whether the server was busy all the tick.
    pub busy: bool,
    shown: f64,
    busy_ns: f64,
    was_late: bool,
    sure_rate: f64,
    sure_ns: f64,
    waiting_before: u64,
}

impl Line {
    /// Takes a tick in. `unknown_count` says whether SYN of unknown sources are likely to become connections;
    /// it matters only where nobody counts connections.
    pub(crate) fn see(&mut self, o: &Observation, interval_ns: u64, history: &History, unknown_count: bool) {
        let begun = match o.connections {
            Some(connections) => {
                self.see_ages(o, interval_ns, history);
                history.tick().begun.min(connections.established.max(connections.begun))
            }
            None => self.see_queue(o, interval_ns, history, unknown_count),
        };
        let last = history.last(SHOWN_NS);
        self.shown = last.begun as f64 * 1e9 / last.at_ns.max(1) as f64;
        self.learn(begun as f64, interval_ns as f64, history);
    }

    /// How long one who comes now will wait, in seconds (Little).
    pub(crate) fn wait_s(&self) -> f64 {
        self.wait_at(self.rate)
    }

    /// The same at the shown rate: the least it can be.
    pub(crate) fn shown_wait_s(&self) -> f64 {
        self.wait_at(self.shown_rate())
    }

    /// How long those read in this tick had waited at least, in seconds; 0 if nobody was read.
    pub(crate) fn waited_s(&self) -> f64 {
        if self.silent_ns == 0 { self.head_ns as f64 / 1e9 } else { 0.0 }
    }

    /// The rate, or what was served just now if that is more: of a server that had nothing to do the rate is
    /// what it was asked for.
    pub(crate) fn shown_rate(&self) -> f64 {
        self.rate.max(self.shown)
    }

    /// The rate over a longer time; where no line was old enough for long enough to measure it, what was
    /// seen to be possible.
    pub(crate) fn sure_rate(&self) -> f64 {
        if self.sure_ns >= RATE_NS { self.sure_rate } else { self.rate }
    }

    fn wait_at(&self, rate: f64) -> f64 {
        match self.queue {
            queue if queue < 1.0 => 0.0,
            queue if rate > 0.0 => (queue / rate).min(WAIT_S_LIMIT),
            _ => WAIT_S_LIMIT,
        }
    }

    fn see_ages(&mut self, o: &Observation, interval_ns: u64, history: &History) {
        let Some(connections) = o.connections else { return };
        match connections.wait_ns_min {
            Some(age) if history.tick().begun > 0 => (self.head_ns, self.silent_ns) = (age, 0),
            _ if connections.waiting == 0 => (self.head_ns, self.silent_ns) = (0, 0),
            _ => {
                self.head_ns = self.head_ns.saturating_add(interval_ns);
                self.silent_ns = self.silent_ns.saturating_add(interval_ns);
            }
        }
        let since_ns = self.head_ns as f64 * AGE_ROUNDED + interval_ns as f64 / 2.0;
        self.queue = history.established_in(since_ns as u64).min(connections.waiting as f64);
        let in_accept_queue = o.queue.is_some_and(|queue| queue.waiting > 0);
        let tells = self.silent_ns < SILENCE_NS || in_accept_queue;
        self.busy = self.head_ns >= interval_ns.max(1) && self.queue >= 1.0 && tells;
    }

    /// Without a tracker: those who were let in and are not in the accept queue were accepted.
    fn see_queue(
        &mut self,
        o: &Observation,
        interval_ns: u64,
        history: &History,
        unknown_count: bool,
    ) -> u64 {
        let waiting = o.queue.map_or(0, |queue| queue.waiting);
        let [known, verified, unknown] = history.tick().passed;
        let came = known + verified + if unknown_count { unknown } else { 0 };
        let begun = came.saturating_add(self.waiting_before).saturating_sub(waiting);
        let shortest = waiting.min(self.waiting_before) as f64;
        self.head_ns = if self.rate > 0.0 { (shortest / self.rate * 1e9) as u64 } else { 0 };
        self.busy = shortest > 0.0;
        self.silent_ns =
            if begun == 0 && waiting > 0 { self.silent_ns.saturating_add(interval_ns) } else { 0 };
        (self.queue, self.waiting_before) = (waiting as f64, waiting);
        begun
    }

    /// While the server is busy for longer than a stall the rate follows what it does; else it only rises, to
    /// what was seen to be possible.
    fn learn(&mut self, begun: f64, interval_ns: f64, history: &History) {
        if interval_ns <= 0.0 {
            return;
        }
        if !self.busy {
            self.busy_ns = 0.0;
            let last = history.last(FLOW_NS);
            let flow = last.begun as f64 * 1e9 / last.at_ns.max(1) as f64;
            let first = last.at_ns < FLOW_NS && self.sure_ns == 0.0;
            self.rate =
                if first { flow } else { self.rate.max(if last.at_ns < FLOW_NS { 0.0 } else { flow }) };
            return;
        }
        let is_late = interval_ns >= STOOD_NS as f64;
        let was_late = std::mem::replace(&mut self.was_late, is_late);
        if is_late && !was_late {
            return;
        }
        let sample = begun * 1e9 / interval_ns;
        if self.sure_ns <= 0.0 {
            self.rate = self.rate.max(sample);
        }
        let long = (RATE_CONNECTIONS * 1e9 / self.rate.max(1.0)).clamp(RATE_NS, RATE_NS_LIMIT);
        let former = (FORMER_CONNECTIONS * 1e9 / self.rate.max(1.0)).clamp(FORMER_NS.0, FORMER_NS.1);
        let weight = interval_ns / (interval_ns + (self.busy_ns + former).min(long));
        let sure = self.busy_ns >= STALL_NS || self.sure_ns <= 0.0;
        if sure || sample > self.rate {
            self.rate += (sample - self.rate) * weight;
        }
        self.busy_ns = (self.busy_ns + interval_ns).min(RATE_NS_LIMIT);
        if !sure {
            return;
        }
        let long = (SURE_CONNECTIONS * 1e9 / self.rate.max(1.0)).clamp(SURE_NS, SURE_NS_LIMIT);
        self.sure_ns = (self.sure_ns + interval_ns).min(long);
        self.sure_rate += (sample - self.sure_rate) * (interval_ns / self.sure_ns).min(1.0);
    }
}
