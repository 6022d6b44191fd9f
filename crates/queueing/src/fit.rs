//! The host that explains a measured sweep best: mu1 (and c0, where packets come in batches), mu2, K and T by
//! least squares.
//!
//! It owns the cost of a disagreement and the search. It must never fit what is known, nor hide what the
//! points do not tell: such a parameter is named in [`Fit::undetermined`].
//! Order: [`fit`] on some points, [`residuals`] on others.

mod cost;
mod descent;
mod fault;
mod point;
mod search;

use crate::host::Host;
use crate::preemptive;
use cost::costs;
pub use cost::residuals;
pub use fault::FitFault;
pub use point::{Known, Parameter, Point, Residual};
use search::Search;

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The host that explains the points best.
    pub host: Host,
    /// What is left unexplained, point by point in the order given.
    pub residuals: Vec<Residual>,
    /// Root of the mean square of the relative errors of goodput, without unit.
    pub error: f64,
    /// `-mu2/mu1`, conclusion 4 of the paper, without unit; mu1 at the highest of the loads.
    pub slope: f64,
    /// Parameters that could be half or twice as large and explain the points as well.
    pub undetermined: Vec<Parameter>,
}

/// Finds the host that explains `points` best.
///
/// Errors of goodput count relative to the measured one (but to no less than a tenth of the peak), refusals
/// relative to the load, a median in proportion and a twentieth as much, for it scatters more and the model
/// is coarser there. mu1 of which the points say no more than their noise stays near 200 000 packets a
/// second, and c0 near 7 us.
pub fn fit(points: &[Point], known: &Known) -> Result<Fit, FitFault> {
    point::check(points, known)?;
    let search = Search::new(points, known);
    let best = search.best();
    let host = search.host(&best);
    let residuals =
        residuals(&host, points, known.run).map_err(|fault| FitFault::Number { point: None, fault })?;
    let squares: f64 = residuals.iter().map(|residual| residual.relative.powi(2)).sum();
    let most = points.iter().map(|point| point.load.requests_per_s + point.load.flood_per_s);
    let mu1 = host.reception.mu1(most.fold(0.0, f64::max));
    Ok(Fit {
        error: (squares / residuals.len() as f64).sqrt(),
        slope: preemptive::slope(mu1, host.mu2_per_s),
        undetermined: search.undetermined(&best, |host| costs(host, points, known.run)),
        residuals,
        host,
    })
}
