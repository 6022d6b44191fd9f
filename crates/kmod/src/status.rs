//! `staunch kernel status`: what the module was told and what it counts, as the kernel has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use staunch_figures::words;
use staunch_program::{Failure, output};

use super::module::{NAME, NOT_LOADED};

/// The file among the module's parameters that holds its counts.
const COUNTS: &str = "counts";

/// How to show it.
#[derive(Args)]
pub(super) struct Arguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A moment of the module.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Status {
    loaded: bool,
    parameters: BTreeMap<String, String>,
    counts: BTreeMap<String, u64>,
}

/// Shows it.
///
/// # Errors
/// The module is there, and what it says cannot be read.
pub(super) fn run(arguments: &Arguments, host: &Path) -> Result<ExitCode, Failure> {
    let folder = host.join("sys/module").join(NAME).join("parameters");
    let status = if folder.exists() { read(&folder)? } else { Status::none() };
    if arguments.json {
        let text = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        output::print(&format!("{text}\n"));
    } else {
        output::print(&(lines(&status).join("\n") + "\n"));
    }
    Ok(if status.loaded { ExitCode::SUCCESS } else { ExitCode::from(NOT_LOADED) })
}

impl Status {
    fn none() -> Self {
        Self { loaded: false, parameters: BTreeMap::new(), counts: BTreeMap::new() }
    }
}

fn read(folder: &Path) -> Result<Status, String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut status = Status { loaded: true, ..Status::none() };
    for entry in fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        let text = fs::read_to_string(entry.path()).map_err(said)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == COUNTS {
            status.counts = text.lines().filter_map(count).collect();
        } else {
            status.parameters.insert(name, text.trim_end().to_owned());
        }
    }
    Ok(status)
}

/// A line with a name and a number.
fn count(line: &str) -> Option<(String, u64)> {
    let (name, number) = line.split_once(' ')?;
    Some((name.to_owned(), number.parse().ok()?))
}

fn lines(status: &Status) -> Vec<String> {
    if !status.loaded {
        return vec![format!("{NAME} is not loaded")];
    }
    let parameters = status.parameters.iter().map(|(name, value)| (name, words::harmless(value)));
    let counts = status.counts.iter().map(|(name, number)| (name, words::count(*number)));
    let rows = counts.chain(parameters).map(|(name, value)| format!("  {name:<14} {value}"));
    [format!("{NAME} is loaded")].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn a_count_is_a_name_and_a_number() {
        assert_eq!(count("cache_hits 12"), Some(("cache_hits".to_owned(), 12)));
        assert!(count("cache_hits").is_none() && count("cache_hits many").is_none());
    }
}
