//! Clients, servers and hosts that nobody here chose: connections that say nothing, kernels that ask for
//! clients who have gone, what a crowd before left behind, a tracker that is wrong, hosts that stand still.
//!
//! `STAUNCH_SEEDS=10000` plays each with so many seeds, in place of few enough for every day. A failure names
//! its seed. What is reached is said as a share of what an oracle would: who knew the capacity, and let in as
//! many of those who ask as that.

use crate::plant::Plant;
use crate::scenario::{Outcome, Phase, Scenario, Service, Stalls};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_gate::controller::{Controller, Corrected, Hint, Settings};
use staunch_gate::observation::{Connections, Observation, Queue};

/// Draws of a scene: `make soak` has twenty of each, a landing few, for the law changes seldom.
fn seeds(usual: u64) -> std::ops::RangeInclusive<u64> {
    let told = std::env::var("STAUNCH_SEEDS").ok().and_then(|number| number.parse().ok());
    1..=told.unwrap_or(usual)
}

/// A server of 800 connections a second, as node was with a millisecond of work.
fn node(seed: u64) -> Scenario {
    let service = Service::Fixed(1.2e-3);
    Scenario { seed, service, eager: true, backlog: 511, tick_ms: 10.0, ..Scenario::default() }
}

fn told(what: &str, scenario: &Scenario, outcome: &Outcome) -> String {
    format!(
        "{what}, seed {}, {:?}: {:.1} % of capacity, busy {:.1} %, p99 {:.0} ms, shed {}, outages {}, {:?}",
        scenario.seed,
        scenario.service,
        100.0 * outcome.good_per_s() / scenario.capacity(),
        100.0 * outcome.busy_share(),
        1e3 * outcome.percentile_s(0.99),
        outcome.shed_honest,
        outcome.outages,
        outcome.changes,
    )
}

/// What is reached of what an oracle would with so many times the capacity offered.
fn reach(scenario: &Scenario, times: f64) -> (f64, Outcome) {
    let outcome = Plant::run(scenario.clone());
    (outcome.good_per_s() / (scenario.capacity() * times.min(1.0)), outcome)
}

#[test]
fn silent_connections_are_in_nobodys_way() {
    for seed in seeds(1) {
        for (silent_per_s, silent_ever) in [(100.0, 0), (0.0, 1000), (100.0, 1000)] {
            for times in [2.0, 5.0, 10.0] {
                let base = Scenario { silent_per_s, silent_ever, measure_s: 2.0, ..node(seed) };
                let scenario = base.offered(&[(0.0, 0.5), (1.0, times)]);
                let (reached, outcome) = reach(&scenario, times);
                let told =
                    told(&format!("{silent_per_s}/s and {silent_ever}, {times} times"), &scenario, &outcome);
                assert!(reached >= 0.9 && outcome.outages == 0, "{told}");
                assert!(outcome.percentile_s(0.99) <= 0.1, "{told}");
            }
            let calm =
                Scenario { silent_per_s, silent_ever, seconds: 60.0, ..node(seed) }.offered(&[(0.0, 0.5)]);
            let (_, outcome) = reach(&calm, 0.5);
            assert_eq!(outcome.shed_honest, 0, "{}", told("below capacity", &calm, &outcome));
        }
    }
}

/// Kernels that go on asking for whom has given up: most of those let in say nothing, and are gone.
#[test]
fn those_who_have_gone_do_not_starve_the_server() {
    for seed in seeds(1) {
        for (service, eager, times) in [
            (Service::Fixed(1.2e-3), true, 5.0),
            (Service::Fixed(1.2e-3), true, 10.0),
            (Service::Exponential(1e-3), false, 5.0),
            (Service::Exponential(1e-3), false, 10.0),
        ] {
            let base = Scenario { service, eager, ghosts: true, measure_s: 3.0, seconds: 12.0, ..node(seed) };
            let scenario = base.offered(&[(0.0, 0.5), (1.0, times)]);
            let (reached, outcome) = reach(&scenario, times);
            let told = told(&format!("{times} times"), &scenario, &outcome);
            assert!(reached >= 0.85 && outcome.outages == 0, "{told}");
        }
    }
}

