//! `staunch config`: the settings as they are, and the page that tells about all of them.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use staunch_config::node::{Node, ValueKind};
use staunch_config::{Config, File, reference};
use staunch_program::{Failure, output};
use staunch_service::config::of_faults;

use super::arguments::Flags;

/// What is asked.
#[derive(Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// The settings with these flags, the environment and the file, each with its origin
    Show(Box<Show>),
    /// A file to begin with, commented
    Example,
    /// Every key with its meaning, as Markdown
    Reference,
}

#[derive(Args)]
struct Show {
    #[command(flatten)]
    flags: Flags,

    /// Print JSON instead of TOML
    #[arg(long)]
    json: bool,
}

/// Answers on standard output.
///
/// # Errors
/// The settings are wrong.
pub(crate) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    let text = match &command.question {
        Question::Reference => reference::markdown(),
        Question::Example => reference::EXAMPLE.to_owned(),
        Question::Show(show) => {
            let sources = show.flags.0.or_service().sources()?;
            let config = staunch_config::read(&sources).map_err(|faults| of_faults(&faults))?;
            if show.json {
                format!("{:#}\n", as_json(&config, sources.file.as_ref()))
            } else {
                staunch_config::show(&config.sections, sources.file.as_ref())
            }
        }
    };
    output::print(&text);
    Ok(())
}

/// As the file would be, with `value` and `origin` in the place of each value.
fn as_json(config: &Config, file: Option<&File>) -> Value {
    let mut sections: Vec<(&str, Map<String, Value>)> = Vec::new();
    for section in &config.sections {
        let entry = |entry| {
            let (name, value, origin) = staunch_config::describe(entry, file);
            (name.to_owned(), json!({ "value": value_of(value), "origin": origin }))
        };
        sections.push((&section.title, section.entries.iter().map(entry).collect()));
    }
    let mut sections = sections.into_iter();
    let mut top = sections.next().map_or_else(Map::new, |(_, entries)| entries);
    for (title, entries) in sections {
        match title {
            "site.path" => {
                let sites = top.get_mut("site").and_then(Value::as_array_mut);
                if let Some(site) = sites.and_then(|sites| sites.last_mut()).and_then(Value::as_object_mut) {
                    append(site, "path", entries);
                }
            }
            title => append(&mut top, title, entries),
        }
    }
    Value::Object(top)
}

fn append(table: &mut Map<String, Value>, name: &str, entries: Map<String, Value>) {
    if let Some(list) = table.entry(name).or_insert_with(|| json!([])).as_array_mut() {
        list.push(Value::Object(entries));
    }
}

fn value_of(node: &Node) -> Value {
    match &node.kind {
        ValueKind::Text(text) => json!(text),
        ValueKind::Secret(_) | ValueKind::Other => json!("***"),
        ValueKind::Number(number) => {
            number.parse::<u64>().map_or_else(|_| json!(number), |number| json!(number))
        }
        ValueKind::Switch(switch) => json!(switch),
        ValueKind::List(items) => items.iter().map(value_of).collect(),
        ValueKind::Table(entries) => {
            Value::Object(entries.iter().map(|(name, value)| (name.text.clone(), value_of(value))).collect())
        }
    }
}
