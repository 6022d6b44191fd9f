//! How many requests a server of an application is given at once: from what some limits brought to the next.
//!
//! The law owns the limit of one server and what it knows of the rates that limits bring. It must never read
//! a clock, nor guess in what time an idle server would answer: time and counts are what observations say.
//! Order of calls: [`LimitLaw::new`] once, [`LimitLaw::step`] for every observation, in order of time.
//!
//! # The law
//!
//! By Little's law `N = X R`: `X` answers a second, `N` requests in work on average, `R` seconds in work
//! each. While no request waits for its turn, nothing is decided. Otherwise time is cut into windows
//! (`windows.rs`). A window begins when none is in work any more that was begun under another limit; it ends
//! after 32 answers and twice `R`, or after a second if that is longer than `2 R`. Most windows have the
//! limit itself, a few are trials (`trial.rs`). Rates are compared with the standard error `e` of their
//! ratio.
//!
//! - **Up is quick.** From 1 on the limit doubles until the rate grows by less than a tenth. A trial of half
//!   as much again (later also a fifth) that gains 8 % and 1.5 `e` begins the doubling anew. Where eight
//!   trials leave it in doubt, more is given: within the guard that harms nobody.
//! - **Down has to be proven.** Seven tenths (later also 0.85) become the limit if they bring 8 % and 1.5 `e`
//!   more, or at most 6 % less with `e` of at most 6 %. Only a server that more is asked of than it does is
//!   tried so: otherwise less can only do harm.
//! - **A guard on what waits inside.** The limit is at most `X (R_low + patience / 4)`. `R_low` is `R` at the
//!   lowest limit known; what is known of it fades, for services change.
//! - **Silence is no evidence.** While nothing is known of a server and no answer comes for twice the
//!   patience, the limit doubles, up to 64.
//! - **Noise is no evidence.** What trials brought is added up until it decides, and fades with half a
//!   minute. A trial that is known to bring nothing becomes rarer.
//! - **Changes are not waited for.** When half a second brings less than half of what was known, and chance
//!   does not explain it, the guard acts at once and the search begins again.

mod observation;
mod trial;
mod windows;

pub use self::observation::Observation;
use self::trial::{LimitTrial, TrialsDue};
use self::windows::{Windows, gain};

/// Least answers of a window.
const ANSWERS_MIN: f64 = 32.0;
/// Longest window that waits for answers alone, in seconds.
const WINDOW_S_MAX: f64 = 1.0;
/// Least answers of a window while the limit doubles: what half as much brought is known from one window.
const DOUBLING_ANSWERS_MIN: f64 = 64.0;
/// Longest window that waits for answers alone while the limit doubles, in seconds.
const DOUBLING_WINDOW_S_MAX: f64 = 0.4;
/// A rate that grew by less while the limit doubled has stopped to grow.
const DOUBLING_GAIN_MIN: f64 = 0.1;
/// Standard error above which it is not known whether a rate grew: then the limit doubles, up to the guard.
const DOUBT_MIN: f64 = 0.25;
/// Part by which the rate of a trial has to be higher than that of the limit.
const GAIN_MIN: f64 = 0.08;
/// Standard errors that such a gain has to be.
const GAIN_ERRORS_MIN: f64 = 1.5;
/// Part of the rate that a lower limit may lose, and the largest standard error with which that is believed.
const LOSS_MAX: f64 = 0.06;
/// Part by which the limit's own rate has to differ from what was known for the server to count as another.
const CHANGE_MIN: f64 = 0.3;
/// Standard errors that such a difference has to be.
const CHANGE_ERRORS_MIN: f64 = 4.0;
/// Seconds after which it is looked whether far less came than is known.
const FALL_S: f64 = 0.5;
/// Answers that had to come in that time for it to be looked.
const FALL_ANSWERS_MIN: f64 = 16.0;
/// Part of the known rate below which it has fallen.
const FALL_PART: f64 = 0.5;
/// Deviations of a count that chance explains.
const FALL_DEVIATIONS: f64 = 3.0;
/// Part by which the limit behind `R_low` grows in a second: knowledge of it fades.
const LOW_FADING_PER_S: f64 = 0.02;
/// Largest weight of one window in `R_low`.
const LOW_WEIGHT_MAX: f64 = 0.5;
/// Part of the patience that may be spent waiting inside.
const INSIDE_PART: f64 = 0.25;
/// Time in work as a multiple of `R_low` up to which nothing waits inside.
const IDLE_INSIDE: f64 = 1.25;
/// Part of the patience up to which a trial may lengthen the time in work, unless it is a rare one.
const LATE_PART: f64 = 0.75;
/// Times the patience for which a server may be silent before it is given more.
const SILENCE_PATIENCES: f64 = 2.0;
/// A server that was never heard is not given more at once.
const SILENT_LIMIT_MAX: f64 = 64.0;
/// No server is given more at once.
const LIMIT_MAX: f64 = 65_536.0;

