//! The simulator against the formulas. Each comparison runs eight seeds, and the formula must lie within the
//! interval that holds the true mean in 999 of 1000 cases, widened by what the formula is known to leave out.
//!
//! It must never adjust a seed until it fits.

use staunch_queueing::batching::Reception;
use staunch_queueing::simulate::{Measured, Scenario, run, run_with};
use staunch_queueing::{Admission, Gate, Host, OfferedLoad, Run, Service, mm1k, preemptive};

const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Student's t for 7 degrees of freedom, two-sided 99.9 %.
const STUDENT: f64 = 5.408;

/// The first and the last service reach over the edges of what is counted: one in some ten thousand.
const EDGES: f64 = 5e-5;

fn host(service: Service, places: u32) -> Host {
    Host {
        reception: Reception::constant(1e9),
        mu2_per_s: 1000.0,
        places,
        patience_s: f64::INFINITY,
        retry_s: 0.0,
        service,
        gate: None,
    }
}

fn scenario(host: Host, load: OfferedLoad) -> Scenario {
    Scenario {
        host,
        load,
        handshake_s: 0.0,
        reception_places: 1 << 20,
        warm_up_s: 10.0,
        sending_s: 110.0,
        drain: false,
        seed: 0,
    }
}

fn runs(scenario: &Scenario) -> Vec<Measured> {
    let with_seed = |seed: &u64| Scenario { seed: *seed, ..scenario.clone() };
    SEEDS.iter().map(|seed| run(&with_seed(seed)).expect("a possible scenario")).collect()
}

/// The formula's value lies in the interval of the counted ones, widened by `left_out` of the value.
#[track_caller]
fn agrees(what: &str, runs: &[Measured], count: impl Fn(&Measured) -> f64, expected: f64, left_out: f64) {
    let counted: Vec<f64> = runs.iter().map(count).collect();
    let mean = counted.iter().sum::<f64>() / counted.len() as f64;
    let squares: f64 = counted.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (counted.len() - 1) as f64 / counted.len() as f64).sqrt();
    let allowed = STUDENT * error + (left_out + EDGES) * expected.abs() + 1e-12;
    assert!((mean - expected).abs() <= allowed, "{what}: {mean} counted, {expected} +- {allowed} expected");
}

fn lost(measured: &Measured) -> f64 {
    measured.refused as f64 / measured.offered as f64
}

#[test]
fn exponential_queue() {
    for (lambda, places) in [(500.0, 5), (900.0, 20), (1000.0, 10), (1500.0, 8), (4000.0, 50)] {
        let runs = runs(&scenario(host(Service::Exponential, places), OfferedLoad::requests(lambda)));
        let rho = lambda / 1000.0;
        agrees("loss", &runs, lost, mm1k::loss(rho, places), 0.0);
        agrees(
            "throughput",
            &runs,
            Measured::throughput_per_s,
            mm1k::throughput(lambda, 1000.0, places),
            0.0,
        );
        agrees("number", &runs, |run| run.mean_number, mm1k::mean_number(rho, places), 0.0);
        let response = mm1k::mean_response(lambda, 1000.0, places);
        agrees("response", &runs, Measured::mean_response_s, response, 0.0);
    }
}

#[test]
fn deterministic_queue() {
    for (lambda, places) in [(500.0, 3), (900.0, 10), (1000.0, 6), (1300.0, 12), (4000.0, 50)] {
        let host = host(Service::Deterministic, places);
        let prediction = host.predict(&OfferedLoad::requests(lambda)).expect("a possible host");
        let runs = runs(&scenario(host, OfferedLoad::requests(lambda)));
        agrees("loss", &runs, lost, prediction.refused_per_s / lambda, 0.0);
        agrees("throughput", &runs, Measured::throughput_per_s, prediction.throughput_per_s, 0.0);
        agrees("response", &runs, Measured::mean_response_s, prediction.response_mean_s, 0.0);
    }
}

#[test]
fn patience_by_exponential_and_deterministic_service() {
    for (service, left_out) in [(Service::Exponential, 0.0), (Service::Deterministic, 0.02)] {
        for (lambda, places, patience_s) in [(800.0, 100, 0.004), (1200.0, 40, 0.038), (950.0, 60, 0.02)] {
            let host = Host { patience_s, ..host(service, places) };
            let prediction = host.predict(&OfferedLoad::requests(lambda)).expect("a possible host");
            let runs = runs(&scenario(host, OfferedLoad::requests(lambda)));
            // The uniform rest of service moves a deterministic response by less than one service.
            agrees("goodput", &runs, Measured::goodput_per_s, prediction.goodput_per_s, left_out);
            let in_time = prediction.in_time.expect("answers come in time");
            let median = |run: &Measured| run.quantile_in_time(0.5).expect("answers come in time");
            let one_service = if service == Service::Deterministic { 0.001 / in_time.p50_s } else { 0.01 };
            agrees("median", &runs, median, in_time.p50_s, one_service);
        }
    }
}

