//! The search for the best host: where it begins, how far it may go, what it could not tell.
//!
//! It owns the ranges. Parameters are sought as logarithms, for they are above 0 and of unknown size.

use super::cost::costs;
use super::descent;
use super::point::{Known, Parameter, Point};
use crate::batching::Reception;
use crate::host::Host;
use crate::limits::PLACES_FITTED_MAX;

/// Packets a second of one processor's reception on today's machines (4.5 to 5 us each): where mu1 stays if
/// the points do not tell.
const MU1_USUAL: f64 = 200_000.0;
/// Seconds of an interrupt on today's machines, where c0 stays if the points do not tell: 86 000 packets a
/// second one by one, and 197 000 in batches of ten, are c0 = 7.2 us and c1 = 4.4 us.
const INTERRUPT_USUAL: f64 = 7e-6;
/// Being away from them by a factor of e counts as much as one point being wrong by the usual error of these
/// points: a slope must be plainer than their noise to count. At first this is taken as three in a hundred,
/// which repeated measurements on a machine with other work differ by; then it is what is left unexplained,
/// in this range.
const NOISE: (f64, f64, f64) = (0.001, 0.03, 0.05);
/// Errors below one in a hundred tell nothing.
const ERROR_TOLD: f64 = 0.01;

pub(crate) struct Search<'a> {
    points: &'a [Point],
    known: &'a Known,
    wanted: Vec<Parameter>,
    peak: f64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(points: &'a [Point], known: &'a Known) -> Search<'a> {
        let largest = points.iter().map(|point| point.goodput_per_s).fold(0.0, f64::max);
        let peak = known.peak_per_s.unwrap_or(largest);
        Search { points, known, wanted: known.wanted(), peak }
    }

    /// The best of a few descents, each from one of the most promising beginnings; then again from there with
    /// the noise that was found.
    pub(crate) fn best(&self) -> Vec<f64> {
        const DESCENTS: usize = 4;
        const AGAIN: usize = 3;
        let (least, usual, most) = NOISE;
        let mut first = |place: &[f64]| self.cost(place, usual);
        let with_cost = |place: Vec<f64>| {
            let cost = first(&place);
            (place, cost)
        };
        let mut starts: Vec<(Vec<f64>, f64)> = self.starts().map(with_cost).collect();
        starts.sort_by(|one, other| one.1.total_cmp(&other.1));
        starts.dedup();
        starts.truncate(DESCENTS);
        let found = starts.iter().map(|(start, _)| descent::least(start, 0.3, &mut first));
        let mut best = found.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default().0;
        for _ in 0..AGAIN {
            let noise = self.unexplained(&best).clamp(least, most);
            best = descent::least(&best, 0.3, &mut |place| self.cost(place, noise)).0;
        }
        best
    }

    /// Usual error of a point: what is left of all, over the points that are not used up by the parameters.
    fn unexplained(&self, place: &[f64]) -> f64 {
        let squares = costs(&self.host(place), self.points, self.known.run);
        let spare = self.points.len().saturating_sub(self.wanted.len()).max(1);
        (squares / spare as f64).sqrt()
    }

    /// The host at a place; everything stays in its range.
    pub(crate) fn host(&self, place: &[f64]) -> Host {
        let value = |wanted: Parameter| {
            let at = self.wanted.iter().position(|parameter| *parameter == wanted);
            let (low, high) = range(wanted);
            at.map(|at| place[at].exp().clamp(low, high))
        };
        let mu1 = self.known.mu1_per_s.or(value(Parameter::Mu1)).unwrap_or(MU1_USUAL);
        let reception = Reception {
            packet_s: mu1.recip(),
            interrupt_s: self.known.interrupt_s.or(value(Parameter::Interrupt)).unwrap_or(0.0),
            window_s: self.known.window_s,
            full_share: self.known.full_share,
        };
        let of_peak = || self.known.peak_per_s.map(|peak| mu2_of(peak, reception.mu1(peak)));
        let mu2 = self.known.mu2_per_s.or_else(of_peak);
        let places = value(Parameter::Places).map(|places| places.round() as u32);
        Host {
            reception,
            mu2_per_s: mu2.or(value(Parameter::Mu2)).unwrap_or(self.peak),
            places: self.known.places.or(places).unwrap_or(PLACES_FITTED_MAX),
            patience_s: self.known.patience_s.or(value(Parameter::Patience)).unwrap_or(f64::INFINITY),
            retry_s: self.known.retry_s,
            service: self.known.service,
            gate: None,
        }
    }

    /// Parameters that can be half or twice as large, the others unchanged, and nothing shows it.
    pub(crate) fn undetermined(&self, best: &[f64], cost: impl Fn(&Host) -> f64) -> Vec<Parameter> {
        let least = cost(&self.host(best));
        let told = least + least.max(self.points.len() as f64 * ERROR_TOLD.powi(2));
        let unseen = |at: usize, factor: f64| {
            let mut place = best.to_vec();
            place[at] += factor.ln();
            cost(&self.host(&place)) < told
        };
        let open = self.wanted.iter().enumerate().filter(|(at, _)| unseen(*at, 0.5) || unseen(*at, 2.0));
        open.map(|(_, parameter)| *parameter).collect()
    }

    fn cost(&self, place: &[f64], noise: f64) -> f64 {
        let host = self.host(place);
        let unusual = |wanted, value: f64, usual: f64| {
            let is_wanted = self.wanted.contains(&wanted);
            if is_wanted { (noise * (value / usual).ln()).powi(2) } else { 0.0 }
        };
        costs(&host, self.points, self.known.run)
            + unusual(Parameter::Mu1, host.reception.packet_s.recip(), MU1_USUAL)
            + unusual(Parameter::Interrupt, host.reception.interrupt_s, INTERRUPT_USUAL)
    }

    fn starts(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        const MU1: [f64; 2] = [10.0, 100.0];
        const MU2: [f64; 2] = [1.02, 1.2];
        const PLACES: [f64; 6] = [4.0, 32.0, 129.0, 512.0, 4097.0, 65_536.0];
        const PATIENCE: [f64; 4] = [0.1, 0.5, 2.0, 10.0];
        let all = MU1.len() * MU2.len() * PLACES.len() * PATIENCE.len();
        (0..all).map(|choice| {
            let place = |parameter: &Parameter| match parameter {
                Parameter::Mu1 => (MU1[choice % 2] * self.peak).ln(),
                Parameter::Interrupt => INTERRUPT_USUAL.ln(),
                Parameter::Mu2 => (MU2[choice / 2 % 2] * self.peak).ln(),
                Parameter::Places => PLACES[choice / 4 % 6].ln(),
                Parameter::Patience => PATIENCE[choice / 24].ln(),
            };
            self.wanted.iter().map(place).collect()
        })
    }
}

/// mu2 of a host with this peak. Reception takes nine tenths of a request at most: no mu2 would be fast
/// enough for more.
fn mu2_of(peak: f64, mu1: f64) -> f64 {
    (peak.recip() - mu1.recip()).max(0.1 * peak.recip()).recip()
}

fn range(parameter: Parameter) -> (f64, f64) {
    match parameter {
        Parameter::Mu1 | Parameter::Mu2 => (1e-3, 1e9),
        Parameter::Interrupt => (1e-9, 1e-2),
        Parameter::Places => (1.0, f64::from(PLACES_FITTED_MAX)),
        Parameter::Patience => (1e-4, 1e4),
    }
}
