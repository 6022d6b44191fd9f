//! Fitting one curve: the host that explains its first points, and what it says of all of them.
//!
//! It must never let the fit see a point that is called predicted.

use staunch_queueing::fit::{self, Known, Parameter, Point, Residual};
use staunch_queueing::{Gate, Host, OfferedLoad};

use super::chart::{self, Chart};
use super::curves::{Curves, Range, curves};
use super::expected::expect;
use super::fitted::{CurveFit, FitPoint, HostDocument};
use super::host::behind;
use super::measured::{Curve, Mark};

/// A curve with what came of it.
pub(crate) struct Fitted {
    /// What was measured.
    pub(crate) curve: Curve,
    /// The host without a gate.
    pub(crate) host: Host,
    /// For files.
    pub(crate) fit: CurveFit,
    /// The model over the range of the curve.
    pub(crate) curves: Curves,
}

/// Fits the first points of a curve, and predicts all.
///
/// # Errors
/// The points tell too little, or a number cannot be.
pub(crate) fn fitted(curve: Curve, first: usize, known: &Known, gate: Gate) -> Result<Fitted, String> {
    let points: Vec<Point> = curve.off.iter().map(point).collect();
    let found = fit::fit(&points[..first], known).map_err(|fault| {
        format!(
            "{}: {fault}; --backlog, --patience, --mu1, --mu2 and --peak say what is known, --first N takes \
             more points",
            curve.name
        )
    })?;
    let host = found.host.clone();
    let residuals = residuals(&host, &points, known)?;
    let sending_s = known.run.map(|run| run.sending_s);
    let (seen, unseen) = residuals.split_at(first);
    let mut documents = documents(&host, &curve.off, seen, true, sending_s)?;
    documents.extend(self::documents(&host, &curve.off[first..], unseen, false, sending_s)?);
    let gated = behind(&host, gate);
    let on: Vec<Point> = curve.on.iter().map(point).collect();
    let gated = self::documents(&gated, &curve.on, &self::residuals(&gated, &on, known)?, false, sending_s)?;
    let fit = CurveFit {
        name: curve.name.clone(),
        over: curve.over.word().to_owned(),
        host: HostDocument::of(&host),
        sending_s,
        given: given(known),
        undetermined: found.undetermined.iter().map(|one| word(*one).to_owned()).collect(),
        slope: found.slope,
        error_fitted: found.error,
        error_predicted: mean_square(unseen),
        error_predicted_max: unseen.iter().map(|one| one.relative.abs()).reduce(f64::max),
        points: documents,
        gated,
    };
    let curves = along(&curve, &host, gate, sending_s)?;
    Ok(Fitted { curve, host, fit, curves })
}

fn residuals(host: &Host, points: &[Point], known: &Known) -> Result<Vec<Residual>, String> {
    fit::residuals(host, points, known.run).map_err(|fault| fault.to_string())
}

/// The model from the lowest load to the highest.
fn along(curve: &Curve, host: &Host, gate: Gate, sending_s: Option<f64>) -> Result<Curves, String> {
    let also: Vec<f64> = curve.off.iter().chain(&curve.on).map(|mark| curve.over.place(&mark.load)).collect();
    let ends = also
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), place| (low.min(*place), high.max(*place)));
    let load = curve.off.first().map_or(OfferedLoad::requests(0.0), |mark| mark.load);
    let is_even = chart::is_even(curve.over);
    curves(host, gate, &Range { over: curve.over, load, ends, is_even, also: &also, sending_s })
}

impl Fitted {
    /// What is drawn of it.
    pub(crate) fn chart(&self) -> Chart<'_> {
        let curve = &self.curve;
        let fitted = self.fit.points.iter().filter(|point| point.fitted).count();
        Chart {
            title: format!(
                "{}: the model fitted on the first {fitted} of {} points",
                curve.name,
                curve.off.len()
            ),
            over: curve.over,
            is_even: chart::is_even(curve.over),
            curves: &self.curves,
            off: &curve.off,
            on: &curve.on,
        }
    }
}

fn point(mark: &Mark) -> Point {
    Point {
        load: mark.load,
        goodput_per_s: mark.goodput.median,
        p50_s: mark.p50_ms.map(|ms| ms / 1e3),
        // A full queue of the kernel drops a SYN silently: no client can tell it from slowness.
        refused_per_s: None,
    }
}

fn documents(
    host: &Host,
    marks: &[Mark],
    residuals: &[Residual],
    fitted: bool,
    sending_s: Option<f64>,
) -> Result<Vec<FitPoint>, String> {
    let document = |(mark, residual): (&Mark, &Residual)| {
        Ok(FitPoint {
            requests_per_s: mark.load.requests_per_s,
            syn_per_s: mark.load.flood_per_s,
            fitted,
            goodput_per_s: mark.goodput.median,
            goodput_min_per_s: mark.goodput.min,
            goodput_max_per_s: mark.goodput.max,
            p50_ms: mark.p50_ms,
            p99_ms: mark.p99_ms,
            predicted: expect(host, &mark.load, sending_s)?,
            error: residual.relative,
        })
    };
    marks.iter().zip(residuals).map(document).collect()
}

fn given(known: &Known) -> Vec<String> {
    let all = [
        (Parameter::Mu1, known.mu1_per_s.is_some()),
        (Parameter::Interrupt, known.interrupt_s.is_some()),
        (Parameter::Mu2, known.peak_per_s.or(known.mu2_per_s).is_some()),
        (Parameter::Places, known.places.is_some()),
        (Parameter::Patience, known.patience_s.is_some()),
    ];
    let given = all.iter().filter(|(_, is_given)| *is_given).map(|(one, _)| word(*one));
    let rest = [("phi", known.full_share < 1.0), ("r", known.retry_s > 0.0)];
    let rest = rest.iter().filter(|(_, is_given)| *is_given).map(|(word, _)| *word);
    given.chain(rest).map(str::to_owned).collect()
}

/// A parameter in files and tables.
fn word(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::Mu1 => "mu1",
        Parameter::Interrupt => "c0",
        Parameter::Mu2 => "mu2",
        Parameter::Places => "K",
        Parameter::Patience => "T",
    }
}

fn mean_square(residuals: &[Residual]) -> Option<f64> {
    let sum: f64 = residuals.iter().map(|residual| residual.relative.powi(2)).sum();
    (!residuals.is_empty()).then(|| (sum / residuals.len() as f64).sqrt())
}
