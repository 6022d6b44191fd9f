//! What was measured, for people: a table, a page with plots, Markdown, CSV; and the reading of a kept file.
//!
//! It must never measure, judge, or show a file of another form.

mod csv;
#[cfg(test)]
mod made_up;
mod markdown;
mod page;
mod rows;
mod table;
use serde_json::Value;
use staunch_figures::words;

use crate::results::{Results, SCHEMA};

pub use csv::csv;
pub use markdown::markdown;
pub use page::page;
pub use table::table;

/// Reads what `staunch lab run --json` wrote. `name` is the file's, for the errors.
///
/// # Errors
/// It is no JSON, or not of this form.
pub fn read(name: &str, text: &str) -> Result<Results, String> {
    let mut value: Value =
        serde_json::from_str(text).map_err(|error| format!("{name}: is no JSON: {error}"))?;
    match value.get("schema").and_then(Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => {}
        Some(schema) => return Err(format!("{name}: has the form {schema}; this program reads {SCHEMA}")),
        None => return Err(format!("{name}: is nothing that staunch lab run wrote: it has no schema")),
    }
    // From the text first: only so an error says in which line it is.
    serde_json::from_str::<Results>(text).map_err(|error| format!("{name}: {error}"))?;
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
