//! Goodput: those who have their answer before they lose patience, `T2 P(response < T)`.
//!
//! It owns the long-run state of one queue with either kind of service. Clients who left still cost their
//! service: the server learns too late, or never, that nobody waits. It must never count one who was refused.

use crate::md1k::Md1k;
use crate::mm1k;

/// How the time of one service varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Exponential, as in the paper: as often very short as a few times the mean.
    Exponential,
    /// Always the same, as a server's work on like requests nearly is.
    Deterministic,
}

/// A queue of K places, first come, first served, in its long-run state.
#[derive(Debug, Clone)]
pub struct PatientQueue {
    lambda: f64,
    mu: f64,
    places: u32,
    shape: Shape,
}

#[derive(Debug, Clone)]
enum Shape {
    /// No request comes, none is served or none may wait.
    Idle,
    Exponential,
    Deterministic(Md1k),
}

impl PatientQueue {
    /// `lambda`: arrivals a second. `mu`: services a second; 0 if nobody is served. `places`: K.
    pub fn new(service: Service, lambda: f64, mu: f64, places: u32) -> PatientQueue {
        let shape = match service {
            _ if lambda <= 0.0 || mu <= 0.0 || places == 0 => Shape::Idle,
            Service::Exponential => Shape::Exponential,
            Service::Deterministic => Shape::Deterministic(Md1k::new(lambda, mu, places)),
        };
        PatientQueue { lambda, mu, places, shape }
    }

    /// Those served a second, in time or not; equation (5) if service is exponential.
    pub fn throughput(&self) -> f64 {
        match &self.shape {
            Shape::Idle => 0.0,
            Shape::Exponential => mm1k::throughput(self.lambda, self.mu, self.places),
            Shape::Deterministic(states) => states.throughput(),
        }
    }

    /// Mean seconds from arrival to the end of service of all who are served; infinite if nobody is.
    pub fn mean_response(&self) -> f64 {
        match &self.shape {
            Shape::Idle => f64::INFINITY,
            Shape::Exponential => mm1k::mean_response(self.lambda, self.mu, self.places),
            Shape::Deterministic(states) => states.mean_response(),
        }
    }

    /// Probability that somebody admitted has his answer within `time_s` seconds.
    pub fn within(&self, time_s: f64) -> f64 {
        match &self.shape {
            Shape::Idle => 0.0,
            Shape::Exponential => 1.0 - mm1k::exceeds(self.lambda, self.mu, self.places, time_s),
            Shape::Deterministic(states) => 1.0 - states.exceeds(time_s),
        }
    }

    /// Answers in time a second: `T2 P(response < T)`, T being `patience_s`.
    pub fn goodput(&self, patience_s: f64) -> f64 {
        self.throughput() * self.within(patience_s)
    }

    /// Seconds within which `share` (0 to 1) of the answers given within `patience_s` come; none if there are
    /// no such answers.
    pub fn quantile(&self, share: f64, patience_s: f64) -> Option<f64> {
        self.quantile_of(|time_s| self.within(time_s), share, patience_s)
    }

    /// The quantile of any probability `within` a time that grows with it, and is not known to this queue.
    pub(crate) fn quantile_of(
        &self,
        within: impl Fn(f64) -> f64,
        share: f64,
        patience_s: f64,
    ) -> Option<f64> {
        // Fewer than one in 10^12 cannot be told from a rounding error.
        let wanted = Some(within(patience_s)).filter(|within| *within > 1e-12)? * share;
        let (mut low, mut high) = (0.0, self.mu.recip());
        while within(high) < wanted && high < patience_s {
            (low, high) = (high, high * 2.0);
        }
        high = high.min(patience_s);
        // 40 halvings: to 10^-12 of the bracket.
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if within(middle) < wanted { low = middle } else { high = middle }
        }
        Some(high)
    }
}

/// Answers in time a second of an M/M/1/K: `lambda`, `mu` per second, `places` K, `patience_s` T.
pub fn goodput(lambda: f64, mu: f64, places: u32, patience_s: f64) -> f64 {
    PatientQueue::new(Service::Exponential, lambda, mu, places).goodput(patience_s)
}
