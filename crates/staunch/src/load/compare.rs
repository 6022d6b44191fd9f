//! `staunch load compare`: is B better or worse than A?

use std::process::ExitCode;

use clap::Args;
use console::Term;
use staunch_loadgen::compare::{self, Side};
use staunch_loadgen::report::Document;

use super::progress::CROSSED;

/// What the command line says.
#[derive(Args)]
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
    let comparison = compare::compare(&a, &b, arguments.tolerance).map_err(|fault| fault.to_string())?;
    if arguments.json {
        println!("{}", compare::json(&comparison));
    } else {
        let terminal = Term::stdout();
        let colour = terminal.features().colors_supported();
        print!("{}", compare::text(&comparison, colour, usize::from(terminal.size().1)));
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
