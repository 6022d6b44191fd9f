//! What else a host may be like: clients that take their time or say nothing, long ways, ticks that do not
//! come, one greedy prefix, no tracker, load without SYN, the paper's rule.

use crate::plant::Plant;
use crate::scenario::{Outcome, Scenario, Service, Stalls};
use staunch_gate::controller::{Controller, Policy, Settings};
use staunch_gate::observation::{Connections, Observation, Queue, State};

fn told(scenario: &Scenario, outcome: &Outcome) -> String {
    format!(
        "seed {} {:?}: good {:.1} % busy {:.2} % p99 {:.0} ms shed {} {:?}",
        scenario.seed,
        scenario.service,
        100.0 * outcome.good_per_s() / scenario.capacity(),
        100.0 * outcome.busy_share(),
        1e3 * outcome.percentile_s(0.99),
        outcome.shed_honest,
        outcome.changes
    )
}

/// Those who open connections and send nothing, or late, do not stand in line.
#[test]
fn silent_and_slow_clients_are_no_crowd() {
    let calm = Scenario { seconds: 30.0, ..Scenario::default() };
    for seed in 1..=3 {
        for (silent_per_s, slow_share, times) in
            [(1000.0, 0.0, 0.0), (500.0, 0.3, 0.5), (0.0, 0.9, 0.4), (0.0, 1.0, 0.2)]
        {
            let scenario = Scenario { seed, eager: true, silent_per_s, slow_share, ..calm.clone() };
            let scenario = scenario.offered(&[(0.0, times)]);
            let outcome = Plant::run(scenario.clone());
            assert_eq!(outcome.shed_honest, 0, "{silent_per_s} {slow_share} {}", told(&scenario, &outcome));
        }
    }
}

/// A crowd is seen among them all the same.
#[test]
fn a_crowd_among_silent_clients() {
    for seed in 1..=3 {
        let scenario =
            Scenario { seed, silent_per_s: 300.0, slow_share: 0.1, measure_s: 1.0, ..Scenario::default() };
        let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 5.0)]);
        let outcome = Plant::run(scenario.clone());
        assert!(
            outcome.until(State::Shedding, 1.0).is_some_and(|s| s <= 0.03),
            "{}",
            told(&scenario, &outcome)
        );
        assert!(outcome.busy_share() >= 0.97, "{}", told(&scenario, &outcome));
    }
}

/// A handshake takes a round trip, so what is let in comes later.
#[test]
fn long_ways() {
    for (round_trip_ms, busy_least) in [((1.0, 5.0), 0.97), ((20.0, 40.0), 0.97), ((10.0, 200.0), 0.95)] {
        for seed in 1..=3 {
            let scenario =
                Scenario { seed, round_trip_ms, measure_s: 2.0, seconds: 12.0, ..Scenario::default() };
            let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 10.0)]);
            let outcome = Plant::run(scenario.clone());
            let told = format!("{round_trip_ms:?} {}", told(&scenario, &outcome));
            assert!(outcome.busy_share() >= busy_least, "{told}");
            assert_eq!(outcome.changes.len(), 1, "{told}");
        }
    }
}

/// Other ticks, lost ones, late ones, stalls of everything.
#[test]
fn ticks_that_do_not_come() {
    for (tick_ms, lost_ticks, late_ticks) in
        [(1.0, 0.0, 0.0), (10.0, 0.0, 0.0), (5.0, 0.2, 0.2), (20.0, 0.0, 0.0)]
    {
        for seed in 1..=3 {
            let stalls = Some(Stalls { every_s: 0.5, ms: (2.0, 20.0), whole: true });
            let scenario = Scenario { seed, tick_ms, lost_ticks, late_ticks, stalls, ..Scenario::default() };
            let scenario = Scenario { measure_s: 1.0, ..scenario }.offered(&[(0.0, 0.5), (1.0, 10.0)]);
            let outcome = Plant::run(scenario.clone());
            let told = format!("tick {tick_ms} ms, lost {lost_ticks}: {}", told(&scenario, &outcome));
            assert!(outcome.busy_share() >= 0.97, "{told}");
            assert!(outcome.percentile_s(0.99) <= 0.2_f64.max(tick_ms * 0.02), "{told}");
        }
    }
}

