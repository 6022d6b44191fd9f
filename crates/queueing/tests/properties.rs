//! What holds for every host and every load.
//!
//! It must never be asked about numbers: those are in the other suites.

use proptest::prelude::*;
use staunch_queueing::batching::Reception;
use staunch_queueing::simulate::{Scenario, run};
use staunch_queueing::{Admission, Gate, Host, OfferedLoad, Prediction, Run, Service, mm1k};

/// Positive numbers over many orders of magnitude.
fn positive(from: i32, to: i32) -> impl Strategy<Value = f64> {
    (f64::from(from)..f64::from(to)).prop_map(|exponent| 10_f64.powf(exponent))
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![Just(Service::Exponential), Just(Service::Deterministic)]
}

fn gate() -> impl Strategy<Value = Gate> {
    let admission =
        prop_oneof![(0.0..2.0).prop_map(Admission::Share), positive(0, 6).prop_map(Admission::PerSecond)];
    (positive(-9, -4), admission, positive(-3, 6)).prop_map(|(residual_s, admission, flood_passed_per_s)| {
        Gate { residual_s, admission, flood_passed_per_s }
    })
}

fn places() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..10, 10_u32..5000, Just(65_535)]
}

fn host() -> impl Strategy<Value = Host> {
    let full_share = prop_oneof![Just(1.0), 0.0..1.0];
    let reception = (positive(-8, -3), positive(-8, -3), 0.0..1e-3, full_share).prop_map(
        |(packet_s, interrupt_s, window_s, full_share)| Reception {
            packet_s,
            interrupt_s,
            window_s,
            full_share,
        },
    );
    let patience = prop_oneof![positive(-6, 6), Just(f64::INFINITY)];
    let retry = prop_oneof![Just(0.0), positive(-6, 2)];
    let gate = proptest::option::of(gate());
    (reception, positive(-1, 7), places(), patience, retry, service(), gate).prop_map(
        |(reception, mu2_per_s, places, patience_s, retry_s, service, gate)| Host {
            reception,
            mu2_per_s,
            places,
            patience_s,
            retry_s,
            service,
            gate,
        },
    )
}

fn load() -> impl Strategy<Value = OfferedLoad> {
    (prop_oneof![positive(-3, 9), Just(0.0)], prop_oneof![positive(-3, 9), Just(0.0)])
        .prop_map(|(requests_per_s, flood_per_s)| OfferedLoad { requests_per_s, flood_per_s })
}

