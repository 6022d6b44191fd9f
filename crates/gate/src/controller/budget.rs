//! How many SYN may come in: as many as are served, more or less by as much as the line is too short or too
//! long, and more where some of them come to nothing.
//!
//! It owns the account of those who were let in and are still on their way, and what is known of how many
//! ever arrive. It knows no classes.

use super::history::Totals;
use super::line::{FULL_SHARE, Line, STILL_NS};
use super::settings::Settings;
use crate::observation::Queue;

/// The line is brought to its target within the time twice the target takes, 50 ms. Five ticks or ten: the
/// counts of one tick are noise. Half of the 100 ms within which it has to be settled.
const CORRECT_TARGETS: f64 = 2.0;
/// More than half above what is served is never let in at once: it would be a line of the next ticks.
const FASTER_LIMIT: f64 = 1.5;
/// So many may always stand in line: with fewer a server of irregular work would fall idle.
const LINE_LEAST: f64 = 6.0;
/// Of an accept queue no more than half is used, so that no burst overflows it.
const QUEUE_SHARE: f64 = 0.5;
/// Where fewer of the line than this share are in the accept queue, it does not stand there.
const BEHIND_SHARE: f64 = 0.25;
/// Those on their way are forgotten with this time constant: who needs longer for a handshake does not
/// finish it.
const PENDING_NS: f64 = 300_000_000.0;
/// When SYN are shed and yet nobody stands in line for so long, the rate is not what the server can do now...
const STARVED_NS: f64 = 50_000_000.0;
/// ...and more come in, by e in this time, a round trip of most people, as much as 64 times.
const STARVED_RISE_NS: f64 = 100_000_000.0;
const STARVED_LIMIT: f64 = 64.0;
/// A tick that came late is made up for, but by no more than this, or it would be a burst.
pub(crate) const INTERVAL_NS_LIMIT: f64 = 50_000_000.0;
/// The floor while the line moves, a share of what is served: too few to make a line that is too long longer.
const FLOOR_SHARE: f64 = 0.1;
/// How many of those let in come to wait is a mean over this; a round trip of anybody is short against it.
const YIELD_NS: f64 = 1_000_000_000.0;
/// Fewer say nothing of it.
const YIELD_COUNT: f64 = 20.0;
/// A sixteenth of those let in is taken to come, even where fewer do.
const YIELD_LEAST: f64 = 1.0 / 16.0;

/// How many may come in.
#[derive(Debug)]
pub(crate) struct Budget {
    pending: f64,
    starved_ns: f64,
    came: f64,
    asked: f64,
    /// Share of those let in who come to wait; the others say nothing, or have gone.
    pub yields: f64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { pending: 0.0, starved_ns: 0.0, came: 0.0, asked: 0.0, yields: 1.0 }
    }
}

impl Budget {
    /// Takes a tick in; `finished` is the share of unknown SYN that is expected to complete a handshake.
    /// Nobody is on his way while nobody counts those who arrive, or those let in are dropped.
    pub(crate) fn see(&mut self, line: &Line, tick: &Totals, finished: f64, counted: bool) {
        let starved = tick.shed > 0 && !line.busy && line.queue < LINE_LEAST;
        self.starved_ns = if starved { self.starved_ns + tick.at_ns as f64 } else { 0.0 };
        if !counted {
            self.pending = 0.0;
            return;
        }
        let [known, verified, unknown] = tick.passed.map(|count| count as f64);
        let came = known + verified + unknown * finished;
        self.follow_yield(came, tick);
        let stays = 1.0 - (tick.at_ns as f64 / PENDING_NS).min(1.0);
        self.pending = (self.pending * stays + came * self.yields - tick.asked as f64).max(0.0);
    }

    fn follow_yield(&mut self, came: f64, tick: &Totals) {
        let stays = 1.0 - (tick.at_ns as f64 / YIELD_NS).min(1.0);
        self.came = self.came * stays + came;
        self.asked = self.asked * stays + tick.asked as f64;
        self.yields = match self.came < YIELD_COUNT {
            true => 1.0,
            false => (self.asked / self.came).clamp(YIELD_LEAST, 1.0),
        };
    }

    /// SYN for an interval just past: `rate * interval * clamp(1 + (target - line) / (2 * target), 0, 1.5)`
    /// connections that come to wait, and never none.
    pub(crate) fn syn(
        &self,
        line: &Line,
        queue: Option<Queue>,
        settings: &Settings,
        interval_ns: f64,
    ) -> f64 {
        let target = target(line, queue, settings);
        let pending = self.pending.min(line.rate * PENDING_NS / 1e9);
        let ahead = line.queue + pending;
        let correction = (target - ahead) / (target * CORRECT_TARGETS).max(1.0);
        let served = line.rate * interval_ns.min(INTERVAL_NS_LIMIT) / 1e9;
        let starved = ((self.starved_ns - STARVED_NS).max(0.0) / STARVED_RISE_NS).exp().min(STARVED_LIMIT);
        let share = served * (1.0 + correction).clamp(0.0, FASTER_LIMIT) * starved;
        let wanted = share.max(LINE_LEAST - ahead) / self.yields;
        wanted.min(room(line, queue)).max(floor(line, served))
    }
}

/// At least so many come in whatever is believed: one in each turn where the server began with nobody for a
/// while, so that it is seen when it goes on; else a share of what is served.
fn floor(line: &Line, served: f64) -> f64 {
    if line.still_ns >= STILL_NS || line.rate <= 0.0 { 1.0 } else { served * FLOOR_SHARE }
}

/// Connections the accept queue still takes: credits may all be spent at once.
fn room(line: &Line, queue: Option<Queue>) -> f64 {
    let left = |queue: Queue| queue.limit as f64 * FULL_SHARE - line.queue.max(queue.waiting as f64);
    bounding(line, queue).map_or(f64::INFINITY, left)
}

/// Connections that shall stand in line.
fn target(line: &Line, queue: Option<Queue>, settings: &Settings) -> f64 {
    let in_time = (line.rate * settings.target_ns as f64 / 1e9).max(LINE_LEAST);
    let half = |queue: Queue| in_time.min((queue.limit as f64 * QUEUE_SHARE).max(1.0));
    bounding(line, queue).map_or(in_time, half)
}

/// The accept queue, unless the line stands behind it: the server accepts at once and reads late.
fn bounding(line: &Line, queue: Option<Queue>) -> Option<Queue> {
    queue.filter(|queue| queue.limit > 0 && queue.waiting as f64 >= line.queue * BEHIND_SHARE)
}
