//! The formulas against values worked out by hand, against plain sums, and at the ends of their ranges.
//!
//! It must never use the simulator.

use staunch_queueing::md1k::Md1k;
use staunch_queueing::patience::{PatientQueue, goodput};
use staunch_queueing::{Service, batching, mm1, mm1k, preemptive};

#[track_caller]
fn near(value: f64, expected: f64, relative: f64) {
    let off = (value - expected).abs();
    assert!(off <= relative * expected.abs() + 1e-300, "{value} instead of {expected}");
}

/// Probabilities of the states of an M/M/1/K, by the definition.
fn states(rho: f64, places: i32) -> Vec<f64> {
    let weights: Vec<f64> = (0..=places).map(|n| rho.powi(n)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn mm1() {
    near(mm1::empty(3.0, 4.0), 0.25, 1e-15);
    near(mm1::mean_number(3.0, 4.0), 3.0, 1e-15);
    near(mm1::mean_response(3.0, 4.0), 1.0, 1e-15);
    near(mm1::exceeds(3.0, 4.0, 2.0), (-2.0_f64).exp(), 1e-15);
    assert_eq!(mm1::empty(5.0, 4.0), 0.0);
    assert_eq!(mm1::mean_number(4.0, 4.0), f64::INFINITY);
    assert_eq!(mm1::mean_response(4.0, 4.0), f64::INFINITY);
    assert_eq!(mm1::exceeds(4.0, 4.0, 1e9), 1.0);
}

#[test]
fn loss_by_hand() {
    for (rho, places, expected) in [
        (0.5, 1, 1.0 / 3.0),
        (1.0, 3, 0.25),
        (2.0, 2, 4.0 / 7.0),
        (0.0, 5, 0.0),
        (0.7, 0, 1.0),
        (f64::INFINITY, 9, 1.0),
    ] {
        near(mm1k::loss(rho, places), expected, 1e-14);
    }
}

#[test]
fn mm1k_against_plain_sums() {
    for rho in [1e-3, 0.3, 0.9, 0.999, 1.0, 1.001, 1.7, 12.0] {
        for places in [1, 2, 7, 40] {
            let states = states(rho, places);
            let k = places as u32;
            near(mm1k::loss(rho, k), states[k as usize], 1e-10);
            near(mm1k::empty(rho, k), states[0], 1e-10);
            let number: f64 = states.iter().zip(0_u32..).map(|(p, n)| p * f64::from(n)).sum();
            near(mm1k::mean_number(rho, k), number, 1e-8);
            near(mm1k::throughput(rho * 50.0, 50.0, k), 50.0 * (1.0 - states[0]), 1e-10);
            near(mm1k::mean_response(rho * 50.0, 50.0, k), number / (50.0 * (1.0 - states[0])), 1e-8);
            for services in [0.1, 1.0, 5.0, 30.0] {
                let late = late_by_erlang(&states, services);
                let exceeds = mm1k::exceeds(rho * 50.0, 50.0, k, services / 50.0);
                assert!((exceeds - late).abs() < 1e-12, "rho {rho}, K {k}: {exceeds} instead of {late}");
            }
        }
    }
}

/// A request that finds n others waits n+1 exponential services: longer than `services` if at most n end
/// then.
fn late_by_erlang(states: &[f64], services: f64) -> f64 {
    let admitted: f64 = states[..states.len() - 1].iter().sum();
    let mut exactly = (-services).exp();
    let mut at_most = exactly;
    let mut late = 0.0;
    for (n, state) in states[..states.len() - 1].iter().enumerate() {
        late += state / admitted * at_most;
        exactly *= services / (n as f64 + 1.0);
        at_most += exactly;
    }
    late
}

#[test]
fn many_places_come_near_mm1() {
    for (lambda, mu) in [(30.0, 100.0), (95.0, 100.0)] {
        near(mm1k::mean_number(lambda / mu, 65_535), mm1::mean_number(lambda, mu), 1e-10);
        near(mm1k::mean_response(lambda, mu, 65_535), mm1::mean_response(lambda, mu), 1e-10);
        let late = mm1k::exceeds(lambda, mu, 65_535, 0.5);
        assert!((late - mm1::exceeds(lambda, mu, 0.5)).abs() < 1e-12, "{late}");
    }
}

#[test]
fn near_and_far_from_full_load() {
    // At rho = 1 all states are as likely; around it nothing may jump.
    let k = 65_535;
    near(mm1k::loss(1.0, k), 1.0 / 65_536.0, 1e-14);
    near(mm1k::mean_number(1.0, k), f64::from(k) / 2.0, 1e-14);
    for step in [1e-16, 1e-14, 1e-12, 1e-10, 1e-9, 2e-9, 1e-8] {
        near(mm1k::loss(1.0 + step, k), mm1k::loss(1.0 - step, k), 1e-2);
        let both = mm1k::mean_number(1.0 + step, k) + mm1k::mean_number(1.0 - step, k);
        near(both, f64::from(k), 1e-6);
    }
    for rho in [1e3, 1e9, 1e300] {
        near(mm1k::loss(rho, k), 1.0 - 1.0 / rho, 1e-12);
        near(mm1k::throughput(rho, 1.0, k), 1.0, 1e-12);
        near(mm1k::mean_number(rho, k), f64::from(k), 1e-6);
        near(mm1k::exceeds(rho, 1.0, k, 60_000.0), 1.0, 1e-12);
        assert!(mm1k::exceeds(rho, 1.0, k, 70_000.0) < 1e-9);
    }
}

#[test]
fn deterministic_by_hand() {
    for rho in [0.01_f64, 0.5, 1.0, 1.5, 29.0, 31.0, 1e6] {
        near(Md1k::new(rho, 1.0, 1).loss(), rho / (1.0 + rho), 1e-9);
        // Two places: the weights of the states found are 1 and e^rho - 1.
        let expected = (rho - 1.0 + (-rho).exp()) / (rho + (-rho).exp());
        let loss = Md1k::new(rho, 1.0, 2).loss();
        assert!((loss - expected).abs() < 1e-12, "rho {rho}: {loss} instead of {expected}");
    }
}

#[test]
fn deterministic_mean_is_pollaczek_and_khinchine() {
    for rho in [0.1, 0.5, 0.8, 0.95, 0.99] {
        let queue = Md1k::new(rho * 1780.0, 1780.0, 65_535);
        near(queue.mean_number(), rho + rho * rho / (2.0 * (1.0 - rho)), 1e-7);
        near(queue.throughput(), rho * 1780.0, 1e-9);
        assert!(queue.loss() < 1e-9);
    }
}

#[test]
fn deterministic_full_queue() {
    for rho in [1.01, 1.5, 5.0, 29.9, 30.1, 1e9] {
        let queue = Md1k::new(rho, 1.0, 65_535);
        near(queue.throughput(), 1.0, 1e-9);
        near(queue.loss(), 1.0 - 1.0 / rho, 1e-6);
        assert!(queue.exceeds(65_000.0) > 0.999, "rho {rho}");
        assert_eq!(queue.exceeds(65_536.0), 0.0);
    }
}

#[test]
fn equations_of_the_paper() {
    let (mu1, mu2) = (200_000.0, 18_000.0);
    near(preemptive::p0(50_000.0, mu1), 0.75, 1e-15);
    near(mm1k::loss(1.5, 8), 1.5_f64.powi(8) * (1.0 - 1.5) / (1.0 - 1.5_f64.powi(9)), 1e-12);
    near(preemptive::mu2r(50_000.0, mu1, mu2), 13_500.0, 1e-15);
    let rho: f64 = 50_000.0 / 13_500.0;
    let t2 = 50_000.0 * (1.0 - rho.powi(16) * (1.0 - rho) / (1.0 - rho.powi(17)));
    near(preemptive::t2(50_000.0, mu1, mu2, 16), t2, 1e-9);
    near(preemptive::loss_heavy(50_000.0, mu1, mu2), 1.0 - 1.0 / rho, 1e-12);
    near(preemptive::t2_heavy(50_000.0, mu1, mu2), 13_500.0, 1e-15);
    // Equation (7) is what equation (5) comes to in heavy load, and a straight line of slope -mu2/mu1.
    near(preemptive::t2(150_000.0, mu1, mu2, 16), preemptive::t2_heavy(150_000.0, mu1, mu2), 1e-9);
    let fall = preemptive::t2_heavy(120_000.0, mu1, mu2) - preemptive::t2_heavy(110_000.0, mu1, mu2);
    near(fall / 10_000.0, preemptive::slope(mu1, mu2), 1e-9);
    near(preemptive::slope(mu1, mu2), -0.09, 1e-12);
    assert_eq!(preemptive::t2_heavy(300_000.0, mu1, mu2), 0.0);
}

#[test]
fn batches() {
    near(batching::mu1(4e-6, 6e-6, 1.0), 100_000.0, 1e-12);
    near(batching::mu1(4e-6, 6e-6, 6.0), 200_000.0, 1e-12);
    near(batching::mu1(4e-6, 6e-6, 1e12), 250_000.0, 1e-9);
}

#[test]
fn long_queue_and_patience() {
    // 4096 places at 1780 a second are 2.3 s of waiting: nobody has that much patience.
    assert!(goodput(3000.0, 1780.0, 4096, 1.0) < 1e-9);
    near(goodput(3000.0, 1780.0, 128, 1.0), 1780.0, 1e-6);
    near(goodput(1000.0, 1780.0, 4096, 1.0), 1000.0, 1e-9);
    near(goodput(1000.0, 1780.0, 4096, f64::INFINITY), 1000.0, 1e-9);
}

#[test]
fn quantiles_of_mm1() {
    // The response of an M/M/1 is exponential.
    let queue = PatientQueue::new(Service::Exponential, 50.0, 100.0, 65_535);
    let expected = -(0.01_f64.ln()) / 50.0;
    near(queue.quantile(0.99, f64::INFINITY).expect("answers come"), expected, 1e-6);
    assert_eq!(PatientQueue::new(Service::Exponential, 0.0, 100.0, 9).quantile(0.5, 1.0), None);
    assert_eq!(PatientQueue::new(Service::Deterministic, 9000.0, 100.0, 900).quantile(0.5, 1.0), None);
}
