//! The line of connections before the server: how long it is, how old its head, how fast it moves.
//!
//! Who stands in line has sent something, and waits for the server to begin. Connections on which nothing has
//! come are silent: they are in no line, however many they are and however long they stay.
//!
//! Three estimates, of which all control is made:
//!
//! - **head**: the shortest wait among those the server began with in this tick. A server takes the oldest
//!   first, so it is how long the line is in time. When it began with nobody it grows with time.
//! - **queue**: connections that began to wait since the head did, but no more than wait at all.
//! - **rate**: beginnings a second while the head is older than the tick, for only then the server was busy
//!   throughout and the count is what it can do, not what it was asked for. It falls only when that has
//!   lasted for 50 ms. A server that begins with nobody for that long has stopped, and says nothing of how
//!   fast
//!   it is: when it goes on within a second it was slow, and the time counts; later it does not.
//!
//! A line that does not move for a second is not believed: the sockets themselves are asked, and who does not
//! wait in truth is left out from then on.

use super::history::{History, plausible};
use crate::observation::{Connections, Observation};

/// What the rate is a mean of: long against a tick, short against a second.
const RATE_NS: f64 = 100_000_000.0;
/// The rate is a mean of so many connections at least, for a slow server: 100 of exponential length are known
/// to 10 %.
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
/// A server that stood still for longer was not slow, but stopped.
const HELD_NS_LIMIT: f64 = 1e9;
/// What is sure of the rate is a mean over so much busy time and, within limits, so many connections: release
/// is decided by it, and nothing is in haste.
const SURE_NS: f64 = 1_000_000_000.0;
const SURE_NS_LIMIT: f64 = 8_000_000_000.0;
const SURE_CONNECTIONS: f64 = 2_000.0;
/// Without being busy the server shows by what it does that it can do it, over this time.
const FLOW_NS: u64 = 500_000_000;
/// What was served in so long the server can do, whatever it was asked for before.
const SHOWN_NS: u64 = 10_000_000;
/// When the server began with nobody for so long, it may be that it stands still.
pub(crate) const STILL_NS: u64 = 50_000_000;
/// A line that stands as still as this is not believed.
const DOUBT_NS: u64 = 1_000_000_000;
/// While all come in, fewer are not asked after: they cannot bring about anything.
const DOUBT_COUNT: u64 = 20;
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
    /// Since the server began with somebody last, while somebody waits.
    pub still_ns: u64,
    /// Whether the server was busy all the tick.
    pub busy: bool,
    shown: f64,
    busy_ns: f64,
    was_late: bool,
    sure_rate: f64,
    sure_ns: f64,
    waiting_before: u64,
    held_ns: f64,
    waiting: u64,
    /// Counted as waiting, which the sockets do not show.
    unfounded: u64,
    inherited: Option<u64>,
    since_start_ns: u64,
    asked_ns: u64,
    corrected: Option<Corrected>,
}

/// What the sockets themselves have told of a line that did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// Connections that were thought to wait.
    pub thought: u64,
    /// Connections that do.
    pub waiting: u64,
}

