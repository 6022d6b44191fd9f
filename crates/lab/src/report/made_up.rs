//! Results that nobody measured, for tests: the paper's table as three rounds, and an engine's models.
use crate::paper;
use crate::results::{Measured, Protocol, Results, Row};

/// What each round differs by from the paper's figure.
const ROUNDS: [f64; 3] = [0.99, 1.0, 1.01];

pub(super) fn results() -> Results {
    let mut results = paper::as_results();
    results.command = "staunch lab run --plan paper".into();
    results.machine.processor = "<made up>".into();
    results.machine.server_cpus = vec![0];
    results.machine.client_cpus = vec![1];
    let iterative = results.rows[0].clone();
    for (protocol, factor) in [(Protocol::Http, 1.1), (Protocol::KeepAlive, 0.2)] {
        for (model, better) in [("staunch-epoll", 1.0), ("epoll-edge", 1.2)] {
            for children in [1, 10] {
                let row = Row { model: model.into(), protocol, children, ..iterative.row.clone() };
                results.rows.push(Measured { row, ..scaled(&iterative, factor * better) });
            }
        }
    }
    results.rows = results.rows.iter().map(three_rounds).collect();
    results
}

fn three_rounds(one: &Measured) -> Measured {
    let rounds = ROUNDS.iter().flat_map(|factor| scaled(one, *factor).rounds).collect();
    Measured { row: one.row.clone(), rounds }
}

fn scaled(one: &Measured, factor: f64) -> Measured {
    let mut one = one.clone();
    for round in &mut one.rounds {
        round.server.system_s *= factor;
        round.client.wall_s = round.server.system_s * 1.1;
        round.client.usage.system_s = round.server.system_s / 2.0;
        round.peak_memory_bytes = 3_000_000;
        round.served_by = (0..one.row.pool as u64).map(|child| 400 - child).collect();
    }
    one
}