/// Groups of connections at once, as browsers open them, below and above capacity.
#[test]
fn groups() {
    for seed in 1..=3 {
        let groups = Scenario { seed, group: 4.0, seconds: 60.0, ..Scenario::default() };
        let below = groups.clone().offered(&[(0.0, 0.6)]);
        let outcome = Plant::run(below.clone());
        assert_eq!(outcome.changes.len(), 0, "{}", told(&below, &outcome));
        let above = groups.offered(&[(0.0, 3.0)]);
        let outcome = Plant::run(above.clone());
        assert!(outcome.busy_share() >= 0.97, "{}", told(&above, &outcome));
    }
}

/// A prefix of many that sends most does not get most; and being fair starves no other.
#[test]
fn one_greedy_prefix() {
    for seed in 1..=3 {
        let scenario =
            Scenario { seed, prefixes: 400, greedy_share: 0.9, measure_s: 2.0, ..Scenario::default() };
        let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 8.0)]);
        let outcome = Plant::run(scenario.clone());
        let greedy = outcome.good_greedy as f64 / outcome.good as f64;
        assert!(outcome.busy_share() >= 0.97, "{}", told(&scenario, &outcome));
        assert!(greedy < 0.6, "greedy {greedy} {}", told(&scenario, &outcome));
    }
}

/// Known clients are served before others, and others not shut out.
#[test]
fn known_clients_first() {
    for seed in 1..=3 {
        for (known_share, good_least) in [(0.3, 0.9), (1.0, 0.9)] {
            let scenario = Scenario { seed, known_share, measure_s: 2.0, ..Scenario::default() };
            let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 2.0)]);
            let outcome = Plant::run(scenario.clone());
            assert!(
                outcome.good_per_s() >= good_least * scenario.capacity(),
                "{}",
                told(&scenario, &outcome)
            );
        }
    }
}

/// Without a tracker the accept queue alone tells.
#[test]
fn without_a_tracker() {
    for service in [Service::Exponential(300e-6), Service::Exponential(1e-3)] {
        for seed in 1..=3 {
            let scenario = Scenario { seed, service, tracker: false, measure_s: 1.0, ..Scenario::default() };
            let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 10.0)]);
            let outcome = Plant::run(scenario.clone());
            assert!(
                outcome.until(State::Shedding, 1.0).is_some_and(|s| s <= 0.03),
                "{}",
                told(&scenario, &outcome)
            );
            assert!(outcome.busy_share() >= 0.97, "{}", told(&scenario, &outcome));
            assert!(outcome.percentile_s(0.99) <= 0.15, "{}", told(&scenario, &outcome));
        }
    }
}

/// Requests on connections that stand already: said once, and not answered by shedding a few new ones.
#[test]
fn load_without_syn() {
    let scenario = Scenario { keep_alive: (9_500.0, 100e-6), seconds: 20.0, ..Scenario::default() };
    let scenario = scenario.offered(&[(0.0, 0.005)]);
    let outcome = Plant::run(scenario.clone());
    assert_eq!((outcome.hints, outcome.shed_honest), (1, 0), "{}", told(&scenario, &outcome));
}

/// The paper's rule sheds by the processor and sockets, which a long line brings about.
#[test]
fn the_paper() {
    let settings = Settings { policy: Policy::Paper, cpu_high: 0.55, cpu_low: 0.4, ..Settings::default() };
    let scenario = Scenario { settings, measure_s: 2.0, ..Scenario::default() };
    let scenario = scenario.offered(&[(0.0, 0.5), (1.0, 5.0)]);
    let outcome = Plant::run(scenario.clone());
    assert!(outcome.until(State::Shedding, 1.0).is_some_and(|s| s <= 0.3), "{}", told(&scenario, &outcome));
    assert!(outcome.good_per_s() >= 0.5 * scenario.capacity(), "{}", told(&scenario, &outcome));
}