/// A crowd goes on where another was before: the line at the start is of clients who have gone.
#[test]
fn what_a_crowd_left_behind() {
    for seed in seeds(1) {
        for ghosts in [false, true] {
            let base = Scenario { left_behind: 500, ghosts, measure_s: 2.0, ..node(seed) };
            let scenario = base.offered(&[(0.0, 5.0)]);
            let (reached, outcome) = reach(&scenario, 5.0);
            let told = told(&format!("ghosts {ghosts}"), &scenario, &outcome);
            assert!(reached >= 0.85 && outcome.outages == 0, "{told}");
        }
    }
}

/// A tracker that counts connections as waiting which do not is in nobody's way: they are older than those
/// the server begins with.
#[test]
fn a_line_that_is_none_is_in_nobodys_way() {
    for seed in seeds(1) {
        for times in [0.5, 5.0] {
            let base = Scenario { phantoms: 3_000, measure_s: 2.0, ..node(seed) };
            let scenario = base.offered(&[(0.0, times)]);
            let (reached, outcome) = reach(&scenario, times);
            let told = told(&format!("{times} times"), &scenario, &outcome);
            assert!(reached >= 0.9 && outcome.outages == 0, "{told}");
        }
    }
}

/// A line that does not move for a second is not believed: the sockets are asked, and what they tell is said.
/// Of a server that stands still they tell the same as the tracker, and nothing is said.
#[test]
fn a_line_that_does_not_move_is_not_believed() {
    for (told, corrected) in [(0, true), (290, false)] {
        let mut controller = Controller::new(Settings::default());
        let mut seen = |tick: u64, asked: u64, waiting: u64, sockets_waiting: Option<u64>| {
            controller.step(&Observation {
                now_ns: tick * 10_000_000,
                interval_ns: 10_000_000,
                syn: [5, 0, 0],
                passed: [asked, 0, 0],
                shed: 5 - asked,
                connections: Some(Connections { asked, waiting, ..Connections::default() }),
                queue: Some(Queue { listeners: 1, waiting: 0, limit: 4096, fullest_share: 0.0 }),
                sockets_waiting,
                ..Observation::default()
            })
        };
        let asked: Vec<u64> = (1..=350)
            .filter(|tick| seen(*tick, u64::from(*tick <= 300), (*tick).min(300), None).asks_sockets)
            .collect();
        assert_eq!(asked, [100, 200, 300], "once a second");
        let decision = seen(351, 0, 300, Some(told));
        let hint = corrected.then_some(Hint::Corrected(Corrected { thought: 300, waiting: told }));
        assert_eq!(decision.hint, hint);
        assert_eq!(decision.estimate.waiting, told as f64);
        assert_eq!(seen(352, 0, 300, None).estimate.waiting, told as f64);
    }
}

/// Browsers that try both families of addresses at once, and let go of the second: of two that come in one
/// says nothing.
#[test]
fn two_connections_for_each_client() {
    for seed in seeds(1) {
        for times in [2.0, 5.0, 10.0] {
            for round_trip_ms in [(0.0, 0.0), (20.0, 60.0)] {
                let base = Scenario { round_trip_ms, silent_stay_s: 0.05, measure_s: 2.0, ..node(seed) };
                let silent_per_s = times * base.capacity();
                let scenario = Scenario { silent_per_s, ..base }.offered(&[(0.0, 0.5), (1.0, times)]);
                let (reached, outcome) = reach(&scenario, times);
                let told = told(&format!("{times} times, {round_trip_ms:?}"), &scenario, &outcome);
                assert!(reached >= 0.9 && outcome.outages == 0, "{told}");
            }
        }
    }
}

