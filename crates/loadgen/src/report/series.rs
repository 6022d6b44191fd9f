//! The run in rows: CSV with one step per row, and NDJSON with one step per line.
//!
//! It must never leave out a column that was not measured: such a cell is empty.

use std::fmt::Write;

use crate::outcome::{Moment, RunOutcome};
use crate::report::fields;
use crate::report::server_side::SERVER;

/// A row per step, below a header that names each column with its unit.
pub fn csv(outcome: &RunOutcome) -> String {
    let mut text = String::from("at_ms");
    for field in fields::all() {
        let unit = if field.name.ends_with(field.unit) { String::new() } else { format!("_{}", field.unit) };
        let _ = write!(text, ",{}{unit}", field.name);
    }
    text.push_str(",open_connections,in_flight_requests");
    text.push_str(",latency_p50_ms,latency_p90_ms,latency_p99_ms,latency_max_ms,drift_max_ms");
    let is_probed = outcome.moments.iter().any(|moment| moment.server.is_some());
    for field in SERVER.iter().filter(|_| is_probed) {
        let _ = write!(text, ",server_{}", field.name);
    }
    text.push('\n');
    for moment in &outcome.moments {
        row(&mut text, moment, is_probed);
    }
    text
}

fn row(text: &mut String, moment: &Moment, is_probed: bool) {
    let _ = write!(text, "{}", moment.at_ms);
    for field in fields::all() {
        let _ = write!(text, ",{}", field.get(&moment.counts));
    }
    let _ = write!(text, ",{},{}", moment.connections, moment.in_flight);
    let latency = &moment.latency;
    for ns in [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns] {
        text.push(',');
        if ns > 0 {
            let _ = write!(text, "{}", ns as f64 / 1e6);
        }
    }
    let _ = write!(text, ",{}", moment.drift_max_ns as f64 / 1e6);
    for field in SERVER.iter().filter(|_| is_probed) {
        text.push(',');
        if let Some(value) = moment.server.as_ref().and_then(field.of) {
            let _ = write!(text, "{value}");
        }
    }
    text.push('\n');
}

/// A step as a line of NDJSON, its line break included.
pub fn ndjson_line(moment: &Moment) -> String {
    // Figures of a step are numbers under names that are words, so they can always be written.
    let mut line = serde_json::to_string(moment).expect("a step can always be written");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn every_row_has_the_headers_columns() {
        let mut outcome = made_up::overload();
        outcome.moments[3].latency = crate::outcome::Latency::default();
        let text = csv(&outcome);
        let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(text.lines().count(), outcome.moments.len() + 1);
        for line in text.lines() {
            assert_eq!(line.split(',').count(), header.len(), "{line}");
        }
        let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
        let cell =
            |row: usize, name: &str| text.lines().nth(row).unwrap().split(',').nth(column(name)).unwrap();
        assert_eq!(cell(1, "at_ms"), "100");
        assert_eq!(cell(1, "offered_requests"), outcome.moments[0].counts.offered.to_string());
        assert_eq!(cell(1, "received_bytes"), outcome.moments[0].counts.received_bytes.to_string());
        assert_eq!(cell(4, "latency_p50_ms"), "");
        let p99: f64 = cell(1, "latency_p99_ms").parse().unwrap();
        assert_eq!(p99, outcome.moments[0].latency.p99_ns as f64 / 1e6);
        assert!(!text.contains("server_"));
    }

    #[test]
    fn a_probed_run_has_the_servers_columns() {
        let mut outcome = made_up::probed();
        outcome.moments[1].server = None;
        let text = csv(&outcome);
        let columns = |row: usize| text.lines().nth(row).unwrap().split(',').count();
        assert!(text.lines().next().unwrap().ends_with(&format!("server_{}", SERVER.last().unwrap().name)));
        assert_eq!((columns(1), columns(2)), (columns(0), columns(0)));
    }

    #[test]
    fn a_step_is_one_line_of_json() {
        let moment = &made_up::overload().moments[0];
        let line = ndjson_line(moment);
        assert_eq!(line.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["at_ms"], 100);
        assert_eq!(value["counts"]["offered"], moment.counts.offered);
        assert_eq!(value["latency"]["p99_ns"], moment.latency.p99_ns);
    }
}