/// The time in work at a low limit.
#[derive(Debug, Clone, Copy)]
struct Low {
    limit: f64,
    mean_s: f64,
}

/// The limit of one server, and what it rests on.
#[derive(Debug, Clone)]
pub struct LimitLaw {
    patience_s: f64,
    /// The limit outside of trials.
    limit: f64,
    /// Windows of half the limit, while it doubles.
    half: Option<Windows>,
    trial: LimitTrial,
    due: TrialsDue,
    /// The window that goes on.
    window: Windows,
    /// Answers until none is left of the requests that were begun under another limit.
    settling: f64,
    /// The window has begun.
    has_begun: bool,
    was_shedding: bool,
    /// Windows of the limit itself.
    known: Windows,
    /// Windows of each kind of trial.
    tried: [Windows; LimitTrial::COUNT],
    low: Option<Low>,
    /// Answers and seconds since it was looked whether the rate has fallen, and the rate known then.
    recent: (f64, f64),
    expected_rate: f64,
    reason: LawReason,
}

/// Why the limit is what it is, and what goes on: for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LawReason {
    /// Nothing is known yet.
    Beginning,
    /// The limit doubles: the rate grew with it.
    Doubling,
    /// The limit stopped to double: the rate did not grow.
    KneeFound,
    /// No answer came for long, so the server is given more.
    Silent,
    /// The limit stands, and is measured.
    Measuring,
    /// More is tried.
    TryingMore,
    /// Fewer are tried.
    TryingFewer,
    /// More brought more.
    MoreWasBetter,
    /// Fewer brought as much.
    FewerWereEnough,
    /// More would wait inside for too long.
    Guard,
    /// The server has become slower.
    Slower,
    /// The server has become faster.
    Faster,
}

impl std::fmt::Display for LawReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Beginning => "nothing is known yet",
            Self::Doubling => "doubles: the rate grew with the limit",
            Self::KneeFound => "stops to double: the rate did not grow",
            Self::Silent => "no answer for long: more is given",
            Self::Measuring => "measures the limit",
            Self::TryingMore => "tries more",
            Self::TryingFewer => "tries fewer",
            Self::MoreWasBetter => "more brought more",
            Self::FewerWereEnough => "fewer brought as much",
            Self::Guard => "more would wait inside for too long",
            Self::Slower => "the server has become slower",
            Self::Faster => "the server has become faster",
        })
    }
}

impl LimitLaw {
    /// The law of a server of which nothing is known, for clients that wait so long.
    pub fn new(patience_s: f64) -> Self {
        Self {
            patience_s,
            limit: 1.0,
            half: Some(Windows::default()),
            trial: LimitTrial::None,
            due: TrialsDue::default(),
            window: Windows::default(),
            settling: 0.0,
            has_begun: false,
            was_shedding: false,
            known: Windows::default(),
            tried: Default::default(),
            low: None,
            recent: (0.0, 0.0),
            expected_rate: 0.0,
            reason: LawReason::Beginning,
        }
    }

    /// Why the limit is what it is.
    pub fn reason(&self) -> LawReason {
        self.reason
    }

    /// How many requests may be in work now.
    pub fn limit(&self) -> u32 {
        self.trial.limit(self.limit).min(LIMIT_MAX) as u32
    }

    /// Answers a second at the limit; 0 while nothing is known.
    pub fn rate(&self) -> f64 {
        if self.known.answers > 0.0 { self.known.rate() } else { self.expected_rate.max(self.window.rate()) }
    }

    /// Seconds that a request is in work; 0 while nothing is known.
    pub fn in_work_s(&self) -> f64 {
        if self.known.answers > 0.0 { self.known.mean_s() } else { self.window.mean_s() }
    }

    /// Takes what was seen since the step before.
    pub fn step(&mut self, seen: &Observation) {
        if !seen.was_full {
            self.recent = (0.0, 0.0);
            return;
        }
        self.was_shedding |= seen.was_shedding;
        if self.has_fallen(seen) {
            self.fall();
        } else if !self.has_begun {
            self.settling -= f64::from(seen.answers);
            self.has_begun = self.settling <= 0.0 && seen.in_work <= self.limit();
        } else {
            self.window.see(seen);
            if self.is_window_over() {
                self.end_window();
            } else if self.is_silent() {
                self.give_more_to_silent();
            }
        }
    }