#[test]
fn reception_before_application() {
    // What equation (4) takes for a slower server are interruptions: a packet costs 1/20 of a request here.
    let base = Host { reception: Reception::constant(20_000.0), ..host(Service::Exponential, 20) };
    for lambda in [400.0, 950.0, 3000.0, 10_000.0, 16_000.0] {
        let runs = runs(&scenario(base.clone(), OfferedLoad::requests(lambda)));
        let expected = preemptive::t2(lambda, 20_000.0, 1000.0, 20);
        agrees("T2 (5)", &runs, Measured::throughput_per_s, expected, 0.01);
        agrees("busy (1)", &runs, |run| run.reception_s / run.elapsed_s, lambda / 20_000.0, 0.002);
        if lambda >= 3000.0 {
            let heavy = preemptive::t2_heavy(lambda, 20_000.0, 1000.0);
            agrees("T2 (7)", &runs, Measured::throughput_per_s, heavy, 0.01);
        }
    }
}

#[test]
fn where_the_paper_ends() {
    // A packet that costs half a request: S2's pauses are long, so its queue is longer than equation (5)
    // says, and more than twice as many are refused.
    let coarse = Host { reception: Reception::constant(2000.0), ..host(Service::Exponential, 6) };
    let lambda = 500.0;
    let predicted = lambda - preemptive::t2(lambda, 2000.0, 1000.0, 6);
    for run in runs(&scenario(coarse, OfferedLoad::requests(lambda))) {
        let refused = run.refused as f64 / run.elapsed_s;
        assert!(refused > 2.0 * predicted, "{refused} refused, {predicted} predicted");
    }
}

#[test]
fn reception_that_loses() {
    // Equation (2): l1 places before S1, with and without more packets than it can deal with.
    let host = Host { reception: Reception::constant(1000.0), ..host(Service::Exponential, 1) };
    for (flood_per_s, places) in [(1500.0, 1), (1500.0, 8), (800.0, 5), (1000.0, 20)] {
        let load = OfferedLoad { requests_per_s: 0.0, flood_per_s };
        let played = Scenario { reception_places: places, ..scenario(host.clone(), load) };
        let share = |run: &Measured| run.lost as f64 / run.received as f64;
        agrees("loss (2)", &runs(&played), share, mm1k::loss(flood_per_s / 1000.0, places), 0.0);
    }
}

#[test]
fn interrupts_in_batches() {
    let reception = Reception { packet_s: 4e-6, interrupt_s: 6e-6, window_s: 200e-6, full_share: 1.0 };
    let base = Host { reception, ..host(Service::Deterministic, 20) };
    for flood_per_s in [1000.0, 5000.0, 20_000.0] {
        let load = OfferedLoad { requests_per_s: 0.0, flood_per_s };
        let short = Scenario { warm_up_s: 1.0, sending_s: 11.0, ..scenario(base.clone(), load) };
        let runs = runs(&short);
        let batch = |run: &Measured| run.received as f64 / run.interrupts as f64;
        agrees("batch", &runs, batch, reception.batch(flood_per_s), 1e-3);
        let share = flood_per_s / reception.mu1(flood_per_s);
        agrees("share", &runs, |run| run.reception_s / run.elapsed_s, share, 1e-3);
    }
}

#[test]
fn a_full_line_costs_less() {
    let reception = Reception { full_share: 0.45, ..Reception::constant(200_000.0) };
    let base = Host { reception, ..host(Service::Deterministic, 512) };
    // The formula takes the two looks for a place as independent. The longer S1 keeps S2 from making a place,
    // the less they are.
    for (requests_per_s, flood_per_s, left_out) in
        [(2000.0, 0.0, 0.01), (1000.0, 60_000.0, 0.01), (1000.0, 150_000.0, 0.04)]
    {
        let load = OfferedLoad { requests_per_s, flood_per_s };
        let prediction = base.predict(&load).expect("a possible host");
        let scenario = scenario(base.clone(), load);
        let played = Scenario { handshake_s: 0.02, warm_up_s: 5.0, sending_s: 15.0, ..scenario };
        let runs = runs(&played);
        let throughput_per_s = prediction.throughput_per_s;
        agrees("throughput", &runs, Measured::throughput_per_s, throughput_per_s, left_out);
        let share = |run: &Measured| run.reception_s / run.elapsed_s;
        agrees("share", &runs, share, prediction.reception_share, left_out);
    }
}

