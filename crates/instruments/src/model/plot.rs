//! `staunch model plot`: goodput against offered load, with and without a gate, as a picture.
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use staunch_figures::plot::alone;
use staunch_queueing::{Host, OfferedLoad};

use super::chart::{self, Chart};
use super::curves::{Curves, Range, curves};
use super::host::{HostArguments, USUAL, rate_or_none};
use super::measured::{self, Over};
use super::page;
use super::predict::capacity;
use crate::load::Sink;
use crate::units;

/// A flood is drawn up to this multiple of what reception alone could take, so that the end is seen.
const FLOOD_BEYOND: f64 = 1.2;
/// Requests are drawn up to this multiple of the capacity, as far as `staunch load sweep` goes.
const REQUESTS_BEYOND: f64 = 20.0;
/// Where requests begin, as a part of the capacity: also as there.
const REQUESTS_FROM: f64 = 0.25;

/// What the command line says.
#[derive(Args)]
#[command(after_help = USUAL)]
#[command(group = ArgGroup::new("where").required(true).multiple(true).args(["svg", "html"]))]
pub(crate) struct Arguments {
    /// What grows along the plot
    #[arg(long, value_name = "requests|flood", value_parser = measured::over, default_value = "requests")]
    over: Over,

    /// Up to where [default: 20 times the capacity, or 1.2 mu1 of a flood]
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    to: Option<f64>,

    /// Requests a second beside a flood that grows [default: the capacity]
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    offered: Option<f64>,

    /// Forged SYN a second beside requests that grow [default: none]
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    flood: Option<f64>,

    /// Equal steps along the plot, for requests too
    #[arg(long)]
    even: bool,

    /// Stands above the plot
    #[arg(long, value_name = "WORDS")]
    title: Option<String>,

    /// Write the plot
    #[arg(long, value_name = "FILE|-")]
    svg: Option<PathBuf>,

    /// Write a page with the plot that needs nothing else
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,

    #[command(flatten)]
    host: HostArguments,
}

/// Draws.
///
/// # Errors
/// Numbers no host can have, and files that cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let (host, gate) = (arguments.host.host()?, arguments.host.gate());
    let is_even = arguments.even || chart::is_even(arguments.over);
    let (load, ends) = range(arguments, &host, is_even)?;
    let along = Range { over: arguments.over, load, ends, is_even, also: &[], sending_s: None };
    let curves = curves(&host, gate, &along)?;
    let plot = chart::plot(&chart(arguments, &curves, is_even));
    if let Some(path) = &arguments.svg {
        Sink::open(path)?.write(&alone(Some(&plot)))?;
    }
    if let Some(path) = &arguments.html {
        Sink::open(path)?.write(&page::of_plot(&host, &gate, &plot))?;
    }
    Ok(())
}

fn chart<'a>(arguments: &Arguments, curves: &'a Curves, is_even: bool) -> Chart<'a> {
    let title = match arguments.over {
        Over::Requests => "Right answers in time, by requests offered",
        Over::Flood => "Right answers in time, beside a flood of forged SYN",
    };
    Chart {
        title: arguments.title.clone().unwrap_or_else(|| title.to_owned()),
        over: arguments.over,
        is_even,
        curves,
        off: &[],
        on: &[],
    }
}

/// What stays, and from where to where the other goes.
fn range(arguments: &Arguments, host: &Host, is_even: bool) -> Result<(OfferedLoad, (f64, f64)), String> {
    let flood_per_s = arguments.flood.unwrap_or(0.0);
    let capacity_per_s = capacity(host, 0.0)?;
    let requests_per_s = arguments.offered.unwrap_or(capacity_per_s);
    let (usual_from, usual_to) = match arguments.over {
        Over::Requests => (REQUESTS_FROM * capacity_per_s, REQUESTS_BEYOND * capacity_per_s),
        Over::Flood => (0.0, FLOOD_BEYOND * host.reception.mu1(host.reception.packet_s.recip())),
    };
    let from = if is_even { 0.0 } else { usual_from };
    let to = arguments.to.unwrap_or(usual_to);
    if to <= from {
        return Err(format!("--to {to}/s: the plot begins at {from:.0}/s, so it must end above that"));
    }
    Ok((OfferedLoad { requests_per_s, flood_per_s }, (from, to)))
}