/// Nothing is served that did not come, nothing counted twice, nothing undefined.
fn conserved(host: &Host, load: &OfferedLoad, prediction: &Prediction) -> Result<(), TestCaseError> {
    let slack = 1e-9 * (load.requests_per_s + host.mu2_per_s);
    let Prediction { goodput_per_s, throughput_per_s, admitted_per_s, refused_per_s, .. } = *prediction;
    prop_assert!(goodput_per_s >= 0.0 && goodput_per_s <= throughput_per_s + slack, "{prediction:?}");
    prop_assert!(throughput_per_s <= admitted_per_s + slack, "{prediction:?}");
    prop_assert!(admitted_per_s <= load.requests_per_s + slack, "{prediction:?}");
    prop_assert!(refused_per_s >= -slack && refused_per_s <= admitted_per_s + slack, "{prediction:?}");
    prop_assert!((0.0..=1.0).contains(&prediction.reception_share), "{prediction:?}");
    prop_assert!(prediction.mu2r_per_s <= host.mu2_per_s, "{prediction:?}");
    prop_assert!(prediction.response_mean_s > 0.0, "{prediction:?}");
    if let Some(response) = prediction.in_time {
        prop_assert!(
            response.p50_s > 0.0 && response.p50_s <= response.p99_s * (1.0 + 1e-9),
            "{prediction:?}"
        );
        prop_assert!(response.p99_s <= host.patience_s * (1.0 + 1e-9), "{prediction:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn predictions_conserve(
        host in host(), load in load(), sending_s in positive(-3, 4), drain_counted: bool
    ) {
        let steady = host.predict(&load).expect("a possible host");
        conserved(&host, &load, &steady)?;
        prop_assert!(steady.throughput_per_s <= steady.mu2r_per_s * (1.0 + 1e-9), "{steady:?}");
        let host = Host { retry_s: 0.0, ..host };
        let run = host.predict_run(&load, &Run { sending_s, drain_counted });
        conserved(&host, &load, &run.expect("a possible host"))?;
        let capacity = host.capacity_per_s(&load).expect("a possible host");
        prop_assert!(capacity >= 0.0 && capacity <= host.mu2_per_s);
    }

    #[test]
    fn more_load_is_refused_more_and_served_more(
        lambda in positive(-2, 6), more in 1.0..10.0, mu in positive(-2, 6), places in places()
    ) {
        prop_assert!(mm1k::loss(lambda * more / mu, places) >= mm1k::loss(lambda / mu, places) - 1e-12);
        let served = mm1k::throughput(lambda, mu, places);
        prop_assert!(mm1k::throughput(lambda * more, mu, places) >= served * (1.0 - 1e-9));
    }

    #[test]
    fn more_places_refuse_less(rho in positive(-3, 3), places in 1_u32..5000) {
        prop_assert!(mm1k::loss(rho, places + 1) <= mm1k::loss(rho, places) * (1.0 + 1e-9));
        prop_assert!(mm1k::mean_number(rho, places + 1) >= mm1k::mean_number(rho, places) * (1.0 - 1e-9));
    }

    #[test]
    fn longer_patience_and_less_flood_serve_no_fewer(
        host in host(), load in load(), more in 1.0..100.0
    ) {
        let goodput =
            |host: &Host, load: &OfferedLoad| host.predict(load).expect("a possible host").goodput_per_s;
        let slack = 1e-9 * load.requests_per_s;
        // Clients with more time to try again take places from others, and are late more often.
        let host = Host { retry_s: 0.0, ..host };
        let before = goodput(&host, &load);
        let patient = Host { patience_s: host.patience_s * more, ..host.clone() };
        prop_assert!(goodput(&patient, &load) >= before - slack);
        // A flood coalesces interrupts, so it must not make reception cheaper here.
        let steady = Host { reception: Reception { window_s: 0.0, ..host.reception }, gate: None, ..host };
        let flooded = OfferedLoad { flood_per_s: load.flood_per_s * more, ..load };
        let served = |load: &OfferedLoad| steady.predict(load).expect("a possible host").throughput_per_s;
        prop_assert!(served(&flooded) <= served(&load) + slack);
    }

    #[test]
    fn units_are_of_no_account(host in host(), load in load(), unit in positive(-3, 3)) {
        // The scaled host is this host in another unit of time: rates grow as times shrink. Powers of ten
        // round, so the results are nearly equal.
        let scaled = Host {
            reception: Reception {
                packet_s: host.reception.packet_s / unit,
                interrupt_s: host.reception.interrupt_s / unit,
                window_s: host.reception.window_s / unit,
                full_share: host.reception.full_share,
            },
            mu2_per_s: host.mu2_per_s * unit,
            patience_s: host.patience_s / unit,
            retry_s: host.retry_s / unit,
            gate: None,
            ..host
        };
        let host = Host { gate: None, ..host };
        let (requests_per_s, flood_per_s) = (load.requests_per_s * unit, load.flood_per_s * unit);
        let faster = OfferedLoad { requests_per_s, flood_per_s };
        let one = host.predict(&load).expect("a possible host");
        let other = scaled.predict(&faster).expect("a possible host");
        let off = (one.throughput_per_s * unit - other.throughput_per_s).abs();
        prop_assert!(off <= 1e-6 * host.mu2_per_s * unit, "{one:?} {other:?}");
    }

    #[test]
    fn a_gate_that_lets_all_in_for_nothing_is_none(host in host(), load in load()) {
        let open = Gate { residual_s: 0.0, admission: Admission::PerSecond(1e12), flood_passed_per_s: 1e12 };
        let with = Host { gate: Some(open), ..host.clone() }.predict(&load).expect("a possible host");
        let without = Host { gate: None, ..host.clone() }.predict(&load).expect("a possible host");
        let off = (with.throughput_per_s - without.throughput_per_s).abs();
        prop_assert!(off <= 1e-6 * host.mu2_per_s, "{with:?} {without:?}");
    }

    #[test]
    fn impossible_hosts_are_refused(host in host(), fault in 0..6, bad in prop_oneof![
        Just(-1.0), Just(f64::NAN), Just(f64::NEG_INFINITY)
    ]) {
        let mut host = host;
        let mut load = OfferedLoad::requests(1.0);
        match fault {
            0 => host.reception.packet_s = bad,
            1 => host.reception.interrupt_s = bad,
            2 => host.mu2_per_s = bad,
            3 => host.patience_s = bad,
            4 => load.requests_per_s = bad,
            _ => load.flood_per_s = bad,
        }
        prop_assert!(host.predict(&load).is_err());
    }

    #[test]
    fn simulated_runs_conserve(
        host in host(), seed: u64, factor in 0.1..20.0, flood in 0.0..2.0, drain: bool,
        handshake in prop_oneof![Just(0.0), 0.0..50.0]
    ) {
        // As much time as 300 services, whatever the host's speed.
        let sending_s = 300.0 / host.mu2_per_s;
        let requests_per_s = factor * host.mu2_per_s;
        let load = OfferedLoad { requests_per_s, flood_per_s: flood * requests_per_s };
        let handshake_s = handshake / host.mu2_per_s;
        let (reception_places, warm_up_s) = (100, 0.0);
        let scenario =
            Scenario { host, load, handshake_s, reception_places, warm_up_s, sending_s, drain, seed };
        let measured = run(&scenario).expect("a possible scenario");
        prop_assert!(measured.good <= measured.served);
        prop_assert!(measured.served + measured.refused <= measured.admitted);
        prop_assert!(measured.admitted <= measured.offered);
        prop_assert_eq!(measured.responses_s.len() as u64, measured.served);
        prop_assert!(measured.elapsed_s >= sending_s * (1.0 - 1e-9));
        prop_assert!(measured.reception_s <= measured.elapsed_s * (1.0 + 1e-9));
        prop_assert!(measured.mean_number >= 0.0 && measured.mean_number <= f64::from(scenario.host.places));
    }
}
