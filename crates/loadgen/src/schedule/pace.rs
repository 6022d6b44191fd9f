//! From operational time, in which one arrival is due a unit, to nanoseconds.
//!
//! It owns the integral of the rate and its inverse, both in closed form, and the factors that were set on
//! the way. It must never add up times step by step: errors would grow with the run. Points have to be asked
//! for in order.

use std::collections::VecDeque;

use super::profile::{Profile, Stretch};
use crate::Fault;

/// The way from operational time to time.
#[derive(Debug)]
pub(super) struct Pace {
    pieces: Vec<Piece>,
    /// The piece the last point was in.
    here: usize,
    /// What was set, in order; the first holds now, the others hold from points still to come.
    factors: VecDeque<Factor>,
    /// Nanoseconds of a unit of the pieces' time.
    unit_ns: f64,
}

/// A stretch, with what has come before it.
#[derive(Debug)]
struct Piece {
    stretch: Stretch,
    start: f64,
    /// Integral of the rate up to its start, and to its end.
    before: f64,
    after: f64,
}

/// From the point `point`, at which the integral of the profile's rate is `area`, all rates are `factor`
/// times the profile's.
#[derive(Debug)]
struct Factor {
    point: f64,
    area: f64,
    from_ns: u64,
    factor: f64,
}

impl Pace {
    /// The pace of a profile.
    pub(super) fn of_profile(profile: &Profile) -> Result<Self, Fault> {
        Ok(Self::new(&profile.stretches()?, 1e9))
    }

    /// The pace of a trace, whose points are nanoseconds already.
    pub(super) fn of_trace() -> Self {
        Self::new(&[Stretch { rate_per_s: 1.0, slope: 0.0, duration_s: f64::INFINITY }], 1.0)
    }

    fn new(stretches: &[Stretch], unit_ns: f64) -> Self {
        let (mut start, mut before) = (0.0, 0.0);
        let mut pieces = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            let after = before + stretch.area(stretch.duration_s);
            pieces.push(Piece { stretch: *stretch, start, before, after });
            (start, before) = (start + stretch.duration_s, after);
        }
        let factors = VecDeque::from([Factor { point: 0.0, area: 0.0, from_ns: 0, factor: 1.0 }]);
        Self { pieces, here: 0, factors, unit_ns }
    }

    /// When `point` is due. `None`: never, as far as is known now.
    pub(super) fn time_ns(&mut self, point: f64) -> Option<u64> {
        while self.factors.get(1).is_some_and(|next| next.point <= point) {
            self.factors.pop_front();
        }
        let Factor { point: since, area, factor, .. } = self.factors[0];
        if factor == 0.0 {
            return None;
        }
        let time_ns = (self.time(area + (point - since) / factor)? * self.unit_ns).round();
        (time_ns < u64::MAX as f64).then_some(time_ns as u64)
    }

    /// When the integral of the profile's rate reaches `area`. At a pause, when it is over: arrivals stand at
    /// the beginning of their unit, as the very first stands at time 0.
    fn time(&mut self, area: f64) -> Option<f64> {
        while self.pieces.get(self.here)?.after <= area {
            self.here += 1;
        }
        let piece = &self.pieces[self.here];
        Some(piece.start + piece.stretch.time(area - piece.before))
    }

    /// Holds from `now_ns` on, or from the last change on if that is later.
    pub(super) fn set_factor(&mut self, now_ns: u64, factor: f64) {
        assert!(factor.is_finite() && factor >= 0.0, "a rate cannot be multiplied by {factor}");
        let last = &self.factors[self.factors.len() - 1];
        let from_ns = now_ns.max(last.from_ns);
        let mut area = last.area;
        let mut point = last.point;
        if from_ns > last.from_ns {
            area = self.area(from_ns as f64 / self.unit_ns).max(last.area);
            point += last.factor * (area - last.area);
        } else {
            self.factors.pop_back();
        }
        self.factors.push_back(Factor { point, area, from_ns, factor });
        // A point that was asked for already may now lie in an earlier piece.
        self.here = 0;
    }

    /// The integral of the profile's rate up to `time`.
    fn area(&self, time: f64) -> f64 {
        let piece = &self.pieces[self.pieces.partition_point(|piece| piece.start <= time).max(1) - 1];
        piece.before + piece.stretch.area(time - piece.start)
    }
}

impl Stretch {
    /// Arrivals in its first `time`.
    fn area(&self, time: f64) -> f64 {
        if self.rate_per_s == 0.0 && self.slope == 0.0 {
            return 0.0;
        }
        if self.slope == 0.0 {
            self.rate_per_s * time
        } else {
            (self.rate_per_s + self.slope * time / 2.0) * time
        }
    }

    /// How long `area` arrivals take: the root of `rate t + slope t^2 / 2 = area`, in the form that loses no
    /// digits when the slope is small. `area` is less than that of the whole stretch.
    fn time(&self, area: f64) -> f64 {
        if self.slope == 0.0 {
            return area / self.rate_per_s;
        }
        if area <= 0.0 {
            return 0.0;
        }
        let rate_then = (self.rate_per_s.powi(2) + 2.0 * self.slope * area).max(0.0).sqrt();
        (2.0 * area / (self.rate_per_s + rate_then)).min(self.duration_s)
    }
}
