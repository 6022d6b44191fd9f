//! M/M/1/K: as M/M/1 with K places; who finds none free is refused.
//!
//! It owns the closed forms, written with `x = ln rho` and `exp_m1` so that they neither cancel near `rho =
//! 1` nor overflow far above it, for any K. It must never sum over all K places.

/// Probability that an arrival is refused; equations (2) and (3): `rho^K (1-rho) / (1-rho^(K+1))`.
///
/// `rho`: arrivals over service rate, at least 0, infinite if nobody is served. `places`: K; with none
/// everybody is refused.
pub fn loss(rho: f64, places: u32) -> f64 {
    if places == 0 {
        return 1.0;
    }
    if rho <= 0.0 {
        return 0.0;
    }
    let (x, k) = (rho.ln(), f64::from(places));
    if x == 0.0 {
        (k + 1.0).recip()
    } else if x < 0.0 {
        (k * x).exp() * x.exp_m1() / ((k + 1.0) * x).exp_m1()
    } else {
        (-x).exp_m1() / (-(k + 1.0) * x).exp_m1()
    }
}

/// Probability that nobody is there: `(1-rho) / (1-rho^(K+1))`.
pub fn empty(rho: f64, places: u32) -> f64 {
    if rho <= 0.0 {
        return 1.0;
    }
    let (x, k) = (rho.ln(), f64::from(places));
    if places == 0 {
        1.0
    } else if x == 0.0 {
        (k + 1.0).recip()
    } else {
        x.exp_m1().min(f64::MAX) / ((k + 1.0) * x).exp_m1()
    }
}

/// Those served a second: `lambda (1 - loss)`, which is also `mu (1 - empty)`; never above either rate.
///
/// `lambda`, `mu`: per second; `mu` may be 0, then nobody is served.
pub fn throughput(lambda: f64, mu: f64, places: u32) -> f64 {
    if lambda <= 0.0 || mu <= 0.0 {
        return 0.0;
    }
    let rho = lambda / mu;
    let served =
        if rho <= 1.0 { lambda * (1.0 - loss(rho, places)) } else { mu * (1.0 - empty(rho, places)) };
    served.clamp(0.0, lambda.min(mu))
}

/// Mean number in the system, all arrivals and times: `rho/(1-rho) - (K+1) rho^(K+1)/(1-rho^(K+1))`.
pub fn mean_number(rho: f64, places: u32) -> f64 {
    let k = f64::from(places);
    if rho <= 0.0 {
        return 0.0;
    }
    let x = rho.ln();
    // Below this both terms of the formula are nearly equal; the series has lost less than they would.
    if (x * (k + 1.0)).abs() < 1e-4 {
        return k / 2.0 + x * k * (k + 2.0) / 12.0;
    }
    let number = (-x).exp_m1().recip() - (k + 1.0) / (-(k + 1.0) * x).exp_m1();
    number.clamp(0.0, k)
}

/// Mean time from arrival to the end of service of those admitted, in seconds (Little's law). Infinite if
/// nobody is served.
pub fn mean_response(lambda: f64, mu: f64, places: u32) -> f64 {
    if mu <= 0.0 {
        return f64::INFINITY;
    }
    let served = throughput(lambda, mu, places);
    let mean = if served > 0.0 { mean_number(lambda / mu, places) / served } else { 0.0 };
    mean.max(mu.recip())
}

/// Probability that somebody admitted waits, service included, longer than `time_s` (first come, first
/// served).
///
/// Who finds n others leaves after n+1 services, an Erlang time, so he is still there after `time_s` if a
/// Poisson number N of mean `mu time_s` is at most n: the mean over N of the probability that an admitted one
/// finds N or more, `(rho^N - rho^K) / (1 - rho^K)`. With no place nobody is admitted, and the answer is 1.
pub fn exceeds(lambda: f64, mu: f64, places: u32, time_s: f64) -> f64 {
    if places == 0 || mu <= 0.0 {
        return 1.0;
    }
    let (x, k) = ((lambda / mu).max(f64::MIN_POSITIVE).ln(), f64::from(places));
    poisson_mean(mu * time_s, k, |n| finds_at_least(x, k, n)).clamp(0.0, 1.0)
}

/// Probability that somebody admitted finds `n` or more others.
fn finds_at_least(x: f64, k: f64, n: f64) -> f64 {
    if n >= k {
        0.0
    } else if x == 0.0 {
        (k - n) / k
    } else if x < 0.0 {
        (n * x).exp() * ((k - n) * x).exp_m1() / (k * x).exp_m1()
    } else {
        (-(k - n) * x).exp_m1() / (-k * x).exp_m1()
    }
}

/// Mean of `value(N)` for a Poisson number N, where `value` is zero from `end` on. Weights are taken outwards
/// from the likeliest number and divided by their sum, so nothing underflows and no factorial is needed.
fn poisson_mean(mean: f64, end: f64, value: impl Fn(f64) -> f64) -> f64 {
    const NEGLIGIBLE: f64 = 1e-18;
    let spread = 10.0 * mean.sqrt() + 50.0;
    if mean.is_infinite() || mean - spread > end {
        return 0.0;
    }
    let middle = mean.floor();
    let (mut total, mut sum) = (1.0, value(middle));
    let (mut n, mut weight) = (middle, 1.0);
    while n > 0.0 && weight > NEGLIGIBLE {
        weight *= n / mean;
        n -= 1.0;
        total += weight;
        sum += weight * value(n);
    }
    (n, weight) = (middle, 1.0);
    while weight > NEGLIGIBLE {
        n += 1.0;
        weight *= mean / n;
        total += weight;
        if n < end {
            sum += weight * value(n);
        }
    }
    sum / total
}
