//! `staunch load compare`: is B better or worse than A?

use std::process::ExitCode;

use clap::Args;
use console::Term;
use staunch_loadgen::compare::{self, Side, Single};
use staunch_loadgen::report::Document;
use staunch_program::output;

use super::progress::CROSSED;

/// What stands at the end of the help.
const EXIT: &str = "\
Exit codes:
  0  nothing is worse by more than the tolerance, or there are too few runs to tell
  1  a file cannot be read or compared
  2  it was called wrongly
  3  B is worse";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXIT)]
pub(crate) struct Arguments {
    /// Results of the first side, written by --json; several rounds separated by commas
    #[arg(value_name = "A.json[,A2.json...]")]
    a: String,

    /// Results of the second side
    #[arg(value_name = "B.json[,B2.json...]")]
    b: String,

    /// Exit with 3 if B is worse by more than this, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "3")]
    tolerance: f64,

    /// Judge a single run a side too, cut into batches: on a busy host two equal runs may differ by more than
    /// the tolerance
    #[arg(long)]
    judge_single_runs: bool,

    /// Write the comparison as JSON
    #[arg(long)]
    json: bool,
}

/// Compares.
///
/// # Errors
/// A file that cannot be read or is no result, and results that cannot be compared.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let (a, b) = (side(&arguments.a)?, side(&arguments.b)?);
    let single = if arguments.judge_single_runs { Single::Judge } else { Single::Show };
    let comparison =
        compare::compare(&a, &b, arguments.tolerance, single).map_err(|fault| fault.to_string())?;
    if arguments.json {
        output::print(&format!("{}\n", compare::json(&comparison)));
    } else {
        let terminal = Term::stdout();
        let colour = terminal.features().colors_supported();
        output::print(&compare::text(&comparison, colour, usize::from(terminal.size().1)));
    }
    Ok(if comparison.failed { ExitCode::from(CROSSED) } else { ExitCode::SUCCESS })
}

fn side(names: &str) -> Result<Side, String> {
    let runs = names.split(',').map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Side { name: names.replace(',', ", "), runs })
}

fn read(name: &str) -> Result<Document, String> {
    let text = std::fs::read_to_string(name).map_err(|error| format!("cannot read {name}: {error}"))?;
    Document::read(name, &text).map_err(|fault| fault.to_string())
}

/// `3%` or `3`.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse() {
        Ok(percent) if (0.0..1000.0).contains(&percent) => Ok(percent),
        _ => Err("write a percentage such as 3%".into()),
    }
}
