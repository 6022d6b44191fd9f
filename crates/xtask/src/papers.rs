//! `cargo xtask papers`: the figures of the five papers beside ours, as the page `docs/papers.md`.
//!
//! The command owns the order: read `bench/papers.toml`, read the runs, render, write or compare. It must
//! never hold a figure of ours: each is read from a run.

mod again;
mod evidence;
mod models;
mod page;
mod reading;
mod rows;
mod sheet;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use page::RunLine;
use reading::RunFiles;
use rows::SystemRows;
use sheet::Sheet;

const SHEET: &str = "bench/papers.toml";
const PAGE: &str = "docs/papers.md";
/// The page of runs that were made again.
const PAGE_AGAIN: &str = "bench/runs/papers.md";
/// The run whose rows are the paper's table of server models.
const LAB: &str = "lab";

/// Whether the page is written, compared, printed as JSON, or measured anew.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Change nothing: fail if the page is not what would be rendered, or names what does not exist
    #[arg(long, conflicts_with_all = ["json", "run"])]
    check: bool,
    /// Print the rows as JSON instead
    #[arg(long, conflicts_with = "run")]
    json: bool,
    /// Run every command again and render its results to bench/runs/papers.md
    #[arg(long)]
    run: bool,
    /// With --run: only these runs; of the others, results of earlier calls are taken
    #[arg(requires = "run", value_name = "NAME")]
    names: Vec<String>,
}

/// Renders, checks or runs. Fails with what is wrong, and where.
pub(crate) fn run(root: &Path, chores: &[String], arguments: &Arguments) -> ExitCode {
    match dispatch(root, chores, arguments) {
        Ok(said) => {
            println!("{}", said.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("papers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(root: &Path, chores: &[String], arguments: &Arguments) -> Result<String, String> {
    let sheet = sheet(root, chores)?;
    if arguments.run {
        let (results, failed) = again::run(root, &sheet.run, &arguments.names)?;
        let systems = rows::systems(root, &sheet, &results)?;
        write(root, PAGE_AGAIN, &page::page(&sheet.paper, &systems, &run_lines(&sheet, &results)))?;
        return match failed.is_empty() {
            true => Ok(format!("papers: {PAGE_AGAIN}")),
            false => Err(format!("{PAGE_AGAIN} is without what failed: {}", failed.join(", "))),
        };
    }
    let results = RunFiles::kept(root, &sheet.run).map_err(|error| format!("{SHEET}: {error}"))?;
    let systems = rows::systems(root, &sheet, &results).map_err(|error| format!("{SHEET}: {error}"))?;
    if arguments.json {
        return for_programs(&sheet, &systems);
    }
    let pages = [
        (PAGE, page::page(&sheet.paper, &systems, &run_lines(&sheet, &results))),
        (models::DOCUMENT, models_page(root, &results)?),
    ];
    for (file, text) in &pages {
        if !arguments.check {
            write(root, file, text)?;
        } else if evidence::read(root, file)? != *text {
            return Err(format!("{file} is not what {SHEET} and the runs say: run cargo xtask papers"));
        }
    }
    Ok(format!(
        "papers: {} systems, {} rows",
        systems.len(),
        systems.iter().map(|one| one.rows.len()).sum::<usize>()
    ))
}

/// The sheet, whose commands exist.
fn sheet(root: &Path, chores: &[String]) -> Result<Sheet, String> {
    let sheet = Sheet::read(&evidence::read(root, SHEET)?).map_err(|error| format!("{SHEET}: {error}"))?;
    for (name, run) in &sheet.run {
        let fault = |error| format!("{SHEET}: run `{name}`: {error}");
        evidence::check_command(root, chores, &run.command).map_err(fault)?;
    }
    Ok(sheet)
}

fn models_page(root: &Path, results: &RunFiles) -> Result<String, String> {
    let lab = results.0.get(LAB).ok_or_else(|| format!("{SHEET}: there is no kept run `{LAB}`"))?;
    models::filled(&evidence::read(root, models::DOCUMENT)?, &evidence::read(root, models::SOURCE)?, lab)
}

/// The words about each run: those of its file, else those of the sheet.
fn run_lines(sheet: &Sheet, results: &RunFiles) -> BTreeMap<String, RunLine> {
    let line = |(name, run): (&String, &sheet::Run)| {
        let machine = results.machine(name).or_else(|| run.machine.clone()).unwrap_or_default();
        let command = results.command(name).unwrap_or(&run.command).to_owned();
        (name.clone(), RunLine { machine, command, was_run: results.0.contains_key(name) })
    };
    sheet.run.iter().map(line).collect()
}

fn for_programs(sheet: &Sheet, systems: &[SystemRows]) -> Result<String, String> {
    let papers: Vec<_> =
        sheet.paper.iter().map(|paper| json!({"letter": paper.letter, "title": paper.title})).collect();
    let systems: Vec<_> = systems.iter().map(SystemRows::json).collect();
    serde_json::to_string_pretty(&json!({"papers": papers, "systems": systems}))
        .map_err(|error| error.to_string())
}

fn write(root: &Path, file: &str, text: &str) -> Result<(), String> {
    fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))
}
