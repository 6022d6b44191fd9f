//! Plans: which models are asked what, how often, as a file says it.
//!
//! It owns the form of that file (TOML) and says what is wrong with one: file, line, column, fault, and what
//! was probably meant. It must never measure.
//!
//! A plan is a few lines about all of it, and entries `[[row]]`. An entry may give lists: it stands for every
//! combination of what they hold. A combination that came before is not measured again.

mod document;
mod entry;

use std::collections::HashSet;

use crate::results::Row;
use document::{Fault, Keys};
use entry::RowEntry;

/// More faults than this at once nobody reads.
const FAULTS_SHOWN_MAX: usize = 20;

/// Rounds beyond this tell no more.
const ROUNDS_MAX: u64 = 1_000;

/// Rounds when nobody says how many.
const ROUNDS_DEFAULT: u64 = 3;

/// What is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The name of a plan that comes with the program, else the file.
    pub name: String,
    /// How often every row is measured.
    pub rounds: u64,
    /// What loops are multiplied by.
    pub scale: f64,
    /// The rows with their loops as written, in their order.
    pub rows: Vec<Row>,
}

/// Plans that come with the program: names and files.
pub const BUNDLED: [(&str, &str); 3] = [
    ("paper", include_str!("../plans/paper.toml")),
    ("quick", include_str!("../plans/quick.toml")),
    ("full", include_str!("../plans/full.toml")),
];

impl Plan {
    /// A plan that comes with the program.
    pub fn bundled(name: &str) -> Option<Self> {
        let (name, text) = BUNDLED.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// The plan that a file holds.
    ///
    /// # Errors
    /// A line for each fault, with its place in front.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut faults = Vec::new();
        let plan = read(name, text, &mut faults);
        match plan {
            Some(plan) if faults.is_empty() => Ok(plan),
            _ => Err(sentences(name, text, faults)),
        }
    }

    /// The rows with their loops multiplied by the scale; at least one is left.
    pub fn scaled_rows(&self) -> Vec<Row> {
        let scaled = |loops: u64| (loops as f64 * self.scale).round().max(1.0) as u64;
        self.rows.iter().map(|row| Row { loops: scaled(row.loops), ..row.clone() }).collect()
    }
}

/// What to say about the name of a plan, or of a file that is not there.
pub fn unknown_name(name: &str) -> String {
    let names = BUNDLED.iter().map(|(name, _)| *name);
    document::unknown("plan", name, names)
}

fn read(name: &str, text: &str, faults: &mut Vec<Fault>) -> Option<Plan> {
    let table = document::parse(text, faults)?;
    let mut top = Keys::new(&table, faults);
    let rounds = top.number("rounds", 1..=ROUNDS_MAX).unwrap_or(ROUNDS_DEFAULT);
    let scale = top.factor("scale").unwrap_or(1.0);
    let entries = top.tables("row");
    top.refuse_others();
    if entries.is_empty() && faults.is_empty() {
        let text = "no rows: write for example `[[row]]`, and below `model = \"prefork\"`".to_owned();
        faults.push(Fault { place: 0, text });
    }
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for (place, table) in entries {
        let Some(entry) = RowEntry::read(place, table, faults) else { continue };
        rows.extend(entry.rows().into_iter().filter(|row| seen.insert(row.clone())));
    }
    Some(Plan { name: name.to_owned(), rounds, scale, rows })
}

/// The faults in the order of the file, each with its place.
fn sentences(name: &str, text: &str, mut faults: Vec<Fault>) -> String {
    faults.sort_by_key(|fault| fault.place);
    let sentence = |fault: &Fault| {
        let (line, column) = document::line_and_column(text, fault.place);
        format!("{name}:{line}:{column}: {}", fault.text)
    };
    let mut lines: Vec<String> = faults.iter().take(FAULTS_SHOWN_MAX).map(sentence).collect();
    if faults.len() > FAULTS_SHOWN_MAX {
        lines.push(format!("and {} more", faults.len() - FAULTS_SHOWN_MAX));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