/// A host that stood still for 70 ms has a line of 150 at once, and so has one to which a crowd comes: that
/// nobody came before tells which it was. It may stand still for longer, or soon after its load began.
#[test]
fn a_host_that_stood_still() {
    let known_for = [
        (200, 10, 150, State::Shedding),
        (200, 70, 150, State::Open),
        (200, 260, 540, State::Open),
        (90, 160, 345, State::Open),
    ];
    for (ticks, late_ms, came, expected) in known_for {
        let late_ns = late_ms * 1_000_000;
        let mut controller = Controller::new(Settings::default());
        let mut now_ns = 0;
        let mut seen = |interval_ns: u64, came: u64, begun: u64, waiting: u64, age_ns: Option<u64>| {
            now_ns += interval_ns;
            let connections = Connections {
                established: came,
                asked: came,
                begun,
                waiting,
                wait_ns_min: age_ns,
                ..Connections::default()
            };
            controller.step(&Observation {
                now_ns,
                interval_ns,
                syn: [came, 0, 0],
                passed: [came, 0, 0],
                connections: Some(connections),
                queue: Some(Queue { listeners: 1, waiting, limit: 4096, fullest_share: 0.05 }),
                ..Observation::default()
            })
        };
        for _ in ticks..200 {
            seen(10_000_000, 0, 0, 0, None);
        }
        for _ in 0..ticks {
            seen(10_000_000, 20, 20, 1, Some(100_000));
        }
        assert_eq!(seen(late_ns, 0, 0, 1, None).orders.state, State::Open);
        let decision = seen(10_000_000, came, 20, came - 19, Some(late_ns.max(66_000_000)));
        assert_eq!(decision.orders.state, expected, "{late_ms} ms late: {decision:?}");
    }
}

/// A server that for 0.3 s has a third of its processor is as slow as one that is overloaded: what it served
/// before tells that it will catch up.
#[test]
fn a_server_that_was_slow_for_a_moment() {
    for (ticks, expected) in [(30, State::Open), (300, State::Shedding)] {
        let mut controller = Controller::new(Settings::default());
        let mut seen = |tick: u64, begun: u64, waiting: u64, age_ns: u64| {
            let connections = Connections {
                established: 17,
                asked: 17,
                begun,
                waiting,
                wait_ns_min: Some(age_ns),
                ..Connections::default()
            };
            controller.step(&Observation {
                now_ns: 10_000_000 * tick,
                interval_ns: 10_000_000,
                syn: [17, 0, 0],
                passed: [17, 0, 0],
                connections: Some(connections),
                queue: Some(Queue { listeners: 1, waiting, limit: 65_535, fullest_share: 0.05 }),
                ..Observation::default()
            })
        };
        for tick in 1..=300 {
            seen(tick, 17, 1, 100_000);
        }
        let decisions = (1..=ticks).map(|tick| seen(300 + tick, 6, 11 * tick, 6_500_000 * tick));
        let state = decisions.last().map(|decision| decision.orders.state);
        assert_eq!(state, Some(expected), "{ticks} ticks");
    }
}

/// No SYN comes for 60 ms, where 2000 a second usually do, and then all at once: it was the way to the host
/// that stood still. If as many come again they are a crowd.
#[test]
fn a_way_that_stood_still() {
    for (quiet_ticks, then, expected) in
        [(6, 20, State::Open), (6, 150, State::Shedding), (0, 20, State::Shedding)]
    {
        let mut controller = Controller::new(Settings::default());
        let mut now_ns = 0;
        let mut seen = |came: u64, begun: u64, waiting: u64, age_ns: Option<u64>| {
            now_ns += 10_000_000;
            let connections = Connections {
                established: came,
                asked: came,
                begun,
                waiting,
                wait_ns_min: age_ns,
                ..Connections::default()
            };
            let observation = Observation {
                now_ns,
                interval_ns: 10_000_000,
                syn: [came, 0, 0],
                passed: [came, 0, 0],
                connections: Some(connections),
                queue: Some(Queue { listeners: 1, waiting, limit: 4096, fullest_share: 0.05 }),
                ..Observation::default()
            };
            controller.step(&observation).orders.state
        };
        for _ in 0..200 {
            seen(20, 20, 1, Some(100_000));
        }
        for _ in 0..quiet_ticks {
            seen(0, 0, 0, None);
        }
        let states = [seen(140, 20, 120, Some(9_000_000)), seen(then, 20, 100 + then, Some(19_000_000))];
        assert_eq!(states[1], expected, "{quiet_ticks} ticks without anybody: {states:?}");
    }
}
