//! M/D/1/K: as M/M/1/K, but each service takes the same time; much nearer to a server that does the same work
//! for each request.
//!
//! It owns the states. Numbers, losses and means are exact (recursion of M/G/1/N in Tijms, "A First Course in
//! Stochastic Models", section 9.2, which adds only positive terms). The distribution of the response is
//! exact to within one service: the rest of the service found under way is taken as uniform.
//! It must never be made for a server that serves nobody.

use crate::limits::DETERMINISTIC_LOAD_MAX;

/// A queue in its long-run state.
#[derive(Debug, Clone)]
pub struct Md1k {
    lambda: f64,
    mu: f64,
    places: u32,
    /// Probability that somebody admitted finds so many or fewer others, from `found_first` on.
    found: Vec<f64>,
    found_first: f64,
    empty: f64,
    loss: f64,
    mean_number: f64,
}

impl Md1k {
    /// The queue of arrivals `lambda` and services `mu` a second, both above 0, with `places` at least 1.
    ///
    /// Takes time and memory in proportion to `places` from full load on, and little below.
    pub fn new(lambda: f64, mu: f64, places: u32) -> Md1k {
        let rho = lambda / mu;
        let (weights, first) = if rho > DETERMINISTIC_LOAD_MAX {
            saturated(places)
        } else {
            (states(rho, places as usize), 0.0)
        };
        let sum: f64 = weights.iter().sum();
        let none = if first > 0.0 { 0.0 } else { weights[0] };
        // Served as many as admitted: lambda c sum = mu (1 - c none), which gives the factor c of the
        // weights.
        let factor = (rho * sum + none).recip();
        let loss = ((sum * (rho - 1.0) + none) * factor).clamp(0.0, 1.0);
        let below: f64 = weights.iter().zip(0_u32..).map(|(weight, n)| weight * (first + f64::from(n))).sum();
        let mut up_to = 0.0;
        let found = weights.iter().map(|weight| {
            up_to += weight / sum;
            up_to
        });
        Md1k {
            lambda,
            mu,
            places,
            found: found.collect(),
            found_first: first,
            empty: none * factor,
            loss,
            mean_number: below * factor + f64::from(places) * loss,
        }
    }

    /// Probability that an arrival is refused.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Those served a second, never above arrivals or services.
    pub fn throughput(&self) -> f64 {
        let served = if self.lambda < self.mu {
            self.lambda * (1.0 - self.loss)
        } else {
            self.mu * (1.0 - self.empty)
        };
        served.clamp(0.0, self.lambda.min(self.mu))
    }

    /// Mean number in the system.
    pub fn mean_number(&self) -> f64 {
        self.mean_number
    }

    /// Mean time from arrival to the end of service of those admitted, in seconds (Little's law).
    pub fn mean_response(&self) -> f64 {
        (self.mean_number / self.throughput()).clamp(self.mu.recip(), f64::from(self.places) / self.mu)
    }

    /// Probability that somebody admitted waits, service included, longer than `time_s` seconds. Who finds n
    /// others waits between n and n+1 services, evenly spread; who finds none waits one service.
    pub fn exceeds(&self, time_s: f64) -> f64 {
        let services = time_s * self.mu;
        if services < 1.0 {
            return 1.0;
        }
        if services >= f64::from(self.places) {
            return 0.0;
        }
        let whole = services.floor();
        let before = self.up_to(whole - 1.0);
        let within = before + (self.up_to(whole) - before) * (services - whole);
        (1.0 - within).clamp(0.0, 1.0)
    }

    fn up_to(&self, others: f64) -> f64 {
        let place = others - self.found_first;
        if place < 0.0 {
            0.0
        } else if place >= f64::from(self.places) {
            1.0
        } else {
            self.found.get(place as usize).copied().unwrap_or(1.0)
        }
    }
}

/// Far above capacity whoever is admitted takes the last place.
fn saturated(places: u32) -> (Vec<f64>, f64) {
    (vec![1.0], f64::from(places - 1))
}

/// Weights of the states 0 to K-1, not normalised: `u(j) (1-b(0)) = u(0) b(j-1) + sum over 0<k<j of b(j-k)
/// u(k)`, where b(n) is the probability that more than n arrive during one service. Those too small to count
/// are left out.
fn states(rho: f64, places: usize) -> Vec<f64> {
    const HUGE: f64 = 1e250;
    // Beside the first weight, which is 1 as long as they become smaller.
    const NEGLIGIBLE: f64 = 1e-40;
    let more_than = arrivals_exceed(rho);
    let b = |n: usize| more_than.get(n).copied().unwrap_or(0.0);
    let none_arrive = (-rho).exp();
    let mut weights = vec![1.0];
    let (mut ratio, mut steady, mut living) = (0.0_f64, 0, 0);
    while weights.len() < places {
        let j = weights.len();
        let last = weights[j - 1];
        let next = if steady >= STEADY_STEPS {
            last * ratio
        } else {
            let first = (j + 1).saturating_sub(more_than.len()).max(1);
            let passed: f64 = (first..j).map(|k| b(j - k) * weights[k]).sum();
            (weights[0] * b(j - 1) + passed) / none_arrive
        };
        let changed = (next / last - ratio).abs();
        steady = if steady >= STEADY_STEPS || changed <= 1e-13 * ratio { steady + 1 } else { 0 };
        ratio = if last > 0.0 { next / last } else { 0.0 };
        if next < NEGLIGIBLE {
            break;
        }
        weights.push(next);
        if next > HUGE {
            weights[living..].iter_mut().for_each(|weight| *weight /= HUGE);
            living += weights[living..].iter().take_while(|weight| **weight == 0.0).count();
        }
    }
    weights
}

/// The states end in a geometric row; after so many equal ratios the row is continued without the recursion.
const STEADY_STEPS: u32 = 8;

/// Probabilities that more than 0, 1, 2, ... of a Poisson number of mean `rho` come, until they vanish.
fn arrivals_exceed(rho: f64) -> Vec<f64> {
    let mut exactly = vec![(-rho).exp()];
    while exactly.len() < 2 || (exactly.len() as f64) < rho || exactly[exactly.len() - 1] > 1e-20 {
        exactly.push(exactly[exactly.len() - 1] * rho / exactly.len() as f64);
    }
    let mut above = 0.0;
    let mut exceeding: Vec<f64> = exactly[1..]
        .iter()
        .rev()
        .map(|exact| {
            above += exact;
            above
        })
        .collect();
    exceeding.reverse();
    exceeding
}
