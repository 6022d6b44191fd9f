//! A run of updates to many readers, and what its deliveries cost and how late they were.
//!
//! This file owns the generator's command line and the reading of its account. It must never judge by itself
//! which limit holds.
use std::process::Command;

use serde_json::Value;

use super::fan_server::{FanOut, name};
use crate::load;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

/// Processor time of the server for a delivery.
pub(super) const COST: &str = "CPU per delivery";
/// From the moment an update was meant to be published until all but one of a hundred readers had it.
pub(super) const P99: &str = "delay p99";
/// How long readers may take to come.
const JOIN_WITHIN: &str = "300s";

/// How many readers and updates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FanOutRow {
    pub(super) readers: u32,
    /// Updates a second.
    pub(super) rate: f64,
}

impl FanOutRow {
    /// Each measure of a row has the row in its name.
    pub(super) fn measure(self, what: &str) -> String {
        format!("{what}, {} readers, {} updates/s", self.readers, self.rate)
    }

    /// How many updates there are in so many seconds: four at least, however slow they come.
    fn updates(self, seconds: u32) -> u64 {
        ((f64::from(seconds) * self.rate).round() as u64).max(4)
    }
}

/// Publishes at a server and adds what it cost to the figures of `label`.
///
/// # Errors
/// A generator that fails, an update that was lost or came twice.
pub(super) fn measure(
    server: &FanOut,
    row: FanOutRow,
    label: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    take(&run(server, row, setting)?, row, label, outcome)
}

/// Adds what the generator's account says to the figures of `label`.
fn take(document: &Value, row: FanOutRow, label: &str, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let count = |name: &str| document["counts"][name].as_u64().unwrap_or(0);
    let faults = count("lost") + count("duplicated") + count("out_of_order");
    if faults > 0 || count("delivered") == 0 {
        return Err(format!("of {} due updates {faults} were lost, repeated or out of order", count("due")));
    }
    if document["gathered"].as_u64() != Some(row.readers.into()) {
        return Err(format!("only {} of {} readers came", document["gathered"], row.readers));
    }
    let cost_us = &document["server_us_per_delivery"];
    if cost_us.as_f64().is_none_or(|cost_us| cost_us <= 0.0) {
        return Err(format!("{cost_us} us of the server for a delivery: another process was looked at"));
    }
    let measures = [
        (COST, "us", cost_us),
        ("delay p50", "ms", &document["delay_ms"]["p50"]),
        (P99, "ms", &document["delay_ms"]["p99"]),
        ("deliveries", "/s", &document["deliveries_per_s"]),
        ("readers opened", "/s", &document["opened_per_s"]),
        ("bytes an update", "B", &document["bytes_per_update"]),
    ];
    for (what, unit, value) in measures {
        if let Some(sample) = value.as_f64() {
            outcome.add(label, &row.measure(what), unit, sample);
        }
    }
    Ok(())
}

fn run(server: &FanOut, row: FanOutRow, setting: &Setting) -> Result<Value, String> {
    let last = *load::processors().end();
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("1-{last}")]).arg(&setting.programs.staunch);
    command.args(["load", "live", &server.events(), "--quiet", "--json", "-", "--threads", "1"]);
    command.args(["--connections", &row.readers.to_string(), "--join-within", JOIN_WITHIN]);
    command.args(["--rate", &format!("{}/s", row.rate)]);
    command.args(["--updates", &row.updates(setting.seconds).to_string()]);
    command.args(["--probe", &server.serving_id().to_string()]).args(server.publishing());
    let output = command.output().map_err(|error| format!("staunch load live: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("staunch load live ({}): {}", output.status, said.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Judges the processor time of a delivery against that of a rival, round by round.
pub(super) fn judge(
    kind: ServerKind,
    rival: ServerKind,
    limit: f64,
    row: FanOutRow,
    outcome: &mut ScenarioOutcome,
) {
    judge_rows((kind, row, COST), (rival, row), limit, outcome);
}

/// Judges a measure of one row against that of another, or of a rival, round by round.
pub(super) fn judge_rows(
    (kind, row, what): (ServerKind, FanOutRow, &str),
    (rival, rival_row): (ServerKind, FanOutRow),
    limit: f64,
    outcome: &mut ScenarioOutcome,
) {
    let measure = row.measure(what);
    let ours = outcome.samples(name(kind), &measure);
    let theirs = outcome.samples(name(rival), &rival_row.measure(what));
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let of = if row == rival_row {
        name(rival).to_owned()
    } else {
        format!("that of {} readers", rival_row.readers)
    };
    let promise = format!("{measure}, of {of}");
    outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtMost, limit, "", ratios));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cost_nothing_was_not_measured() {
        let row = FanOutRow { readers: 2, rate: 1.0 };
        let document = |cost_us: Value| {
            serde_json::json!({
                "counts": {"due": 8, "delivered": 8}, "gathered": 2, "server_us_per_delivery": cost_us,
                "delay_ms": {"p50": 1.0, "p99": 2.0},
            })
        };
        for (cost_us, is_measured) in [(1.5.into(), true), (0.0.into(), false), (Value::Null, false)] {
            let mut outcome = ScenarioOutcome::new("name", "title");
            let taken = take(&document(cost_us), row, "server", &mut outcome);
            assert_eq!(taken.is_ok(), is_measured, "{taken:?}");
            assert_eq!(outcome.samples("server", &row.measure(P99)).len(), usize::from(is_measured));
        }
    }

    #[test]
    fn rows_are_judged_round_by_round() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        let (many, few) =
            (FanOutRow { readers: 200_000, rate: 0.25 }, FanOutRow { readers: 8000, rate: 5.0 });
        let server = name(ServerKind::Uring);
        for (own, other) in [(3.0, 2.0), (4.0, 4.0)] {
            outcome.add(server, &many.measure(COST), "us", own);
            outcome.add(server, &few.measure(COST), "us", other);
        }
        judge_rows((ServerKind::Uring, many, COST), (ServerKind::Uring, few), 1.5, &mut outcome);
        assert_eq!(outcome.bars[0].samples, [1.5, 1.0]);
        assert!(outcome.bars[0].promise.ends_with("0.25 updates/s, of that of 8000 readers"));
        assert_eq!((many.updates(4), few.updates(4)), (4, 20));
    }
}