    /// Whether no answer came for long, from a server whose limit is not known yet.
    fn is_silent(&self) -> bool {
        let Windows { answers, seconds, .. } = self.window;
        self.half.is_some() && answers < 1.0 && seconds > SILENCE_PATIENCES * self.patience_s
    }

    /// Nothing is known of a limit at which no answer comes: requests that last for minutes, as long polls
    /// do, may have taken all places.
    fn give_more_to_silent(&mut self) {
        self.limit = (2.0 * self.limit).min(SILENT_LIMIT_MAX).max(self.limit);
        self.reason = LawReason::Silent;
        self.window = Windows::default();
    }

    fn is_window_over(&self) -> bool {
        let (answers_min, window_s_max) = match self.half {
            Some(_) => (DOUBLING_ANSWERS_MIN, DOUBLING_WINDOW_S_MAX),
            None => (ANSWERS_MIN, WINDOW_S_MAX),
        };
        let Windows { answers, seconds, .. } = self.window;
        let is_long = seconds >= window_s_max || answers >= answers_min;
        answers >= 1.0 && is_long && seconds >= 2.0 * self.window.mean_s()
    }

    fn end_window(&mut self) {
        let before = self.limit();
        let window = self.take_window();
        if !self.trial.is_down() {
            self.expected_rate = window.rate();
        }
        self.note_low(&window);
        match self.half {
            Some(half) => self.double(&half, window),
            None => self.judge(&window),
        }
        self.obey_guard();
        self.begin_window(&window, before);
    }

    /// The window so far. Requests are often in step, as many as are served at once: so many answers more or
    /// fewer are no evidence.
    fn take_window(&mut self) -> Windows {
        let window = std::mem::take(&mut self.window);
        let at_once = self.low.map_or(f64::INFINITY, |low| window.rate() * low.mean_s);
        window.as_one(at_once.min(f64::from(self.limit())))
    }

    fn begin_window(&mut self, window: &Windows, before: u32) {
        self.due.count(window.seconds);
        self.trial = LimitTrial::None;
        // A trial is compared with windows of the limit itself, so there has to be one.
        if self.half.is_none() && self.known.answers > 0.0 {
            self.trial = self.next_trial(window);
            self.reason = match self.trial {
                LimitTrial::None => self.reason,
                trial if trial.is_down() => LawReason::TryingFewer,
                _ => LawReason::TryingMore,
            };
        }
        self.was_shedding = false;
        self.has_begun = self.limit() == before;
        self.settling = f64::from(before.max(self.limit()));
    }

    fn next_trial(&mut self, window: &Windows) -> LimitTrial {
        if self.was_shedding && self.limit >= 2.0 && self.due.is_down() {
            return self.due.begin_down();
        }
        if self.due.is_up() && self.may_try_more(window) {
            return self.due.begin_up();
        }
        LimitTrial::None
    }

    /// Whether more is harmless even if it brings nothing: none waits inside yet, or those that would do so
    /// within their part of the patience. More that would be too late for all is tried rarely.
    fn may_try_more(&self, window: &Windows) -> bool {
        let (rate, more) = (self.known.rate(), LimitTrial::Up.limit(self.limit));
        let is_idle_inside = self.low.is_some_and(|low| window.mean_s() <= IDLE_INSIDE * low.mean_s);
        let is_in_time = more <= rate * self.patience_s * LATE_PART;
        (is_idle_inside || more <= self.most(rate)) && (is_in_time || self.due.is_up_long_ago())
    }

    /// The window of a limit that doubles is over.
    fn double(&mut self, half: &Windows, window: Windows) {
        let (gain, error) = gain(&window, half);
        if half.answers <= 0.0 || gain > DOUBLING_GAIN_MIN || error > DOUBT_MIN {
            // The rate may grow once more as it did now. Chance is less of both windows together.
            let growth = if half.answers > 0.0 { (1.0 + gain).clamp(1.0, 2.0) } else { 2.0 };
            let most = growth * self.most(half.with(&window).rate());
            let is_open = 2.0 * self.limit < most;
            self.limit = most.min(2.0 * self.limit);
            self.reason = if is_open { LawReason::Doubling } else { LawReason::Guard };
            if is_open {
                self.half = Some(window);
                return;
            }
        } else if gain < DOUBLING_GAIN_MIN / 2.0 {
            self.limit = (self.limit / 2.0).max(1.0);
            self.reason = LawReason::KneeFound;
        }
        self.forget();
    }

