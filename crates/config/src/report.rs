//! What was read, and what was wrong, for people.

use std::fmt::{self, Write as _};

use crate::group::Group as _;
use crate::groups::Content;
use crate::key::Form;
use crate::node::Node;
use crate::reader::{Fault, GivenKey, Origin};
use crate::sources::File;

/// More faults than this at once nobody reads.
const FAULTS_SHOWN_MAX: usize = 20;

/// Values that stand under one heading of a file.
#[derive(Debug, Clone)]
pub struct Section {
    /// Nothing for the top, else `site`, `path` or `site.path`.
    pub title: String,
    /// Each value, in the order of the keys.
    pub entries: Vec<GivenKey>,
}

/// Everything that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    lines: Vec<String>,
    only_flags: bool,
}

impl Faults {
    pub(crate) fn new(mut faults: Vec<Fault>, file: Option<&File>) -> Self {
        faults.sort_by_key(|fault| fault.place);
        let only_flags = faults.iter().all(|fault| fault.origin == Origin::Flag);
        let mut lines: Vec<String> = faults.iter().map(|fault| sentence(fault, file)).collect();
        lines.dedup();
        let more = lines.len().saturating_sub(FAULTS_SHOWN_MAX);
        lines.truncate(FAULTS_SHOWN_MAX);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        Self { lines, only_flags }
    }

    /// The faults, each in a sentence with its place in front.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Whether the command line alone is to blame.
    pub fn only_flags(&self) -> bool {
        self.only_flags
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines.join("\n"))
    }
}

impl std::error::Error for Faults {}

fn sentence(fault: &Fault, file: Option<&File>) -> String {
    let Fault { key, text, .. } = fault;
    match (fault.origin, file) {
        (Origin::Flag, _) => format!("{}: {text}", flag_of(key)),
        (Origin::Environment, _) => format!("STAUNCH_{}: {text}", key.to_uppercase()),
        (Origin::File(start), Some(file)) => {
            let colon = if key.is_empty() { "" } else { ": " };
            file.sentence(fault.place.unwrap_or(start), &format!("{key}{colon}{text}"))
        }
        _ => format!("{key}: {text}"),
    }
}

/// What a key is called on the command line.
fn flag_of(name: &str) -> String {
    match Content::KEYS.iter().find(|key| key.name == name && key.form == Form::Argument) {
        Some(key) => (key.word)(),
        None => format!("--{}", name.replace('_', "-")),
    }
}

/// Where a value comes from, as a comment says it.
fn origin_of(entry: &GivenKey, file: Option<&File>) -> String {
    match (entry.origin, file) {
        (Origin::Flag, _) => flag_of(entry.key.name),
        (Origin::Environment, _) => entry.key.variable(),
        (Origin::File(place), Some(file)) => {
            let (name, line, _) = file.locate(place);
            format!("file {name}:{line}")
        }
        _ => "default".into(),
    }
}

/// The settings as a file, each value with its origin beside it.
pub fn show(sections: &[Section], file: Option<&File>) -> String {
    let mut out = String::new();
    for section in sections {
        if !section.title.is_empty() {
            let _ = writeln!(out, "\n[[{}]]", section.title);
        }
        let line = |entry: &GivenKey| {
            let value = format!("{} = {}", entry.key.name, entry.value.to_toml());
            (value, origin_of(entry, file))
        };
        let lines: Vec<(String, String)> = section.entries.iter().map(line).collect();
        let width =
            lines.iter().map(|(value, _)| value.chars().count()).filter(|&width| width <= WIDTH_MAX).max();
        let width = width.unwrap_or(0);
        for (value, origin) in lines {
            let _ = writeln!(out, "{value:width$}  # {origin}");
        }
    }
    out
}

/// Longer values push their comment to the right instead of everybody's.
const WIDTH_MAX: usize = 48;

/// Name of the key, value, and where the value comes from.
pub fn describe<'a>(entry: &'a GivenKey, file: Option<&File>) -> (&'static str, &'a Node, String) {
    (entry.key.name, &entry.value, origin_of(entry, file))
}
