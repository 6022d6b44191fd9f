//! Results that nobody measured, for tests.

use crate::results::{
    AskedBy, ClientReport, Measured, MeasuredOn, Protocol, Results, Round, Row, SCHEMA, Usage,
};

/// A row in the paper's protocol: children, loops, bytes, pool; and of each round the microseconds that a
/// connection cost the server.
pub(crate) fn measured(model: &str, asked: (usize, u64, usize, usize), costs_us: &[f64]) -> Measured {
    let (children, loops, bytes, pool) = asked;
    let (protocol, client) = (Protocol::Paper, AskedBy::Processes);
    let row = Row { model: model.into(), protocol, children, loops, bytes, pool, client };
    let rounds = costs_us.iter().map(|us| round(&row, us * 1e-6)).collect();
    Measured { row, rounds }
}

/// These rounds, by another protocol.
pub(crate) fn spoken(protocol: Protocol, mut measured: Measured) -> Measured {
    measured.row.protocol = protocol;
    measured
}

/// Of rows, by a server and a client with a processor each.
pub(crate) fn results(rows: Vec<Measured>) -> Results {
    Results {
        schema: SCHEMA,
        plan: "made up".into(),
        command: "staunch lab run".into(),
        scale: 1.0,
        machine: MeasuredOn {
            processor: "none".into(),
            processors: 2,
            server_cpus: vec![0],
            client_cpus: vec![1],
            kernel: "none".into(),
            version: "0".into(),
            began: "2026-01-01T00:00:00Z".into(),
        },
        rows,
    }
}

/// A round in which the client is busy for a third of the time, and the server for all of it.
fn round(row: &Row, cost_s: f64) -> Round {
    let connections = row.children as u64 * row.loops;
    let cpu_s = cost_s * connections as f64;
    Round {
        server: Usage { system_s: cpu_s, ..Usage::default() },
        peak_memory_bytes: 1 << 20,
        served_by: Vec::new(),
        leaks: Vec::new(),
        client: ClientReport {
            wall_s: cpu_s,
            answered: connections,
            connections,
            usage: Usage { system_s: cpu_s / 3.0, ..Usage::default() },
            ..ClientReport::default()
        },
    }
}
