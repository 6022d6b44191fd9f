//! `staunch lab report`: what was measured once, drawn again.
//!
//! It must never measure, nor show a file of another form.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use staunch_lab::results::{Results, SCHEMA};
use staunch_loadgen::report::words;

use super::{markdown, page, table};
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
    let results = read(&arguments.file)?;
    if let Some(path) = &arguments.html {
        return Sink::open(path)?.write(&page::page(&results));
    }
    let text = if arguments.markdown { markdown::markdown(&results) } else { table::table(&results) };
    // Nobody reading is no reason to fail.
    let _ = Sink::open(Path::new("-"))?.write(&text);
    Ok(())
}

fn read(path: &Path) -> Result<Results, String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    let mut value: Value =
        serde_json::from_str(&text).map_err(|error| format!("{name}: is no JSON: {error}"))?;
    match value.get("schema").and_then(Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => {}
        Some(schema) => return Err(format!("{name}: has the form {schema}; this program reads {SCHEMA}")),
        None => return Err(format!("{name}: is nothing that staunch lab run wrote: it has no schema")),
    }
    // From the text first: only so an error says in which line it is.
    serde_json::from_str::<Results>(&text).map_err(|error| format!("{name}: {error}"))?;
    make_harmless(&mut value);
    serde_json::from_value(value).map_err(|error| format!("{name}: {error}"))
}

/// Takes what could move a cursor or change colours out of all words: they go to a terminal.
fn make_harmless(value: &mut Value) {
    match value {
        Value::String(words) => *words = words::harmless(words),
        Value::Array(all) => all.iter_mut().for_each(make_harmless),
        Value::Object(fields) => fields.values_mut().for_each(make_harmless),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
