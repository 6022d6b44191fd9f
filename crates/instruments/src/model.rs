//! `staunch model`: what a host does when more is asked of it than it can do, by calculation.
//!
//! It must never calculate: that is the crate queueing. Here are words, tables and pictures.

mod chart;
mod curves;
mod expected;
mod fit;
mod fitted;
mod fitting;
mod host;
mod measured;
mod page;
mod plot;
mod predict;
mod service;
mod size;
mod table;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch model predict --service-rate 1800 --backlog 4096 --patience 1s
  staunch load sweep http://127.0.0.1:8080/ --no-keep-alive --json sweep.json
  staunch model fit sweep.json --backlog 4096 --html page.html --json > fit.json
  staunch model size --fit fit.json

docs/overload.md derives the model and says what each figure means.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Say what comes of each offered load, with and without a gate
    Predict(predict::Arguments),
    /// Find the host that explains what was measured, and predict the rest of it
    Fit(fit::Arguments),
    /// Draw goodput against offered load, with and without a gate
    Plot(plot::Arguments),
    /// Say how many requests and how many forged SYN a second a host survives
    Size(size::Arguments),
}

/// Runs it.
///
/// # Errors
/// Numbers no host can have, files that cannot be read or written, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    match &arguments.command {
        Subcommands::Fit(arguments) => return fit::run_command(arguments),
        Subcommands::Predict(arguments) => predict::run(arguments),
        Subcommands::Plot(arguments) => plot::run(arguments),
        Subcommands::Size(arguments) => size::run(arguments),
    }
    .map(|()| ExitCode::SUCCESS)
}
