//! `staunch model fit`: the host that explains the first part of a measurement, and what it says of the rest.
//!
//! It must never show a predicted point as fitted, nor hide that the points do not tell a figure.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use staunch_figures::plot::alone;
use staunch_figures::words;
use staunch_program::output::{print as say, remark};
use staunch_queueing::Service;
use staunch_queueing::fit::Known;

use super::chart;
use super::expected::{long_run, percent, run};
use super::fitted::{CurveFit, FitDocument};
use super::fitting::{self, Fitted};
use super::host::{GateArguments, KnownArguments};
use super::measured::{self, Curve, Over};
use super::{page, table};
use crate::load::{CROSSED, Sink};
use crate::units;

/// What stands at the end of the help.
const EXIT: &str = "\
Exit codes:
  0  the model describes what was measured
  1  the file cannot be used, or the generator was saturated
  2  it was called wrongly
  3  the predicted points are off by more than --error-max: what is printed is no guide";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXIT)]
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

    /// Fit without the loads at which the generator was saturated
    #[arg(long)]
    leave_out_saturated: bool,

    /// Exit with 3 if the predicted points are off by more than this in the mean
    #[arg(long, value_name = "PERCENT", value_parser = error_max, default_value = "50%")]
    error_max: f64,

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

    /// Requests a second that the application answers while nothing is received (mu2)
    #[arg(long = "service-rate", visible_alias = "mu2", value_name = "RATE", value_parser = units::rate)]
    #[arg(conflicts_with = "peak", help_heading = "Known, and not to be fitted")]
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
/// The file cannot be read or tells too little; the generator was saturated; a file cannot be written.
pub(crate) fn run_command(arguments: &Arguments) -> Result<ExitCode, String> {
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
        Sink::open(path)?.write(&alone(Some(&chart::plot(&one.chart()))))?;
    }
    let to_stdout =
        [&arguments.html, &arguments.svg].into_iter().flatten().any(|path| path.as_os_str() == "-");
    if arguments.json {
        let fits = fitted.iter().map(|one| one.fit.clone()).collect();
        say(&FitDocument::new(&name, fits).write());
    } else if !to_stdout {
        say(&fitted.iter().map(table::text).collect::<Vec<String>>().join("\n"));
    }
    let useless: Vec<String> =
        fitted.iter().filter_map(|one| useless(&one.fit, arguments.error_max)).collect();
    useless.iter().for_each(|words| remark(&format!("staunch: {name}: {words}\n")));
    Ok(if useless.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CROSSED) })
}

/// What is said of a fit whose predictions are no guide. Who asks the model decides between halves and
/// doubles: with a gate or without, one host or two. A model that is off by a half in the mean cannot tell
/// these apart; servers that are as the model says are off by a tenth.
fn useless(fit: &CurveFit, error_max: f64) -> Option<String> {
    let error = fit.error_predicted.unwrap_or(fit.error_fitted);
    // What is no number is no guide either.
    (error.is_nan() || error > error_max).then(|| {
        let which = if fit.error_predicted.is_some() { "predicted" } else { "fitted" };
        format!(
            "{}: the model does not describe this server: the {which} points are off by {} in the mean, more \
             than {} (--error-max); its mu1, mu2, K and T are no guide",
            words::harmless(&fit.name),
            percent(error),
            percent(error_max)
        )
    })
}

/// What is said of a measurement in which the generator did not offer what it was to.
fn saturated(curve: &Curve) -> Option<String> {
    let marks = curve.off.iter().filter(|mark| mark.unsent_share > 0.0);
    let worst = marks.clone().map(|mark| mark.unsent_share).fold(0.0, f64::max);
    let first = marks.clone().next()?.load.requests_per_s;
    Some(format!(
        "{}: the generator was saturated at {} of {} loads, the lowest {}, and left up to {} of the requests \
         unsent: the server never saw what the file calls offered. Measure with a generator that keeps up, \
         or say --leave-out-saturated",
        words::harmless(&curve.name),
        marks.count(),
        curve.off.len(),
        words::per_s(first),
        percent(worst)
    ))
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

    fn fit(&self, mut curve: Curve) -> Result<Fitted, String> {
        if self.leave_out_saturated {
            curve.off.retain(|mark| mark.unsent_share == 0.0);
        }
        if let Some(words) = saturated(&curve) {
            return Err(words);
        }
        if curve.off.is_empty() {
            return Err("at every load the generator was saturated".to_owned());
        }
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

/// `50%` or `50`, as a share of 1.
fn error_max(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent / 100.0),
        _ => Err("write a percentage such as 50%".into()),
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
