//! `staunch model fit`: the host that explains the first part of a measurement, and what it says of the rest.
//!
//! It must never show a predicted point as fitted, nor hide that the points do not tell a figure.

use std::path::PathBuf;

use clap::Args;
use staunch_loadgen::plot::alone;
use staunch_loadgen::report::PLOT_STYLE;
use staunch_queueing::Service;
use staunch_queueing::fit::Known;

use super::chart;
use super::expected::{long_run, run};
use super::fitted::FitDocument;
use super::fitting::{self, Fitted};
use super::host::{GateArguments, KnownArguments};
use super::measured::{self, Curve, Over};
use super::output::say;
use super::{page, table};
use crate::load::Sink;
use crate::units;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What was measured: a file of `staunch load sweep --json`, or overload.json of the gate's measurement
    #[arg(value_name = "SWEEP.json")]
    sweep: PathBuf,

    /// Fit so many of the lowest loads, rounded up, and predict the others
    #[arg(long, value_name = "1/3|40%|N", value_parser = first, default_value = "1/3")]
    first: First,

    /// How long each load was offered, where the file does not tell; off for the long run
    #[arg(long, value_name = "TIME|off", value_parser = sending)]
    sending: Option<f64>,

    /// Only this server of the file
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only what grows by requests, or by forged SYN
    #[arg(long, value_name = "requests|flood", value_parser = measured::over)]
    over: Option<Over>,

    /// Print JSON for programs; --fit of the other commands reads it
    #[arg(long)]
    json: bool,

    /// Write a page with plots that needs nothing else
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,

    /// Write the plot of one curve
    #[arg(long, value_name = "FILE|-")]
    svg: Option<PathBuf>,

    /// Requests a second that it answers when enough come and nothing else does; mu2 follows from it
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    #[arg(help_heading = "Known, and not to be fitted")]
    peak: Option<f64>,

    /// Requests a second that the application answers while nothing is received
    #[arg(long, value_name = "RATE", value_parser = units::rate, conflicts_with = "peak")]
    #[arg(help_heading = "Known, and not to be fitted")]
    mu2: Option<f64>,

    #[command(flatten, next_help_heading = "Known, and not to be fitted")]
    known: KnownArguments,
    #[command(flatten)]
    gate: GateArguments,
}

/// How many points are fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Share(f64),
    Points(usize),
}

/// Fits.
///
/// # Errors
/// The file cannot be read or tells too little; a file cannot be written.
pub(crate) fn run_command(arguments: &Arguments) -> Result<(), String> {
    let name = arguments.sweep.display().to_string();
    let all = measured::read(&arguments.sweep)?;
    let wanted: Vec<Curve> = all.iter().filter(|curve| arguments.wants(curve)).cloned().collect();
    if wanted.is_empty() {
        return Err(format!("{name}: has nothing of the kind; it has {}", names(&all)));
    }
    if arguments.svg.is_some() && wanted.len() > 1 {
        return Err(format!(
            "{name}: has {}; --server and --over say which one --svg is to draw",
            names(&wanted)
        ));
    }
    let fitted: Vec<Fitted> = wanted
        .into_iter()
        .map(|curve| arguments.fit(curve).map_err(|words| format!("{name}: {words}")))
        .collect::<Result<_, String>>()?;
    if let Some(path) = &arguments.html {
        Sink::open(path)?.write(&page::html(&name, &fitted))?;
    }
    if let (Some(path), Some(one)) = (&arguments.svg, fitted.first()) {
        Sink::open(path)?.write(&alone(Some(&chart::plot(&one.chart())), PLOT_STYLE))?;
    }
    let to_stdout =
        [&arguments.html, &arguments.svg].into_iter().flatten().any(|path| path.as_os_str() == "-");
    if arguments.json {
        let fits = fitted.iter().map(|one| one.fit.clone()).collect();
        say(&FitDocument::new(&name, fits).write());
    } else if !to_stdout {
        say(&fitted.iter().map(table::text).collect::<Vec<String>>().join("\n"));
    }
    Ok(())
}

fn names(curves: &[Curve]) -> String {
    let name = |curve: &Curve| format!("{} over {}", curve.name, curve.over.word());
    curves.iter().map(name).collect::<Vec<String>>().join(", ")
}

impl Arguments {
    fn wants(&self, curve: &Curve) -> bool {
        !curve.off.is_empty()
            && self.server.as_ref().is_none_or(|server| *server == curve.name)
            && self.over.is_none_or(|over| over == curve.over)
    }

    fn fit(&self, curve: Curve) -> Result<Fitted, String> {
        let sending_s = self.sending.or(curve.sending_s).filter(|sending_s| sending_s.is_finite());
        let retry_s = self.known.retry.unwrap_or(0.0);
        long_run(retry_s, sending_s)?;
        let known = Known {
            peak_per_s: self.peak,
            mu2_per_s: self.mu2,
            mu1_per_s: self.known.mu1,
            window_s: self.known.coalescing.unwrap_or(0.0),
            full_share: self.known.full_cost.unwrap_or(1.0),
            interrupt_s: self.known.interrupt_cost,
            places: self.known.places(),
            patience_s: self.known.patience.or(curve.patience_s),
            retry_s,
            run: sending_s.map(run),
            service: self.known.service.unwrap_or(Service::Deterministic),
        };
        let first = self.first.of(curve.off.len());
        fitting::fitted(curve, first, &known, self.gate.gate())
    }
}

impl First {
    fn of(self, points: usize) -> usize {
        match self {
            First::Points(first) => first.min(points),
            // A third of six is two, not three because of a rounding error.
            First::Share(share) => ((points as f64 * share - 1e-9).ceil() as usize).min(points),
        }
    }
}

fn first(text: &str) -> Result<First, String> {
    let fraction = || {
        let (part, whole) = text.split_once('/')?;
        Some(part.trim().parse::<f64>().ok()? / whole.trim().parse::<f64>().ok()?)
    };
    let percent = || Some(text.strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0);
    let points = || text.parse().ok().filter(|points| *points > 0).map(First::Points);
    let share = fraction().or_else(percent).filter(|share| *share > 0.0 && *share <= 1.0);
    share.map(First::Share).or_else(points).ok_or_else(|| "write 1/3, 40%, or a number of points".to_owned())
}

fn sending(text: &str) -> Result<f64, String> {
    if text == "off" { Ok(f64::INFINITY) } else { units::span_s(text) }
}