    /// Drops all windows: they say nothing of another limit, nor of a server that has changed.
    fn forget(&mut self) {
        self.half = None;
        self.due = TrialsDue::default();
        self.known = Windows::default();
        self.tried = Default::default();
    }

    /// A window of a limit that stands, or of a trial, is over.
    fn judge(&mut self, window: &Windows) {
        self.known.fade(window.seconds);
        self.tried.iter_mut().for_each(|tried| tried.fade(window.seconds));
        match self.trial {
            LimitTrial::None => self.learn(window),
            trial => {
                self.tried[trial as usize].add(window);
                self.decide(trial);
            }
        }
    }

    fn learn(&mut self, window: &Windows) {
        let (gain, error) = gain(window, &self.known);
        if gain.abs() <= CHANGE_MIN || gain.abs() <= CHANGE_ERRORS_MIN * error {
            self.known.add(window);
            self.reason = LawReason::Measuring;
            return;
        }
        self.reason = if gain > 0.0 { LawReason::Faster } else { LawReason::Slower };
        self.forget();
        self.low = None;
        if gain > 0.0 {
            self.half = Some(*window);
            self.limit *= 2.0;
        }
    }

    fn decide(&mut self, trial: LimitTrial) {
        let (gain, error) = gain(&self.tried[trial as usize], &self.known);
        let is_better = gain > GAIN_MIN && gain > GAIN_ERRORS_MIN * error;
        let hope = if trial.is_down() { -LOSS_MAX } else { GAIN_MIN };
        let is_hopeless = gain + GAIN_ERRORS_MIN * error < hope;
        if trial.is_down() {
            let is_same = gain > -LOSS_MAX && error <= LOSS_MAX;
            if is_better || is_same {
                self.limit = trial.limit(self.limit);
                self.reason = LawReason::FewerWereEnough;
                return self.forget();
            }
        } else if is_better || !is_hopeless && self.due.is_up_in_doubt() {
            self.limit = trial.limit(self.limit);
            self.reason = LawReason::MoreWasBetter;
            let known = self.known;
            self.forget();
            self.half = is_better.then_some(known);
            return;
        }
        if is_hopeless {
            self.due.put_off(trial);
        }
    }

    /// Whether far less came lately than is known of the server, and than chance explains.
    fn has_fallen(&mut self, seen: &Observation) -> bool {
        self.recent.0 += f64::from(seen.answers);
        self.recent.1 += seen.interval_s;
        let (answers, seconds) = self.recent;
        let expected = self.expected_rate * seconds;
        if seconds < FALL_S || expected < FALL_ANSWERS_MIN {
            return false;
        }
        self.recent = (0.0, 0.0);
        let by_chance = FALL_DEVIATIONS * self.known.variation() * expected.sqrt();
        let is_settled = self.half.is_none() && !self.trial.is_down();
        is_settled && answers < FALL_PART * expected && expected - answers > by_chance
    }

    /// The server has become slower: what it is given follows at once.
    fn fall(&mut self) {
        let (before, window) = (self.limit(), self.take_window());
        self.forget();
        self.expected_rate *= FALL_PART;
        self.limit = self.limit.min(self.most(self.expected_rate));
        self.reason = LawReason::Slower;
        self.begin_window(&window, before);
    }

    fn note_low(&mut self, window: &Windows) {
        let (limit, mean_s) = (f64::from(self.limit()), window.mean_s());
        let mut low = self.low.unwrap_or(Low { limit, mean_s });
        low.limit *= 1.0 + LOW_FADING_PER_S * window.seconds;
        if limit <= low.limit {
            let weight = (window.answers / ANSWERS_MIN / 4.0).min(LOW_WEIGHT_MAX);
            low = Low { limit, mean_s: low.mean_s + (mean_s - low.mean_s) * weight };
        }
        self.low = Some(low);
    }

    /// The highest limit at a rate with which none waits inside for more than its part of the patience.
    fn most(&self, rate: f64) -> f64 {
        let low_s = self.low.map_or(0.0, |low| low.mean_s);
        (rate * (low_s + self.patience_s * INSIDE_PART)).max(1.0)
    }

    fn obey_guard(&mut self) {
        let most = self.most(self.known.rate());
        if self.known.answers > 0.0 && self.limit > most {
            self.limit = most;
            self.reason = LawReason::Guard;
            self.forget();
        }
    }
}
