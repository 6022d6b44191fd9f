//! `staunch load sweep`: what a server can do, and what becomes of it when more is asked.
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use console::Term;
use staunch_figures::words;
use staunch_loadgen::RunControl;
use staunch_loadgen::report;
use staunch_loadgen::schedule::Arrivals;
use staunch_loadgen::sweep::{self, FACTORS, SweepEvent, SweepPlan, SweepStage};
use staunch_loadgen::sweep_outcome::SweepOutcome;
use staunch_loadgen::view::{Facts, View};
use staunch_program::output;

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

    /// Write a row per point
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
    output::remark(&table);
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
    let control = Arc::new(RunControl::default());
    keys::end_on_signal(&control)?;
    let mut progress = Progress { plan, view: None, is_terminal: Term::stderr().is_term() };
    if !quiet {
        output::remark(&(before(plan) + "\n"));
    }
    let outcome = sweep::sweep(plan, &control, &mut |event| {
        if !quiet {
            progress.show(&event);
        }
    });
    progress.finish();
    outcome.map_err(|fault| fault.to_string())
}

/// What is said before it starts.
fn before(plan: &SweepPlan) -> String {
    let finding = if plan.capacity_per_s.is_some() { "" } else { "the capacity, then " };
    let loads = counted(plan.factors.len(), "load");
    let rounds = counted(plan.rounds as usize, "round");
    format!("sweep: {finding}{loads}, {rounds}: about {}", length(plan.length()))
}

fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Minutes and seconds.
fn length(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

/// Where the sweep is: the live view on a terminal, else a line per point.
struct Progress<'a> {
    plan: &'a SweepPlan,
    view: Option<View>,
    is_terminal: bool,
}

impl Progress<'_> {
    fn show(&mut self, event: &SweepEvent<'_>) {
        match event {
            SweepEvent::Step(moment) => self.view.iter_mut().for_each(|view| view.observe(moment)),
            SweepEvent::Begins(stage) => self.begin(&self.title(*stage)),
            SweepEvent::Again { believed_per_s, found_per_s } => {
                self.finish();
                output::remark(&format!(
                    "{} were answered in time, more than the capacity of {}: it is measured anew, and the \
                     sweep begins again, about {}\n",
                    words::per_s(*found_per_s),
                    words::per_s(*believed_per_s),
                    length(self.plan.length())
                ));
            }
        }
    }

    fn begin(&mut self, title: &str) {
        self.finish();
        if self.is_terminal {
            let facts = progress::facts(&self.plan.plan);
            self.view = Some(View::new(Facts { title: title.to_owned(), keys: String::new(), ..facts }));
        } else {
            output::remark(&format!("{title}\n"));
        }
    }

    fn title(&self, stage: SweepStage) -> String {
        match stage {
            SweepStage::Capacity => "finding the capacity, closed loop".into(),
            SweepStage::Point { number, round, factor, rate_per_s } => {
                let points = self.plan.points();
                let left = length(self.plan.length_of(points + 1 - number));
                format!(
                    "{number} of {points}: {factor} times the capacity, {}, round {round}; {left} left",
                    words::per_s(rate_per_s)
                )
            }
        }
    }

    fn finish(&mut self) {
        if let Some(mut view) = self.view.take() {
            view.finish();
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(factor) if factor > 0.0 && factor <= 1000.0 => Ok(factor),
        _ => Err("write multiples of the capacity such as 0.5,1,2,10".into()),
    }
}
