//! `staunch load sweep`: what a server can do, and what becomes of it when more is asked.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use console::Term;
use staunch_loadgen::Control;
use staunch_loadgen::report;
use staunch_loadgen::schedule::Arrivals;
use staunch_loadgen::sweep::{self, FACTORS, Stage, SweepPlan};
use staunch_loadgen::sweep_outcome::SweepOutcome;
use staunch_loadgen::view::{Facts, View};

use super::arguments::{Connections, Generator, Requests};
use super::files::Sink;
use super::{keys, plan, progress};
use crate::units;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to ask for, such as http://127.0.0.1:8080/
    #[arg(value_name = "URL", value_parser = plan::url)]
    url: String,

    /// What is offered, as multiples of the capacity [default: 0.25 to 20 in 13 steps]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = factor)]
    factors: Vec<f64>,

    /// How often each is offered
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,

    /// For how long
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    duration: Duration,

    /// Pause between two of them
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    rest: Duration,

    /// Requests a second the server can do, when that is known already
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    capacity: Option<f64>,

    /// How the starts are spread: constant, poisson, self-similar:HURST
    #[arg(long, value_name = "HOW", value_parser = units::arrivals, default_value = "poisson")]
    arrivals: Arrivals,

    /// At most so many kept connections
    #[arg(long, short, value_name = "N", default_value_t = plan::KEPT_CONNECTIONS_MAX)]
    connections: u32,

    #[command(flatten)]
    requests: Requests,
    #[command(flatten)]
    ways: Connections,
    #[command(flatten)]
    generator: Generator,

    /// Write everything as JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Write a page with plots that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a row a point
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// What makes the text of a file.
type Writer = fn(&SweepOutcome) -> String;

/// How long a client of a sweep waits when nothing else is said: sclient's was half a second.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sweeps.
///
/// # Errors
/// Whatever keeps the plan from being carried out, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let plan = plan_of(arguments)?;
    let mut sinks = Vec::new();
    let files: [(&Option<PathBuf>, Writer); 3] = [
        (&arguments.json, report::sweep_json),
        (&arguments.html, report::sweep_html),
        (&arguments.csv, report::sweep_csv),
    ];
    for (path, writer) in files {
        if let Some(path) = path {
            sinks.push((writer, Sink::open(path)?));
        }
    }
    let outcome = carry_out(&plan, arguments.quiet)?;
    let terminal = Term::stderr();
    let table = report::sweep_text(&outcome, terminal.features().colors_supported());
    for (writer, sink) in &mut sinks {
        sink.write(&writer(&outcome))?;
    }
    eprint!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn plan_of(arguments: &Arguments) -> Result<SweepPlan, String> {
    let mut ways = arguments.ways.clone();
    ways.patience = ways.patience.or(Some(PATIENCE));
    let slots = plan::slots(&ways, Some(arguments.connections));
    let factors = if arguments.factors.is_empty() { FACTORS.to_vec() } else { arguments.factors.clone() };
    let kind = plan::placeholder(slots);
    let aim = plan::Aim { url: &arguments.url, requests: &arguments.requests, ways: &ways };
    Ok(SweepPlan {
        plan: plan::of(&aim, &arguments.generator, kind, Some(arguments.duration))?,
        arrivals: arguments.arrivals.clone(),
        slots,
        capacity_per_s: arguments.capacity,
        factors,
        rounds: arguments.rounds.max(1),
        rest: arguments.rest,
    })
}

fn carry_out(plan: &SweepPlan, quiet: bool) -> Result<SweepOutcome, String> {
    let control = Arc::new(Control::default());
    keys::end_on_signal(&control)?;
    let mut shown: Option<(String, View)> = None;
    let outcome = sweep::sweep(plan, &control, &mut |stage, moment| {
        if quiet {
            return;
        }
        let title = title(stage);
        if shown.as_ref().is_none_or(|(shown, _)| *shown != title) {
            if let Some((_, mut view)) = shown.take() {
                view.finish();
            }
            let facts = Facts { title: title.clone(), keys: String::new(), ..progress::facts(&plan.plan) };
            shown = Some((title, View::new(facts)));
        }
        if let Some((_, view)) = &mut shown {
            view.observe(moment);
        }
    });
    if let Some((_, mut view)) = shown {
        view.finish();
    }
    outcome.map_err(|fault| fault.to_string())
}

fn title(stage: Stage) -> String {
    match stage {
        Stage::Capacity => "finding the capacity, closed loop".into(),
        Stage::Point { round, factor, rate_per_s } => {
            format!("round {round}: {factor} times the capacity, {rate_per_s:.0} requests/s")
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(factor) if factor > 0.0 && factor <= 1000.0 => Ok(factor),
        _ => Err("write multiples of the capacity such as 0.5,1,2,10".into()),
    }
}
