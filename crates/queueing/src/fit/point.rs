//! What was measured, what is known, and what a fit leaves unexplained.
//!
//! It owns the check of numbers. It must never calculate.

use super::fault::FitFault;
use crate::episode::Run;
use crate::host::{Fault, OfferedLoad, above_zero, at_least_zero, share};
use crate::limits::PLACES_MAX;
use crate::patience::Service;

/// A measured load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// What was offered.
    pub load: OfferedLoad,
    /// Answers in time a second.
    pub goodput_per_s: f64,
    /// Median seconds from arrival to answer among answers in time, if it was measured.
    pub p50_s: Option<f64>,
    /// Requests refused a second for want of a place, if they were counted.
    pub refused_per_s: Option<f64>,
}

/// What need not be fitted, and how it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Requests a second that were served when enough came and nothing else did: `1/(1/mu1 + 1/mu2)`,
    /// equation (4) solved for as many as are served.
    pub peak_per_s: Option<f64>,
    /// mu2, requests a second; before what follows from the peak.
    pub mu2_per_s: Option<f64>,
    /// mu1, packets a second; where there is a window `1/c1`, what it comes to in large batches.
    pub mu1_per_s: Option<f64>,
    /// Seconds between a first packet and the interrupt it causes; 0 for at once, and then mu1 is constant.
    pub window_s: f64,
    /// phi, what is left of c1 for a packet that finds all places taken; 1 in the paper.
    pub full_share: f64,
    /// c0 of equation (10), seconds for each interrupt; fitted if there is a window.
    pub interrupt_s: Option<f64>,
    /// K, places, the request in service included.
    pub places: Option<u32>,
    /// T, seconds.
    pub patience_s: Option<f64>,
    /// Seconds until a client tries again whose handshake found no place, as in [`crate::Host`]; 0 for never.
    pub retry_s: f64,
    /// Seconds of sending of each point, if each began with an empty queue; none for the long run.
    pub run: Option<Run>,
    /// How the time of one request varies.
    pub service: Service,
}

/// What a fit finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Packets a second of S1.
    Mu1,
    /// c0: what an interrupt of S1 costs.
    Interrupt,
    /// Requests a second of S2.
    Mu2,
    /// K.
    Places,
    /// T.
    Patience,
}

/// A point, measured and predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// What was offered.
    pub load: OfferedLoad,
    /// Answers in time a second, as measured.
    pub measured_per_s: f64,
    /// Answers in time a second, as predicted.
    pub predicted_per_s: f64,
    /// Predicted less measured, over the measured (but over no less than a tenth of the largest measured).
    pub relative: f64,
}

impl Known {
    /// Parameters that are left to find, in their order.
    pub(crate) fn wanted(&self) -> Vec<Parameter> {
        let unknown = [
            (self.peak_per_s.or(self.mu2_per_s).is_none(), Parameter::Mu2),
            (self.mu1_per_s.is_none(), Parameter::Mu1),
            (self.interrupt_s.is_none() && self.window_s > 0.0, Parameter::Interrupt),
            (self.places.is_none(), Parameter::Places),
            (self.patience_s.is_none(), Parameter::Patience),
        ];
        unknown.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, parameter)| *parameter).collect()
    }

    fn check(&self) -> Result<(), Fault> {
        let optional = |what, value: Option<f64>| value.map_or(Ok(()), |value| above_zero(what, value));
        optional("the peak in requests a second", self.peak_per_s)?;
        optional("mu2 in requests a second", self.mu2_per_s)?;
        optional("mu1 in packets a second", self.mu1_per_s)?;
        optional("the patience in seconds", self.patience_s)?;
        at_least_zero("the window of coalescing in seconds", self.window_s)?;
        share("the cost when full as a share", self.full_share)?;
        at_least_zero("the seconds until a client tries again", self.retry_s)?;
        at_least_zero("the cost of an interrupt in seconds", self.interrupt_s.unwrap_or(0.0))?;
        optional("the time of sending in seconds", self.run.map(|run| run.sending_s))?;
        match self.places {
            Some(places) if places == 0 || places > PLACES_MAX => {
                let value = f64::from(places);
                Err(Fault { what: "the number of places", must: "1 to 1048576", value })
            }
            _ => Ok(()),
        }
    }
}

impl Point {
    fn check(&self) -> Result<(), Fault> {
        self.load.check()?;
        above_zero("the requests offered per second", self.load.requests_per_s)?;
        at_least_zero("the goodput per second", self.goodput_per_s)?;
        at_least_zero("the refused per second", self.refused_per_s.unwrap_or(0.0))?;
        above_zero("the median in seconds", self.p50_s.unwrap_or(1.0))
    }
}

/// Says why `points` cannot be fitted, if so.
pub(crate) fn check(points: &[Point], known: &Known) -> Result<(), FitFault> {
    known.check().map_err(|fault| FitFault::Number { point: None, fault })?;
    for (at, point) in points.iter().enumerate() {
        point.check().map_err(|fault| FitFault::Number { point: Some(at), fault })?;
    }
    let parameters = known.wanted().len();
    if points.len() < parameters {
        return Err(FitFault::TooFew { points: points.len(), parameters });
    }
    let any = known.peak_per_s.or(known.mu2_per_s).is_some()
        || points.iter().any(|point| point.goodput_per_s > 0.0);
    if any { Ok(()) } else { Err(FitFault::NoGoodput) }
}
