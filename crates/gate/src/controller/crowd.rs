//! Whether more people come than the server serves: the two thresholds between open and shedding.
//!
//! It looks at the line, never at a processor's load. Constants are explained
//! where they stand; `controller.rs` tells the whole law.

use super::flood::Flood;
use super::history::{History, Totals};
use super::line::{FULL_SHARE, Line};
use super::settings::Settings;
use crate::observation::Observation;

/// CoDel's idea: a queue is a fault only if nobody gets through at once. A fifth of the usual 5 ms is noise
/// of scheduling, and every millisecond more costs nine of queue when ten times too many come.
const STANDING_NS: u64 = 2_000_000;
/// At 0.9 times capacity and exponential service 128 stand in line once in 10^6 moments, whatever the rate.
const CROWD_COUNT: f64 = 128.0;
/// Unless they come steeply, the line must be this many times the trigger, 400 ms, or half the accept queue:
/// a server that its host slows down for two seconds has a line as well, and to wait for less than half a
/// second is better than to be asked to come again after a whole one. Beside a flood nobody waits for that:
/// the host is not slow by chance. Nor where those let in are dropped: they have to come again anyhow.
const CREEPING_TIMES: f64 = 8.0;
/// What was served in so long may be served again: the line of a server that stood still for 0.2 s, and is as
/// slow as that to anyone who looks just then, is no line of 400 ms.
const SERVED_NS: u64 = 2_000_000_000;
const HALF: f64 = 0.5;
/// So many more than three times the rate do not come by chance below capacity.
pub(crate) const STEEP_COUNT: f64 = 20.0;
pub(crate) const STEEP_TIMES: f64 = 3.0;
/// When the host, or the way to it, or a client of many stood still, who could not come comes all at once.
/// So nothing is steep unless more than usually came since each moment from so long to so long ago (a shorter
/// pause makes no line of the trigger): [`STEEP_COUNT`], and so many deviations (Poisson).
const PAUSES_NS: (u64, u64) = (50_000_000, 250_000_000);
const STEEP_DEVIATIONS: f64 = 3.0;
/// Usually is as often as in the longer time, or in the shorter if that is more: a load may have just begun.
const USUAL_NS: [u64; 2] = [2_000_000_000, 1_000_000_000];
/// Where the application holds every worker by silent clients, the full queue alone must say it, in three
/// ticks.
const FULL_TICKS: u32 = 3;
/// So many in turn must have waited, unless the accept queue shows them: one slow client is not a line.
const STANDING_COUNT: u64 = 8;
/// Before this much was seen nothing is steep: the rate is not known.
const KNOWN_NS: u64 = 500_000_000;

/// Release looks at so much, at least: with 1 s allowed, half remains for the queue to empty.
const RELEASE_NS: u64 = 500_000_000;
/// When for so long nobody was shed and none stood in line it needs no count, which may be of a slower
/// server.
const FREE_NS: u64 = 5_000_000_000;
/// In so long fewer than this share of the rate must come. Half a second's count and the rate are uncertain
/// by 3 % together at 3 000 a second, and are looked at 200 times a second: at 0.95 times capacity the
/// shares are 7 and 5 deviations away.
const RELEASES: [(u64, f64); 2] = [(RELEASE_NS, 0.75), (2_000_000_000, 0.85)];
/// In a full minute at most this share was shed: who is just below capacity is not shed from for ever because
/// a crowd came once. What the server does while it is busy cannot tell: below capacity a line is long just
/// when the server was slow by chance. At capacity 0.4 % are shed of a server of 50 us, 1.5 % of one of 300.
const LITTLE_NS: u64 = 60_000_000_000;
/// So many minutes in one, if the last release proved wrong.
const LITTLE_WRONG: u64 = 10;
const LITTLE_SHARE: f64 = 0.001;
/// So few in line are short whatever their wait.
const SHORT_COUNT: f64 = 8.0;
/// And so many deviations of the count (Poisson), which is what keeps a slow server from flapping.
const RELEASE_DEVIATIONS: f64 = 5.0;
/// A release that proved wrong within this makes the next wait as long...
const WARY_NS: u64 = 60_000_000_000;
/// ...unless fewer than this share come: then the crowd is gone beyond doubt.
const GONE_SHARE: f64 = 0.5;

/// Whether a crowd is there, and what it was seen by.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// More come than are served.
    pub there: bool,
    above: f64,
    steep: bool,
    full_ticks: u32,
    standing_count: u64,
    free_ns: u64,
    since_change_ns: u64,
    released_once: bool,
    wary: bool,
    proved_wrong: bool,
    minute: Minute,
    little: bool,
}

/// What was counted since the last full minute of shedding.
#[derive(Debug, Default)]
struct Minute {
    ns: u64,
    syn: u64,
    shed: u64,
}

