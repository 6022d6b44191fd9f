//! Why a fit is refused.
//!
//! It must never be used for a fit that is merely poor: that is told by its residuals.

use std::fmt;

use crate::host::Fault;

/// Why nothing can be fitted.
#[derive(Debug, Clone, PartialEq)]
pub enum FitFault {
    /// There are fewer points than parameters to find.
    TooFew {
        /// Points given.
        points: usize,
        /// Parameters to find.
        parameters: usize,
    },
    /// No point has a goodput above 0.
    NoGoodput,
    /// A number of a point, or one given as known, cannot be.
    Number {
        /// The point, from 0 on; none if it is one given as known.
        point: Option<usize>,
        /// Which number.
        fault: Fault,
    },
}

impl fmt::Display for FitFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FitFault::TooFew { points, parameters } => {
                write!(formatter, "{parameters} parameters cannot be told from {points} points")
            }
            FitFault::NoGoodput => write!(formatter, "no point has a goodput above 0"),
            FitFault::Number { point: Some(point), fault } => write!(formatter, "point {point}: {fault}"),
            FitFault::Number { point: None, fault } => write!(formatter, "given as known: {fault}"),
        }
    }
}

impl std::error::Error for FitFault {}
