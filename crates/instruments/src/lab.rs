//! `staunch lab`: the laboratory of server models.

mod client;
mod list;
mod report;
mod run;
mod serve;
use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch lab list                                  every model: what it teaches, and its picture
  staunch lab serve prefork --pool 8 --port 8080
  wrk -c 8 http://127.0.0.1:8080/4000               4000 bytes by HTTP, with keep-alive
  printf '4000\\n' | nc 127.0.0.1 8080               the same by the paper's protocol
  staunch lab client 127.0.0.1 8080 8 5000 4000     8 children, 5000 connections each, 4000 bytes
  staunch lab run --plan quick --csv lab.csv        every model measured, in seconds
  staunch lab report lab.json --html lab.html       what was measured once, drawn again

One model is one file: crates/lab/src/models.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Ask a server as Dong (2012) did: so many children, each so many connections one after the other
    Client(client::Arguments),
    /// Show every model: its lesson, and a picture of its processes and queues
    List(list::Arguments),
    /// Measure a plan of models, children, loops, bytes and pools
    Run(run::Arguments),
    /// Draw again what was measured
    Report(report::Arguments),
    /// Serve with one model until it is told to end
    Serve(serve::Arguments),
}

/// Runs it.
///
/// # Errors
/// Whatever keeps it from its task, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    match &arguments.command {
        Subcommands::Client(arguments) => return client::run(arguments),
        Subcommands::List(arguments) => list::run(arguments)?,
        Subcommands::Run(arguments) => return run::run(arguments),
        Subcommands::Report(arguments) => report::run(arguments)?,
        Subcommands::Serve(arguments) => serve::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
