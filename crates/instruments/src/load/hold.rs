//! `staunch load hold`: many connections that stay open.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use staunch_loadgen::hold::{self, HoldOutcome};
use staunch_loadgen::plan::LaneKind;
use staunch_loadgen::view::View;
use staunch_loadgen::{RunControl, sources};
use staunch_program::output;

use super::arguments::{Connections, Generator, Requests};
use super::files::Sink;
use super::{keys, plan, progress};
use crate::units;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to, such as http://127.0.0.1:8080/
    #[arg(value_name = "URL", value_parser = plan::url)]
    url: String,

    /// How many connections
    #[arg(long, short, value_name = "N", value_parser = units::count, default_value = "10000")]
    connections: u64,

    /// For how long, once all are there
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    hold_for: Duration,

    /// Give up when they are not all there after so long
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "10m")]
    duration: Duration,

    /// Begin at most so many a second
    #[arg(long, short, value_name = "RATE", value_parser = units::rate)]
    rate: Option<f64>,

    /// Send a request on each first, so that the server has a kept connection
    #[arg(long)]
    request_first: bool,

    #[command(flatten)]
    requests: Requests,
    #[command(flatten)]
    ways: Connections,
    #[command(flatten)]
    generator: Generator,

    /// Write the result as JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Holds.
///
/// # Errors
/// Whatever keeps the plan from being carried out; and when fewer stand at the end than asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let wanted = arguments.connections;
    let kind = LaneKind::Hold {
        connections: u32::try_from(wanted).map_err(|_| "at most 4 294 967 295 connections".to_owned())?,
        open_per_s: arguments.rate,
        request_first: arguments.request_first,
    };
    let aim = plan::Aim { url: &arguments.url, requests: &arguments.requests, ways: &arguments.ways };
    let mut plan = plan::of(&aim, &arguments.generator, kind, Some(arguments.duration))?;
    plan.sources =
        sources::enough(&plan.address, &plan.sources, wanted).map_err(|fault| fault.to_string())?;
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let control = Arc::new(RunControl::default());
    keys::end_on_signal(&control)?;
    let mut view = (!arguments.quiet).then(|| View::new(progress::facts(&plan)));
    let held = hold::hold(&plan, wanted, arguments.hold_for, &control, &mut |moment| {
        progress::show(&mut view, &control, moment);
    });
    if let Some(view) = &mut view {
        view.finish();
    }
    let held = held.map_err(|fault| fault.to_string())?;
    output::remark(&words(&held));
    if let Some(sink) = &mut sink {
        sink.write(&document(&held))?;
    }
    if held.held < wanted {
        return Err(format!("only {} of {wanted} connections were held at the end", held.held));
    }
    Ok(ExitCode::SUCCESS)
}

fn words(held: &HoldOutcome) -> String {
    let warnings: String = held.outcome.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    let all = held.complete_s.map_or("never all".to_owned(), |seconds| format!("all after {seconds:.1} s"));
    format!(
        "{warnings}held      {} of {} connections, {all}; of {} made the server closed {} while idle\n\
         memory    {:.0} B a connection in this process; the machine has {:.0} B a connection less\n",
        held.held, held.wanted, held.made, held.ended, held.client_bytes_each, held.machine_bytes_each
    )
}

fn document(held: &HoldOutcome) -> String {
    let counts = held.outcome.counts();
    let document = json!({
        "wanted": held.wanted,
        "held": held.held,
        "seconds": held.complete_s,
        "made": held.made,
        "ended": held.ended,
        "client_bytes_each": held.client_bytes_each,
        "machine_bytes_each": held.machine_bytes_each,
        "counts": counts,
        "warnings": held.outcome.warnings,
        "command": held.outcome.command,
    });
    format!("{document:#}\n")
}