/// A container that may have half a processor: a busy server stands still for half of each 100 ms.
#[test]
fn a_quota_of_processor_time() {
    for seed in seeds(1) {
        for (service, eager) in [(Service::Fixed(1.2e-3), true), (Service::Exponential(300e-6), false)] {
            for times in [2.0, 5.0, 10.0] {
                let quota = Some((0.1, 0.5));
                let base = Scenario { service, eager, quota, measure_s: 2.0, ..node(seed) };
                let scenario = base.offered(&[(0.0, 0.4), (1.0, times)]);
                let (reached, outcome) = reach(&scenario, times);
                let told = told(&format!("{times} times"), &scenario, &outcome);
                assert!(reached >= 0.9 && outcome.outages == 0, "{told}");
            }
        }
    }
}

/// The host takes the processor away for 100 ms every 5 s.
#[test]
fn pauses_of_the_host() {
    for seed in seeds(1) {
        for service in [Service::Fixed(1.2e-3), Service::Exponential(300e-6)] {
            for (times, shed_max) in [(0.5, 0.0), (0.9, 1e-3)] {
                let stalls = Some(Stalls { every_s: 5.0, ms: (100.0, 100.0), whole: false });
                let base = Scenario { service, stalls, silent_per_s: 100.0, seconds: 300.0, ..node(seed) };
                let scenario = base.offered(&[(0.0, times)]);
                let (_, outcome) = reach(&scenario, times);
                let came = scenario.capacity() * times * scenario.seconds;
                let told = told(&format!("{times} times"), &scenario, &outcome);
                assert!(outcome.shed_honest as f64 <= came * shed_max, "{told}");
            }
        }
    }
}

/// A server that was ten times slower for five seconds of a crowd is believed to be slow for a second at
/// most.
#[test]
fn a_rate_that_was_too_low_is_found_upwards() {
    for seed in seeds(1) {
        for (service, eager) in [(Service::Fixed(1.2e-3), true), (Service::Exponential(300e-6), false)] {
            for round_trip_ms in [(0.0, 0.0), (20.0, 60.0)] {
                let base =
                    Scenario { service, eager, round_trip_ms, slow: Some((2.0, 7.0, 10.0)), ..node(seed) };
                let scenario =
                    Scenario { measure_s: 8.0, seconds: 12.0, ..base }.offered(&[(0.0, 0.5), (1.0, 5.0)]);
                let (reached, outcome) = reach(&scenario, 5.0);
                let told = told(&format!("{round_trip_ms:?}"), &scenario, &outcome);
                assert!(reached >= 0.9 && outcome.outages == 0, "{told}");
            }
        }
    }
}

/// An accept queue of five places, as Python's: the gate stands aside, and says so; nobody does worse for it.
#[test]
fn a_short_accept_queue() {
    for seed in seeds(1) {
        for times in [0.9, 2.0, 3.5, 10.0] {
            let service = Service::Exponential(450e-6);
            let base = Scenario { seed, service, backlog: 5, measure_s: 2.0, ..Scenario::default() };
            let scenario = base.offered(&[(0.0, 0.5), (1.0, times)]);
            let outcome = Plant::run(scenario.clone());
            let bare = Plant::run(Scenario { gated: false, ..scenario.clone() });
            let told = told(&format!("{times} times"), &scenario, &outcome);
            assert!(outcome.good as f64 >= 0.95 * bare.good as f64, "{told}, without the gate {}", bare.good);
            assert_eq!((outcome.shed_honest, outcome.hints.min(1)), (0, 1), "{told}");
        }
        // A server that accepts at once and reads late has its line elsewhere.
        let scenario =
            Scenario { backlog: 5, measure_s: 2.0, ..node(seed) }.offered(&[(0.0, 0.5), (1.0, 5.0)]);
        let (reached, outcome) = reach(&scenario, 5.0);
        let told = told("eager", &scenario, &outcome);
        assert!(reached >= 0.9 && outcome.percentile_s(0.99) <= 0.1, "{told}");
    }
}

