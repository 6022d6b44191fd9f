//! What the laboratory measured as CSV: a line for each round of each row.
//!
//! It must never round, reckon or leave out: that is for whoever reads it.
use std::fmt::Write as _;

use crate::results::{AskedBy, Protocol, Results, Round, Row};

const HEAD: &str = "model,protocol,children,loops,bytes,pool,round,\
    user_s,system_s,wall_s,answered,connections,failed,answer_bytes,\
    minor_faults,major_faults,voluntary_switches,involuntary_switches,peak_memory_bytes,\
    client_user_s,client_system_s,leaks,served_by,client";

/// The table with its head.
pub fn csv(results: &Results) -> String {
    let mut text = format!("{HEAD}\n");
    for measured in &results.rows {
        for (index, round) in measured.rounds.iter().enumerate() {
            line(&mut text, &measured.row, index + 1, round);
        }
    }
    text
}

fn line(text: &mut String, row: &Row, number: usize, round: &Round) {
    let protocol = match row.protocol {
        Protocol::Paper => "paper",
        Protocol::Http => "http",
        Protocol::KeepAlive => "keep-alive",
    };
    let asking = match row.client {
        AskedBy::Processes => "processes",
        AskedBy::Threads => "threads",
        AskedBy::Epoll => "epoll",
    };
    let Round { server, client, .. } = round;
    let served_by: Vec<String> = round.served_by.iter().map(u64::to_string).collect();
    let Row { model, children, loops, bytes, pool, .. } = row;
    // To write to a string cannot fail.
    let _ = write!(text, "{model},{protocol},{children},{loops},{bytes},{pool},{number},");
    let _ = write!(text, "{},{},{},", server.user_s, server.system_s, client.wall_s);
    let _ = write!(text, "{},{},{},{},", client.answered, client.connections, client.failed(), client.bytes);
    let _ = write!(text, "{},{},", server.minor_faults, server.major_faults);
    let _ = write!(text, "{},{},", server.voluntary_switches, server.involuntary_switches);
    let _ = write!(text, "{},{},", round.peak_memory_bytes, client.usage.user_s);
    let _ = write!(text, "{},{},", client.usage.system_s, round.leaks.len());
    let _ = writeln!(text, "{},{asking}", served_by.join(" "));
}

#[cfg(test)]
mod tests {
    use crate::results::{ClientReport, Measured, MeasuredOn, SCHEMA, Usage};

    use super::*;

    #[test]
    fn a_round_is_a_line_with_a_value_for_each_head() {
        let round = Round {
            server: Usage { user_s: 0.5, system_s: 1.25, minor_faults: 3, ..Usage::default() },
            peak_memory_bytes: 4096,
            served_by: vec![7, 3],
            leaks: vec!["a zombie is left".into()],
            client: ClientReport {
                wall_s: 2.5,
                answered: 10,
                connections: 11,
                errors: vec![("short answer".into(), 1)],
                bytes: 40_000,
                ..ClientReport::default()
            },
        };
        let row = Row {
            model: "prefork".into(),
            protocol: Protocol::KeepAlive,
            children: 1,
            loops: 11,
            bytes: 4000,
            pool: 2,
            client: AskedBy::Epoll,
        };
        let results = Results {
            schema: SCHEMA,
            plan: "quick".into(),
            command: "staunch lab run".into(),
            scale: 1.0,
            machine: MeasuredOn {
                processor: "A CPU".into(),
                processors: 2,
                server_cpus: vec![0],
                client_cpus: vec![1],
                kernel: "6.1".into(),
                version: "0".into(),
                began: "2026-01-01T00:00:00Z".into(),
            },
            rows: vec![Measured { row, rounds: vec![round.clone(), round] }],
        };
        let text = csv(&results);
        let lines: Vec<&str> = text.lines().collect();
        let line = "prefork,keep-alive,1,11,4000,2,1,0.5,1.25,2.5,10,11,1,40000,3,0,0,0,4096,0,0,1,7 3,epoll";
        assert_eq!((lines.len(), lines[1]), (3, line));
        assert_eq!(lines[0].split(',').count(), line.split(',').count());
        assert!(lines[2].starts_with("prefork,keep-alive,1,11,4000,2,2,"));
    }
}
