//! How many connections may come in: what is served, more or less by as much as the line is too short or too
//! long.
//!
//! It owns the account of those who were let in and are still on their way. It knows no classes.

use super::history::Totals;
use super::line::{FULL_SHARE, Line};
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
/// Those on their way are forgotten with this time constant: who needs longer for a handshake does not
/// finish it.
const PENDING_NS: f64 = 300_000_000.0;
/// When SYN are shed and yet nobody stands in line for so long, the rate is not what the server can do now...
const STARVED_NS: f64 = 50_000_000.0;
/// ...and more come in, by e in this time, a round trip of most people, as much as 16 times.
const STARVED_RISE_NS: f64 = 100_000_000.0;
const STARVED_LIMIT: f64 = 16.0;
/// A tick that came late is made up for, but by no more than this, or it would be a burst.
pub(crate) const INTERVAL_NS_LIMIT: f64 = 50_000_000.0;

/// How many may come in.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pending: f64,
    starved_ns: f64,
}

impl Budget {
    /// Takes a tick in; `finished` is the share of unknown SYN that become connections. Nobody is on his way
    /// while nobody counts those who arrive, or those let in are dropped.
    pub(crate) fn see(&mut self, line: &Line, tick: &Totals, finished: f64, counted: bool) {
        let starved = tick.shed > 0 && !line.busy && line.queue < LINE_LEAST;
        self.starved_ns = if starved { self.starved_ns + tick.at_ns as f64 } else { 0.0 };
        if !counted {
            self.pending = 0.0;
            return;
        }
        let [known, verified, unknown] = tick.passed.map(|count| count as f64);
        let stays = 1.0 - (tick.at_ns as f64 / PENDING_NS).min(1.0);
        let came = known + verified + unknown * finished;
        self.pending = (self.pending * stays + came - tick.established as f64).max(0.0);
    }

    /// Connections for an interval just past: `rate * interval * clamp(1 + (target - line) / (2 * target),
    /// 0, 1.5)`.
    pub(crate) fn connections(
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
        share.max(LINE_LEAST - ahead).min(room(line, queue)).max(0.0)
    }
}

/// Connections the accept queue still takes: credits may all be spent at once.
fn room(line: &Line, queue: Option<Queue>) -> f64 {
    match queue {
        Some(queue) if queue.limit > 0 => queue.limit as f64 * FULL_SHARE - line.queue,
        _ => f64::INFINITY,
    }
}

/// Connections that shall stand in line.
fn target(line: &Line, queue: Option<Queue>, settings: &Settings) -> f64 {
    let in_time = (line.rate * settings.target_ns as f64 / 1e9).max(LINE_LEAST);
    let places = queue.map_or(0, |queue| queue.limit);
    if places == 0 { in_time } else { in_time.min((places as f64 * QUEUE_SHARE).max(1.0)) }
}
