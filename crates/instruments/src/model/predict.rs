//! `staunch model predict`: what comes of each offered load, with and without a gate.
use clap::Args;
use serde::Serialize;
use staunch_figures::table::{Align, lines};
use staunch_figures::words;
use staunch_loadgen::report::layout;
use staunch_loadgen::sweep::FACTORS;
use staunch_program::output::print as say;
use staunch_queueing::{Host, OfferedLoad};

use super::expected::{Expected, expect, percent, whole};
use super::fitted::HostDocument;
use super::host::{HostArguments, USUAL, behind, gate_sentence, rate_or_none, sentence};
use crate::units;

/// What the command line says.
#[derive(Args)]
#[command(after_help = USUAL)]
pub(crate) struct Arguments {
    /// Requests a second, each with a connection of its own [default: 0.25 to 20 times the capacity]
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = units::rate)]
    offered: Vec<f64>,

    /// Forged SYN a second beside them [default: none]
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    flood: Option<f64>,

    /// What a measurement of this length shows that begins with an empty queue [default: the long run]
    #[arg(long, value_name = "TIME", value_parser = units::span_s)]
    sending: Option<f64>,

    /// Print JSON for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    host: HostArguments,
}

/// All that is said.
#[derive(Serialize)]
struct Document {
    host: HostDocument,
    gate_cost_us: f64,
    capacity_per_s: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    requests_per_s: f64,
    syn_per_s: f64,
    without_gate: Expected,
    with_gate: Expected,
}

/// Predicts.
///
/// # Errors
/// Numbers no host can have.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let (host, gate) = (arguments.host.host()?, arguments.host.gate());
    let flood_per_s = arguments.flood.unwrap_or(0.0);
    let capacity_per_s = capacity(&host, flood_per_s)?;
    let offered = if arguments.offered.is_empty() {
        FACTORS.iter().map(|factor| factor * capacity_per_s).collect()
    } else {
        arguments.offered.clone()
    };
    let gated = behind(&host, gate);
    let row = |requests_per_s: f64| {
        let load = OfferedLoad { requests_per_s, flood_per_s };
        Ok(Row {
            requests_per_s,
            syn_per_s: flood_per_s,
            without_gate: expect(&host, &load, arguments.sending)?,
            with_gate: expect(&gated, &load, arguments.sending)?,
        })
    };
    let rows = offered.into_iter().map(row).collect::<Result<Vec<Row>, String>>()?;
    let gate_cost_us = gate.residual_s * 1e6;
    let document = Document { host: HostDocument::of(&host), gate_cost_us, capacity_per_s, rows };
    if arguments.json {
        say(&layout::write(&document));
        return Ok(());
    }
    let flood = match flood_per_s {
        0.0 => String::new(),
        _ => format!(" beside {} forged SYN", words::per_s(flood_per_s)),
    };
    say(&format!(
        "{}\ngate: {}\ncapacity {}{flood}\n\n{}",
        sentence(&host),
        gate_sentence(&gate),
        words::per_s(capacity_per_s),
        table(&document.rows)
    ));
    Ok(())
}

/// What the host can do without a gate beside that flood.
///
/// # Errors
/// Numbers no host can have.
pub(crate) fn capacity(host: &Host, flood_per_s: f64) -> Result<f64, String> {
    let load = OfferedLoad { requests_per_s: 0.0, flood_per_s };
    host.capacity_per_s(&load).map_err(|fault| fault.to_string())
}

fn table(rows: &[Row]) -> String {
    let header = [
        "offered/s",
        "in time/s",
        "served/s",
        "kernel",
        "p50",
        "p99",
        "gate: in time/s",
        "kernel",
        "p50",
        "p99",
    ];
    let mut cells = vec![header.map(str::to_owned).to_vec()];
    for row in rows {
        let (off, on) = (&row.without_gate, &row.with_gate);
        let time = words::time_ms_or_dash;
        cells.push(vec![
            whole(row.requests_per_s),
            whole(off.goodput_per_s),
            whole(off.served_per_s),
            percent(off.reception_share),
            time(off.p50_ms),
            time(off.p99_ms),
            whole(on.goodput_per_s),
            percent(on.reception_share),
            time(on.p50_ms),
            time(on.p99_ms),
        ]);
    }
    lines(&cells, &[Align::Right; 10]).join("\n") + "\n"
}
