//! What holds for any input: no panic, credits within their bounds, hysteresis, and orders that fit their
//! state.

use proptest::prelude::*;
use staunch_gate::controller::{Controller, Decision, Policy, Settings};
use staunch_gate::observation::{Connections, Cpu, Memory, Observation, Queue, State};

/// No machine takes more SYN in a second; the bound of credits.
const CREDITS_MAX: u64 = 10_000_000;

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..1000_u64,
        0..10_000_000_u64,
        Just(u64::MAX),
        (0..5_u64).prop_map(|n| u64::MAX - n)
    ]
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..1.0_f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(f64::NEG_INFINITY),
        Just(1e300)
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(5_000_000),
        Just(5_000_000),
        1..50_000_000_u64,
        Just(u64::MAX),
        Just(3_000_000_000)
    ]
}

fn connections() -> impl Strategy<Value = Connections> {
    let age = || prop::option::of(count());
    let counts = [(); 8].map(|()| count());
    (counts, age(), age(), age()).prop_map(|(counts, wait_ns_min, wait_ns_p50, wait_ns_p99)| {
        let [established, asked, begun, spoken, ended, reads, waiting, silent] = counts;
        Connections {
            established,
            asked,
            begun,
            spoken,
            ended,
            reads,
            waiting,
            silent,
            wait_ns_min,
            wait_ns_p50,
            wait_ns_p99,
        }
    })
}

fn queue() -> impl Strategy<Value = Queue> {
    (any::<u32>(), count(), count(), share()).prop_map(|(listeners, waiting, limit, fullest_share)| Queue {
        listeners,
        waiting,
        limit,
        fullest_share,
    })
}

type Host = (Option<Cpu>, Option<f64>, Option<u64>, Option<Memory>, Option<u64>, Option<u64>);

fn host() -> impl Strategy<Value = Host> {
    let cpu = (share(), share()).prop_map(|(kernel_share, user_share)| Cpu { kernel_share, user_share });
    let memory =
        (share(), share()).prop_map(|(available_share, tcp_share)| Memory { available_share, tcp_share });
    (
        prop::option::of(cpu),
        prop::option::of(share()),
        prop::option::of(count()),
        prop::option::of(memory),
        prop::option::of(count()),
        prop::option::of(count()),
    )
}

fn observation() -> impl Strategy<Value = Observation> {
    let classes = || [count(), count(), count()];
    let tracker = (prop::option::of(connections()), prop::option::of(queue()));
    ((time(), time()), classes(), classes(), (count(), count()), any::<u32>(), tracker, host()).prop_map(
        |((now_ns, interval_ns), syn, passed, (shed, elsewhere), prefixes, (connections, queue), host)| {
            let (cpu, receive_share, sockets, memory, listen_drops, sockets_waiting) = host;
            Observation {
                now_ns,
                interval_ns,
                syn,
                passed,
                shed,
                elsewhere,
                prefixes,
                connections,
                queue,
                cpu,
                receive_share,
                sockets,
                memory,
                listen_drops,
                sockets_waiting,
            }
        },
    )
}

fn check(decision: &Decision, before: State) {
    let orders = &decision.orders;
    for class in 0..3 {
        assert!(orders.credits[class] <= orders.burst[class], "{orders:?}");
        assert!(orders.burst[class] <= 2 * CREDITS_MAX, "{orders:?}");
    }
    match &decision.change {
        Some(change) => assert_eq!((change.from, change.to), (before, orders.state)),
        None => assert_eq!(before, orders.state),
    }
    if orders.state == State::Open {
        assert_eq!((orders.credits, orders.burst, orders.prefix_limit), ([0; 3], [0; 3], 0));
    }
    let estimate = decision.estimate;
    for value in [estimate.served_per_s, estimate.waiting, estimate.wait_s, estimate.syn_cost_ns] {
        assert!(value.is_finite() && value >= 0.0, "{estimate:?}");
    }
    assert!((0.0..=1.0).contains(&estimate.finished_share), "{estimate:?}");
}

/// Cases of a property: those of a long run are told by STAUNCH_SEEDS, as for the scenes.
fn cases() -> u32 {
    let told = std::env::var("STAUNCH_SEEDS").ok().and_then(|number| number.parse::<u32>().ok());
    told.map_or(100, |seeds| seeds.saturating_mul(20))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Any observations in any order, and sound ones afterwards: it never panics, stays in its bounds, and
    /// comes to its senses.
    #[test]
    fn any_observation(mess in prop::collection::vec(observation(), 1..60), policy in 0..3_usize) {
        let policy = [Policy::Queue, Policy::Paper, Policy::Either][policy];
        let mut controller = Controller::new(Settings { policy, ..Settings::default() });
        let mut state = State::Open;
        for observation in &mess {
            let decision = controller.step(observation);
            check(&decision, state);
            state = decision.orders.state;
        }
        for tick in 0..14_000_u64 {
            let now_ns = tick * 5_000_000;
            let quiet = Observation { now_ns, interval_ns: 5_000_000, ..Observation::default() };
            state = controller.step(&quiet).orders.state;
        }
        prop_assert_eq!(state, State::Open);
    }

    /// Between the two thresholds of the paper the state stays as it was.
    #[test]
    fn the_papers_hysteresis(steps in prop::collection::vec((0.0..1.0_f64, 0..200_u64), 1..200)) {
        let mut controller = Controller::new(Settings { policy: Policy::Paper, ..Settings::default() });
        let mut state = State::Open;
        for (kernel_share, sockets) in steps {
            let cpu = Some(Cpu { kernel_share, user_share: 0.0 });
            let interval_ns = 5_000_000;
            let seen = Observation { interval_ns, cpu, sockets: Some(sockets), ..Observation::default() };
            let expected = match (kernel_share, sockets) {
                (share, count) if share > 0.75 && count > 128 => State::Shedding,
                (share, count) if share < 0.60 || count < 102 => State::Open,
                _ => state,
            };
            state = controller.step(&seen).orders.state;
            prop_assert_eq!(state, expected);
        }
    }

    /// In a crowd somebody is always let in before the line is empty, at any rate and any length of line.
    #[test]
    fn a_short_line_is_filled(per_tick in 10..200_u64, waiting in 0..4_u64) {
        let mut controller = Controller::new(Settings::default());
        let mut granted = 0;
        for tick in 0..400_u64 {
            let crowd = tick < 300;
            let age = if crowd { 500_000_000 } else { 6_000_000 };
            let connections = Connections {
                established: per_tick,
                asked: per_tick,
                begun: per_tick,
                waiting: if crowd { 1000 + 100 * per_tick } else { waiting },
                wait_ns_min: Some(age),
                ..Connections::default()
            };
            let waiting = connections.waiting;
            let queue = Queue { listeners: 1, waiting, limit: 65_535, fullest_share: 0.1 };
            let decision = controller.step(&Observation {
                now_ns: tick * 5_000_000,
                interval_ns: 5_000_000,
                syn: [0, 0, 20 * per_tick],
                passed: [0, 0, per_tick],
                shed: 19 * per_tick,
                connections: Some(connections),
                queue: Some(queue),
                ..Observation::default()
            });
            if !crowd {
                prop_assert_eq!(decision.orders.state, State::Shedding);
                granted += decision.orders.credits[2];
            }
        }
        prop_assert!(granted >= 100 * per_tick, "{} granted, {} a tick served", granted, per_tick);
    }
}
