//! Sums over the windows of one limit: the rate that it has brought, and the standard error of that rate.

use super::observation::Observation;

/// Services vary by more than is seen of few: least coefficient of variation.
const VARIATION_MIN: f64 = 0.3;
/// Seconds of windows after which what they brought counts by half.
const FADING_S: f64 = 30.0;
/// Windows from which on their rates tell of chance by themselves.
const WINDOWS_MIN: f64 = 2.5;

/// Sums over windows of one limit; parts of a window where old ones have faded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Windows {
    pub(super) answers: f64,
    pub(super) seconds: f64,
    /// Seconds in work of all answers, and their squares.
    in_work_s: f64,
    in_work_s_squared: f64,
    windows: f64,
    /// Squares of the windows' rates, each times its seconds.
    rates_squared: f64,
    /// Square of the answers by which the ends of windows may mislead.
    ends_squared: f64,
}

impl Windows {
    pub(super) fn see(&mut self, seen: &Observation) {
        self.answers += f64::from(seen.answers);
        self.seconds += seen.interval_s;
        self.in_work_s += seen.in_work_s;
        self.in_work_s_squared += seen.in_work_s_squared;
    }

    /// As one window, with answers in bunches of at most so many: a bunch at an end is inside or outside.
    pub(super) fn as_one(mut self, bunch: f64) -> Self {
        self.windows = 1.0;
        self.rates_squared = self.rate() * self.rate() * self.seconds;
        // Variance of the difference of two numbers that are anywhere from 0 to a bunch.
        self.ends_squared = bunch * bunch / 6.0;
        self
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, part) in self.sums().into_iter().zip({ *other }.sums()) {
            *sum += *part;
        }
    }

    /// The windows of both.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    pub(super) fn fade(&mut self, seconds: f64) {
        let kept = 0.5f64.powf(seconds / FADING_S);
        self.sums().into_iter().for_each(|sum| *sum *= kept);
    }

    fn sums(&mut self) -> [&mut f64; 7] {
        let Self { answers, seconds, in_work_s, in_work_s_squared, windows, rates_squared, ends_squared } =
            self;
        [answers, seconds, in_work_s, in_work_s_squared, windows, rates_squared, ends_squared]
    }

    /// Answers a second.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answers / self.seconds } else { 0.0 }
    }

    /// Seconds in work, on average.
    pub(super) fn mean_s(&self) -> f64 {
        if self.answers > 0.0 { self.in_work_s / self.answers } else { 0.0 }
    }

    /// Coefficient of variation of the seconds in work.
    pub(super) fn variation(&self) -> f64 {
        let mean_s = self.mean_s();
        if mean_s <= 0.0 {
            return VARIATION_MIN;
        }
        let variance = self.in_work_s_squared / self.answers - mean_s * mean_s;
        (variance.max(0.0).sqrt() / mean_s).max(VARIATION_MIN)
    }

    /// Square of the rate's standard error as part of it, by the spread of the time in work: that of a
    /// renewal process (Cox, *Renewal Theory*, 1962).
    fn error_squared(&self) -> f64 {
        (self.variation().powi(2) * self.answers + self.ends_squared) / self.answers.powi(2)
    }

    /// Variance of a window's rate as part of its square, by the rates themselves; 0 of few windows.
    fn dispersion(&self) -> f64 {
        if self.windows < WINDOWS_MIN {
            return 0.0;
        }
        let variance = self.rates_squared / self.seconds - self.rate().powi(2);
        variance.max(0.0) / self.rate().powi(2) * self.windows / (self.windows - 1.0)
    }
}

/// By which part one rate is more than another, and the standard error of that: by the spread of the time in
/// work or by that of the windows' rates, whichever is more.
pub(super) fn gain(of: &Windows, over: &Windows) -> (f64, f64) {
    if of.answers <= 0.0 || over.answers <= 0.0 {
        return (0.0, f64::INFINITY);
    }
    let by_service = of.error_squared() + over.error_squared();
    let by_rates = over.dispersion() * (1.0 / of.windows + 1.0 / over.windows);
    (of.rate() / over.rate() - 1.0, by_service.max(by_rates).sqrt())
}