impl Line {
    /// Takes a tick in. `unknown_count` says whether SYN of unknown sources are likely to become connections;
    /// it matters only where nobody counts connections.
    pub(crate) fn see(&mut self, o: &Observation, interval_ns: u64, history: &History, unknown_count: bool) {
        let begun = match o.connections {
            Some(connections) => {
                self.see_ages(o, interval_ns, history);
                history.tick().begun.min(connections.begun)
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

    /// How long a client who comes now will wait at the shown rate, in seconds: the least it can be.
    pub(crate) fn shown_wait_s(&self) -> f64 {
        self.wait_at(self.shown_rate())
    }

    /// How long those read in this tick had waited at least, in seconds; 0 if nobody was read.
    pub(crate) fn waited_s(&self) -> f64 {
        if self.still_ns == 0 { self.head_ns as f64 / 1e9 } else { 0.0 }
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
        self.correct(connections.waiting, o.sockets_waiting);
        let waiting = plausible(connections.waiting).saturating_sub(self.unfounded);
        self.waiting = waiting;
        match connections.wait_ns_min {
            Some(age) if history.tick().begun > 0 => (self.head_ns, self.still_ns) = (age, 0),
            _ if waiting == 0 => (self.head_ns, self.still_ns) = (0, 0),
            _ => {
                self.head_ns = self.head_ns.saturating_add(interval_ns);
                self.still_ns = self.still_ns.saturating_add(interval_ns);
            }
        }
        let since_ns = self.head_ns as f64 * AGE_ROUNDED + interval_ns as f64 / 2.0;
        self.since_start_ns = self.since_start_ns.saturating_add(interval_ns);
        let older = self.inherit(&connections, waiting, history.tick().begun);
        let since = history.asked_in(since_ns as u64) + older;
        // A client that still waits after the sockets were asked does so in truth, however long ago it came.
        self.queue = if self.still_ns >= DOUBT_NS { waiting as f64 } else { since.min(waiting as f64) };
        self.busy = self.head_ns >= interval_ns.max(1) && self.queue >= 1.0;
        self.asked_ns = self.asked_ns.saturating_add(interval_ns);
    }

    /// How many of those who stood in line at the start, before all others, still do. When the server begins
    /// with somebody younger they are no longer before anybody.
    fn inherit(&mut self, connections: &Connections, waiting: u64, begun: u64) -> f64 {
        let inherited = self.inherited.unwrap_or_else(|| waiting.saturating_sub(connections.asked));
        let is_younger = begun > 0 && self.head_ns as f64 * AGE_ROUNDED * 2.0 < self.since_start_ns as f64;
        let left = if is_younger { 0 } else { inherited.saturating_sub(begun).min(waiting) };
        self.inherited = Some(left);
        left as f64
    }

    /// Takes in what the sockets told, if they were asked.
    fn correct(&mut self, counted: u64, told: Option<u64>) {
        self.corrected = None;
        self.unfounded = self.unfounded.min(counted);
        let Some(told) = told else { return };
        let thought = counted - self.unfounded;
        self.unfounded = counted.saturating_sub(told);
        // A few have come or gone while the sockets were looked at.
        if told < thought / 2 {
            self.corrected = Some(Corrected { thought, waiting: told });
        }
    }

    /// Whether the sockets themselves are to be asked who waits: once a second while the line does not
    /// move, and while somebody is left out.
    pub(crate) fn doubts(&mut self, is_shedding: bool) -> bool {
        let stands = self.still_ns >= DOUBT_NS && (is_shedding || self.waiting >= DOUBT_COUNT);
        let asks = (stands || self.unfounded > 0) && self.asked_ns >= DOUBT_NS;
        if asks {
            self.asked_ns = 0;
        }
        asks
    }

    /// What was just found to be wrong.
    pub(crate) fn corrected(&self) -> Option<Corrected> {
        self.corrected
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
        self.still_ns = if begun == 0 && waiting > 0 { self.still_ns.saturating_add(interval_ns) } else { 0 };
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
            (self.busy_ns, self.held_ns) = (0.0, 0.0);
            let last = history.last(FLOW_NS);
            let flow = last.begun as f64 * 1e9 / last.at_ns.max(1) as f64;
            let first = last.at_ns < FLOW_NS && self.sure_ns == 0.0;
            self.rate =
                if first { flow } else { self.rate.max(if last.at_ns < FLOW_NS { 0.0 } else { flow }) };
            return;
        }
        if begun <= 0.0 && self.still_ns >= STILL_NS {
            self.held_ns += interval_ns;
            return;
        }
        let held_ns = std::mem::take(&mut self.held_ns);
        let is_late = interval_ns >= STOOD_NS as f64;
        let was_late = std::mem::replace(&mut self.was_late, is_late);
        if is_late && !was_late {
            return;
        }
        let interval_ns = if held_ns <= HELD_NS_LIMIT { interval_ns + held_ns } else { interval_ns };
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
