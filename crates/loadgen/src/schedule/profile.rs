//! How many arrivals a second there are, as it changes over a run.
//!
//! It must never know how they are spread.

mod text;

pub use text::parse_profile;

use std::fmt;

use crate::Fault;

/// The rate over time. After a ramp or the last step it stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// Always the same.
    Steady {
        /// Arrivals a second.
        rate_per_s: f64,
    },
    /// In a straight line from one rate to another.
    Ramp {
        /// Arrivals a second at the beginning.
        from: f64,
        /// Arrivals a second at the end, and after it.
        to: f64,
        /// How long it takes, in seconds.
        over_s: f64,
    },
    /// Rates after each other: arrivals per second, and for how many seconds.
    Steps(Vec<(f64, f64)>),
}

/// A stretch of time in which the rate is a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    /// Arrivals a second at its beginning.
    pub(super) rate_per_s: f64,
    /// By how much the rate grows a second.
    pub(super) slope: f64,
    /// Seconds; infinite for the last.
    pub(super) duration_s: f64,
}

/// More than one arrival a nanosecond could not be told apart.
const RATE_PER_S_MAX: f64 = 1e9;

impl Profile {
    /// Arrivals a second at the beginning.
    pub fn first_rate_per_s(&self) -> f64 {
        match self {
            Self::Steady { rate_per_s } => *rate_per_s,
            Self::Ramp { from, .. } => *from,
            Self::Steps(steps) => steps.first().map_or(0.0, |step| step.0),
        }
    }

    /// How long it changes or says that it lasts, in seconds; none for one that is always the same.
    pub fn length_s(&self) -> Option<f64> {
        match self {
            Self::Steady { .. } => None,
            Self::Ramp { over_s, .. } => Some(*over_s),
            Self::Steps(steps) => Some(steps.iter().map(|(_, time_s)| time_s).sum()),
        }
    }

    /// The stretches of the profile; the last is infinite and level.
    pub(super) fn stretches(&self) -> Result<Vec<Stretch>, Fault> {
        self.check()?;
        let level = |rate_per_s, duration_s| Stretch { rate_per_s, slope: 0.0, duration_s };
        Ok(match self {
            Self::Steady { rate_per_s } => vec![level(*rate_per_s, f64::INFINITY)],
            Self::Ramp { from, to, over_s } => {
                let ramp = Stretch { rate_per_s: *from, slope: (to - from) / over_s, duration_s: *over_s };
                vec![ramp, level(*to, f64::INFINITY)]
            }
            Self::Steps(steps) => {
                let mut stretches: Vec<Stretch> = steps.iter().map(|step| level(step.0, step.1)).collect();
                if let Some(last) = stretches.last_mut() {
                    last.duration_s = f64::INFINITY;
                }
                stretches
            }
        })
    }

    fn check(&self) -> Result<(), Fault> {
        let (rates, durations): (Vec<f64>, Vec<f64>) = match self {
            Self::Steady { rate_per_s } => (vec![*rate_per_s], vec![]),
            Self::Ramp { from, to, over_s } => (vec![*from, *to], vec![*over_s]),
            Self::Steps(steps) => steps.iter().copied().unzip(),
        };
        if let Some(rate) = rates.iter().find(|rate| !(0.0..=RATE_PER_S_MAX).contains(*rate)) {
            return Err(Fault::new(format!("{rate} arrivals a second cannot be offered: 0 to 1e9 can")));
        }
        if let Some(duration) = durations.iter().find(|duration| !(duration.is_finite() && **duration > 0.0))
        {
            return Err(Fault::new(format!(
                "a ramp or step cannot last {duration} s: it has to be more than 0"
            )));
        }
        if rates.iter().all(|rate| *rate == 0.0) {
            return Err(Fault::new("nothing would ever be offered: no rate is above 0"));
        }
        Ok(())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady { rate_per_s } => write!(formatter, "{rate_per_s}/s"),
            Self::Ramp { from, to, over_s } => write!(formatter, "{from}/s..{to}/s over {over_s}s"),
            Self::Steps(steps) => {
                let words: Vec<String> =
                    steps.iter().map(|(rate, time)| format!("{rate}/s for {time}s")).collect();
                formatter.write_str(&words.join(", "))
            }
        }
    }
}