#[test]
fn gate_as_thinning() {
    let gate = Gate { residual_s: 1e-6, admission: Admission::Share(0.95), flood_passed_per_s: 100.0 };
    let base = Host {
        reception: Reception::constant(100_000.0),
        patience_s: 0.1,
        gate: Some(gate),
        ..host(Service::Deterministic, 4096)
    };
    for (requests_per_s, flood_per_s) in [(500.0, 0.0), (3000.0, 0.0), (10_000.0, 0.0), (900.0, 50_000.0)] {
        let load = OfferedLoad { requests_per_s, flood_per_s };
        let prediction = base.predict(&load).expect("a possible host");
        let played = Scenario { warm_up_s: 2.0, sending_s: 32.0, ..scenario(base.clone(), load) };
        let runs = runs(&played);
        agrees("goodput", &runs, Measured::goodput_per_s, prediction.goodput_per_s, 0.005);
        let admitted = |run: &Measured| run.admitted as f64 / run.elapsed_s;
        agrees("admitted", &runs, admitted, prediction.admitted_per_s, 0.0);
    }
}

#[test]
fn rule_of_ones_own() {
    // A gate that lets in only while the queue is short keeps the server busy and the answers fast.
    let host = Host { patience_s: 1.0, ..host(Service::Deterministic, 4096) };
    let overload = Scenario { seed: 11, ..scenario(host, OfferedLoad::requests(10_000.0)) };
    let gated = run_with(&overload, |arrival| arrival.waiting < 25).expect("a possible scenario");
    let open = run_with(&overload, |_| true).expect("a possible scenario");
    assert!(gated.goodput_per_s() > 999.0, "{}", gated.goodput_per_s());
    assert!(gated.quantile_in_time(0.99).is_some_and(|p99| p99 < 0.0251));
    assert_eq!(open.good, 0);
    assert!(open.throughput_per_s() > 999.0, "all the work is wasted, not spared");
}

#[test]
fn run_from_an_empty_queue() {
    for (lambda, places) in [(1500.0, 4096), (3000.0, 4096), (12_000.0, 4096), (3000.0, 129)] {
        let host = Host { patience_s: 1.0, ..host(Service::Deterministic, places) };
        let load = OfferedLoad::requests(lambda);
        let prediction =
            host.predict_run(&load, &Run { sending_s: 2.5, drain_counted: true }).expect("a possible host");
        let played = Scenario { warm_up_s: 0.0, sending_s: 2.5, drain: true, ..scenario(host, load) };
        let runs = runs(&played);
        agrees("goodput", &runs, Measured::goodput_per_s, prediction.goodput_per_s, 0.02);
        let in_time = prediction.in_time.expect("the first are served in time");
        let quantile = |share: f64| move |run: &Measured| run.quantile_in_time(share).unwrap_or(0.0);
        agrees("median", &runs, quantile(0.5), in_time.p50_s, 0.03);
        agrees("p99", &runs, quantile(0.99), in_time.p99_s, 0.03);
    }
}

#[test]
fn same_seed_same_run() {
    let host = Host { patience_s: 1.0, ..host(Service::Exponential, 40) };
    let one = Scenario { seed: 5, sending_s: 12.0, ..scenario(host, OfferedLoad::requests(1500.0)) };
    let other = Scenario { seed: 6, ..one.clone() };
    assert_eq!(run(&one), run(&one));
    assert_ne!(run(&one), run(&other));
}

#[test]
fn impossible_scenarios() {
    let good = scenario(host(Service::Exponential, 40), OfferedLoad::requests(10.0));
    let message = |scenario: &Scenario| run(scenario).expect_err("an impossible scenario").to_string();
    let never = Scenario { sending_s: 10.0, ..good.clone() };
    assert!(message(&never).starts_with("the time of sending after the warm-up in seconds must be above 0"));
    let nobody = Scenario { load: OfferedLoad::requests(0.0), ..good.clone() };
    assert!(message(&nobody).starts_with("the load in packets a second must be above 0"));
    let idle = Scenario { host: Host { mu2_per_s: 0.0, ..good.host.clone() }, ..good };
    assert_eq!(message(&idle), "mu2 in requests a second must be above 0 and finite, but is 0");
}