/// Two servers at two ports: the slow one, at ten times of what it can do, is shed from, and nobody of those
/// who come to the fast one, who wait as long as they do alone.
#[test]
fn a_slow_server_is_in_nobodys_way_at_another_port() {
    for seed in seeds(1) {
        for (slow_s, eager, times) in [(10e-3, false, 10.0), (3e-3, true, 10.0), (10e-3, true, 3.0)] {
            for fast_times in [0.5, 0.8] {
                let service = Service::Exponential(slow_s);
                let slow = Scenario { service, eager, tick_ms: 10.0, seed, ..Scenario::default() };
                let slow = slow.offered(&[(0.0, 0.5), (1.0, times)]);
                let fast = Scenario { seed: seed + 1, tick_ms: 10.0, ..Scenario::default() };
                let fast = fast.offered(&[(0.0, fast_times)]);
                let alone = Plant::run(fast.clone());
                let [of_slow, of_fast] = Plant::run_beside([slow.clone(), fast.clone()]);
                let told = told(&format!("{times} and {fast_times} times"), &fast, &of_fast);
                assert!(of_slow.shed_honest > 0, "{told}");
                assert_eq!((of_fast.shed_honest, of_fast.outages, of_slow.outages), (0, 0, 0), "{told}");
                let (p99, p99_alone) = (of_fast.percentile_s(0.99), alone.percentile_s(0.99));
                assert!(p99 <= 1.1 * p99_alone, "{told}, alone p99 {:.1} ms", 1e3 * p99_alone);
            }
        }
    }
}

/// A flood whose reception costs the server nothing is left to the kernel; honest newcomers come in at once.
#[test]
fn a_flood_that_hinders_nobody_is_passed() {
    for seed in seeds(1) {
        let flood = vec![Phase { from_s: 1.0, per_s: 180e3 }];
        let base = Scenario { flood, own_reception: true, seconds: 6.0, ..node(seed) };
        let scenario = base.offered(&[(0.0, 0.4)]);
        let outcome = Plant::run(scenario.clone());
        let told = told("own reception", &scenario, &outcome);
        assert_eq!((outcome.shed_honest, outcome.hints), (0, 1), "{told}");
        assert!(outcome.percentile_s(0.99) <= 0.02, "{told}");
    }
}

/// Strangers of all kinds, drawn by chance.
#[test]
fn whatever_comes_the_gate_is_not_the_outage() {
    for seed in seeds(15) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut among = |of: &[f64]| of[(random.random::<f64>() * of.len() as f64) as usize];
        let times = among(&[0.5, 0.9, 1.2, 2.0, 5.0, 10.0]);
        let mean_s = among(&[300e-6, 1e-3, 3e-3]);
        let scenario = Scenario {
            seed,
            service: if among(&[0.0, 1.0]) > 0.0 {
                Service::Fixed(mean_s)
            } else {
                Service::Exponential(mean_s)
            },
            eager: among(&[0.0, 1.0]) > 0.0,
            backlog: among(&[64.0, 128.0, 511.0, 4096.0]) as usize,
            silent_per_s: among(&[0.0, 30.0, 300.0]),
            silent_stay_s: among(&[0.1, 3.0, f64::INFINITY]),
            silent_ever: among(&[0.0, 50.0, 1000.0]) as usize,
            phantoms: among(&[0.0, 0.0, 30.0, 1000.0]) as u64,
            left_behind: among(&[0.0, 0.0, 60.0, 500.0]) as usize,
            ghosts: among(&[0.0, 1.0]) > 0.0,
            round_trip_ms: (0.0, among(&[0.0, 10.0, 100.0])),
            known_share: among(&[0.0, 0.5, 1.0]),
            tick_ms: among(&[5.0, 10.0]),
            measure_s: 3.0,
            seconds: 8.0,
            ..Scenario::default()
        };
        let scenario = scenario.offered(&[(0.0, 0.5), (1.0, times)]);
        let outcome = Plant::run(scenario.clone());
        assert_eq!(outcome.outages, 0, "{} {scenario:#?}", told("by chance", &scenario, &outcome));
    }
}