impl Crowd {
    /// Takes a tick in.
    pub(crate) fn see(
        &mut self,
        o: &Observation,
        line: &Line,
        history: &History,
        settings: &Settings,
        flood: &Flood,
    ) {
        let tick = history.tick();
        self.follow(o, line, history);
        self.since_change_ns = self.since_change_ns.saturating_add(tick.at_ns);
        if self.since_change_ns >= WARY_NS {
            self.wary = false;
        }
        self.count_minute(&tick);
        if !self.there && self.comes(o, line, history, settings, flood.verify || flood.keeps_dropping()) {
            self.proved_wrong = self.released_once && self.since_change_ns < WARY_NS;
            self.wary |= self.proved_wrong;
            (self.there, self.since_change_ns) = (true, 0);
            (self.minute, self.little) = (Minute::default(), false);
        } else if self.there && self.goes(line, history, settings, flood) {
            (self.there, self.since_change_ns, self.released_once) = (false, 0, true);
        }
    }

    fn follow(&mut self, o: &Observation, line: &Line, history: &History) {
        let tick = history.tick();
        self.steep = self.is_steep(o, line, history);
        let full = o.queue.is_some_and(|queue| queue.fullest_share >= FULL_SHARE);
        self.full_ticks = if full { self.full_ticks.saturating_add(1) } else { 0 };
        let standing = line.head_ns >= STANDING_NS;
        self.standing_count = if standing { self.standing_count.saturating_add(tick.begun) } else { 0 };
        let free = !standing && tick.shed == 0;
        self.free_ns = if free { self.free_ns.saturating_add(tick.at_ns) } else { 0 };
    }

    /// Whether far more come than are served, and more than usually do.
    fn is_steep(&mut self, o: &Observation, line: &Line, history: &History) -> bool {
        let came = |totals: &Totals| match o.connections {
            Some(_) => totals.asked as f64,
            None => totals.passed_all() as f64,
        };
        let (tick, usual) = (history.tick(), USUAL_NS.map(|window_ns| history.last(window_ns)));
        if usual[0].at_ns < KNOWN_NS {
            self.above = 0.0;
            return false;
        }
        let expected = STEEP_TIMES * line.shown_rate() * tick.at_ns as f64 / 1e9;
        self.above = (self.above + came(&tick) - expected).max(0.0);
        let usual_per_ns = usual.map(|last| came(&last) / last.at_ns as f64).into_iter().fold(0.0, f64::max);
        let more = |since: Totals| {
            let usually = usual_per_ns * since.at_ns as f64;
            came(&since) - usually >= STEEP_COUNT.max(STEEP_DEVIATIONS * usually.sqrt())
        };
        self.above >= STEEP_COUNT && history.since_each(PAUSES_NS).all(more)
    }

    fn count_minute(&mut self, tick: &Totals) {
        self.minute.ns += tick.at_ns;
        self.minute.syn += tick.syn_all();
        self.minute.shed += tick.shed;
        if self.minute.ns >= LITTLE_NS * if self.proved_wrong { LITTLE_WRONG } else { 1 } {
            let Minute { syn, shed, .. } = std::mem::take(&mut self.minute);
            self.little = shed as f64 <= syn as f64 * LITTLE_SHARE;
        }
    }

    fn comes(
        &self,
        o: &Observation,
        line: &Line,
        history: &History,
        settings: &Settings,
        at_once: bool,
    ) -> bool {
        let standing = line.head_ns >= STANDING_NS;
        let triggers = line.shown_wait_s() * 1e9 / settings.trigger_ns as f64;
        let half = o.queue.is_some_and(|queue| queue.fullest_share >= HALF);
        let last = history.last(SERVED_NS);
        let rate = line.shown_rate().max(last.begun as f64 * 1e9 / last.at_ns.max(1) as f64);
        let long = line.queue * 1e9 >= CREEPING_TIMES * settings.trigger_ns as f64 * rate;
        let crept = line.queue >= CROWD_COUNT && (long || half || at_once);
        let jumped = self.steep && line.queue >= STEEP_COUNT;
        let full = self.full_ticks >= FULL_TICKS || self.full_ticks >= 1 && self.steep && standing;
        full || standing && triggers >= 1.0 && (crept || jumped) && !self.is_one_slow(o, line)
    }

    /// They are in no accept queue, and few have waited so far: it may be one slow thread of many.
    fn is_one_slow(&self, o: &Observation, line: &Line) -> bool {
        let accepted = o.queue.is_some_and(|queue| (queue.waiting as f64) < line.queue / 2.0);
        accepted && !self.steep && self.standing_count < STANDING_COUNT
    }

    fn goes(&self, line: &Line, history: &History, settings: &Settings, flood: &Flood) -> bool {
        let last = history.last(RELEASE_NS);
        if last.at_ns < RELEASE_NS || self.since_change_ns < RELEASE_NS || self.full_ticks > 0 {
            return false;
        }
        let fewer_than = |last: &Totals, share: f64, all: f64| {
            let came = flood.earnest(last);
            let served = line.sure_rate() * last.at_ns as f64 / 1e9;
            came < served * share && came + RELEASE_DEVIATIONS * (came + 1.0).sqrt() < served * all
        };
        let fewer = self.little
            || self.free_ns >= FREE_NS
            || RELEASES.iter().any(|(long_ns, share)| {
                self.since_change_ns >= *long_ns && fewer_than(&history.last(*long_ns), *share, 1.0)
            });
        let gone = last.syn_all() == 0 || fewer_than(&last, GONE_SHARE, GONE_SHARE);
        let short = line.wait_s() * 1e9 < settings.target_ns as f64 || line.queue < SHORT_COUNT;
        short && (gone || fewer && !self.wary)
    }
}
