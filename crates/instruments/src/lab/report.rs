//! `staunch lab report`: what was measured once, drawn again.
//!
//! It must never measure.
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use staunch_lab::report;

use crate::load::Sink;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What `staunch lab run --json` wrote
    #[arg(value_name = "FILE.json")]
    file: PathBuf,

    /// Write a page with plots that needs nothing else, in place of the table
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,

    /// Print Markdown for a document, in place of the table
    #[arg(long, conflicts_with = "html")]
    markdown: bool,
}

/// Draws it.
///
/// # Errors
/// The file cannot be read or is of another form; the page cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let name = arguments.file.display().to_string();
    let text = fs::read_to_string(&arguments.file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let results = report::read(&name, &text)?;
    if let Some(path) = &arguments.html {
        return Sink::open(path)?.write(&report::page(&results));
    }
    let text = if arguments.markdown {
        report::markdown(&results)
    } else {
        report::table(&results, console::colors_enabled())
    };
    // A reader that is gone is no reason to fail.
    let _ = Sink::open(Path::new("-"))?.write(&text);
    Ok(())
}
