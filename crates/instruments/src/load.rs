//! `staunch load`: overloads a server, and says what came of it.

mod arguments;
mod beside;
mod compare;
mod files;
mod flood;
mod hold;
mod keys;
mod live;
mod plan;
mod progress;
mod sweep;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use staunch_loadgen::mix::webstone;

use arguments::{Connections, Generator, LoadArguments, Requests, Results};
pub(crate) use files::Sink;
pub(crate) use keys::end_on_signal;
use plan::Aim;
pub(crate) use progress::CROSSED;

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch load http://127.0.0.1:8080/ -c 64 -d 10s          closed loop: the server sets the pace
  staunch load http://127.0.0.1:8080/ --rate 10k/s          open loop: the schedule sets the pace
  staunch load http://127.0.0.1:8080/ --rate 10k/s --no-keep-alive --patience 1s --html page.html
  staunch load https://localhost:8443/ --cacert ca.pem      by TLS; -k verifies nothing
  staunch load sweep http://127.0.0.1:8080/ --html page.html
  staunch load live 'http://127.0.0.1:8080/events?topic=load' -c 10k --rate 10/s --token SECRET

Exit codes:
  0  it ran; answers that failed or were wrong among right ones change nothing, --fail-if does
  1  it could not run, no connection was made, or answers came and not one was right
  2  it was called wrongly
  3  a threshold (--fail-if) was crossed, or compare has found B worse

`staunch load COMMAND --help` has the flags of a command, docs/load.md what all of it means.";

/// What the command line says.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Subcommands>,

    /// What to ask for, such as http://127.0.0.1:8080/
    #[arg(value_name = "URL", value_parser = plan::url, required = true)]
    url: Option<String>,

    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    requests: Requests,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    generator: Generator,
    #[command(flatten)]
    results: Results,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Find what a server can do, then offer it 0.25 to 20 times of that
    Sweep(sweep::Arguments),
    /// Say whether B is better or worse than A, with confidence intervals
    Compare(compare::Arguments),
    /// Hold many connections open
    Hold(hold::Arguments),
    /// Read live data as many readers, publish meanwhile, and count what is lost or late
    Live(live::Arguments),
    /// Make the five files that --webstone asks for
    WebstoneFiles {
        /// Where to
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Send SYN segments from forged addresses into a network namespace or over loopback
    Flood(flood::Arguments),
}

/// Runs it.
///
/// # Errors
/// Whatever keeps the plan from being carried out, in one sentence.
pub(crate) fn run_command(arguments: Arguments) -> Result<ExitCode, String> {
    match arguments.command {
        Some(Subcommands::Sweep(arguments)) => sweep::run(&arguments),
        Some(Subcommands::Compare(arguments)) => compare::run(&arguments),
        Some(Subcommands::Hold(arguments)) => hold::run(&arguments),
        Some(Subcommands::Live(arguments)) => live::run(&arguments),
        Some(Subcommands::Flood(arguments)) => flood::run(&arguments),
        Some(Subcommands::WebstoneFiles { folder }) => {
            webstone::write_files(&folder).map_err(|fault| fault.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        None => offer(&arguments),
    }
}

fn offer(arguments: &Arguments) -> Result<ExitCode, String> {
    let url = arguments.url.as_deref().unwrap_or_default();
    let aim = Aim { url, requests: &arguments.requests, ways: &arguments.connections };
    let kind = plan::kind(&arguments.load, aim.ways)?;
    let mut plan = plan::of(&aim, &arguments.generator, kind, plan::duration(&arguments.load))?;
    for word in &arguments.load.beside {
        let lane = beside::lane(word, &aim, &plan.address)?;
        if plan.lanes.iter().any(|other| other.name == lane.name) {
            return Err(format!("--with {word} stands twice"));
        }
        plan.lanes.push(lane);
    }
    progress::offer(&plan, &arguments.results)
}
