//! Rows of the page: what the sheet says, with the figures that runs have.
//!
//! A row owns the ratio, and what stands for a figure that is not there. It must never render.

use std::path::Path;

use serde_json::{Value, json};

use super::evidence::command_of_test;
use super::reading::{OurFigure, RunFiles};
use super::sheet::{Comparison, Sheet, System};
use super::words::number;

/// A system with its rows.
pub(super) struct SystemRows {
    pub(super) number: u32,
    pub(super) paper: String,
    pub(super) name: String,
    pub(super) cause: String,
    /// Tests, and the commands that run them.
    pub(super) tests: Vec<(String, String)>,
    pub(super) rows: Vec<PageRow>,
}

/// The evidence of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Evidence {
    /// A run, by its name.
    Run(String),
    /// Tests of the system.
    Tests,
    /// Nothing yet: the command that would measure it.
    NotRun(String),
    /// Nothing yet, and no command measures it: why.
    Lacks(String),
}

/// A row of the table, as it is rendered.
pub(super) struct PageRow {
    pub(super) what: String,
    pub(super) paper: Option<f64>,
    pub(super) says: Option<String>,
    pub(super) unit: String,
    pub(super) at: Option<String>,
    pub(super) ours: Option<OurFigure>,
    pub(super) same: bool,
    pub(super) evidence: Evidence,
}

/// All systems in their order.
///
/// # Errors
/// A place that its run has not, a test that is not there, units that differ.
pub(super) fn systems(root: &Path, sheet: &Sheet, results: &RunFiles) -> Result<Vec<SystemRows>, String> {
    let mut systems = Vec::new();
    for system in &sheet.system {
        let rows = one(root, system, sheet, results);
        systems.push(rows.map_err(|error| format!("system {}: {error}", system.number))?);
    }
    systems.sort_by_key(|system| system.number);
    Ok(systems)
}

fn one(root: &Path, system: &System, sheet: &Sheet, results: &RunFiles) -> Result<SystemRows, String> {
    let test = |test: &String| Ok((test.clone(), command_of_test(root, test)?));
    let tests = system.tests.iter().map(test).collect::<Result<Vec<_>, String>>()?;
    let row = |figure| PageRow::of(figure, sheet, results);
    let mut rows = system.figure.iter().map(row).collect::<Result<Vec<_>, String>>()?;
    if rows.is_empty() {
        rows.push(PageRow::by_tests(&system.name));
    }
    let (paper, name, cause) = (system.paper.clone(), system.name.clone(), system.cause.clone());
    Ok(SystemRows { number: system.number, paper, name, cause, tests, rows })
}

impl PageRow {
    fn of(figure: &Comparison, sheet: &Sheet, results: &RunFiles) -> Result<Self, String> {
        let fault = |what: String| format!("figure `{}`: {what}", figure.what);
        let ours =
            figure.ours.as_ref().map(|place| results.read(place)).transpose().map_err(fault)?.flatten();
        let evidence = match (&figure.ours, &figure.lacks) {
            (Some(place), _) if ours.is_some() => Evidence::Run(place.run.clone()),
            (Some(place), _) => Evidence::NotRun(sheet.run[&place.run].command.clone()),
            (None, Some(why)) => Evidence::Lacks(why.clone()),
            (None, None) => Evidence::Tests,
        };
        let unit_of_ours = ours.as_ref().map_or("", |ours| &ours.unit);
        if figure.same && !unit_of_ours.is_empty() && unit_of_ours != figure.unit {
            return Err(fault(format!("in `{}` there, in `{unit_of_ours}` here", figure.unit)));
        }
        Ok(Self {
            what: figure.what.clone(),
            paper: figure.paper,
            says: figure.says.clone(),
            unit: figure.unit.clone(),
            at: figure.at.clone(),
            ours,
            same: figure.same,
            evidence,
        })
    }

    /// The row of a system that has no figure.
    fn by_tests(name: &str) -> Self {
        Self {
            what: name.to_owned(),
            paper: None,
            says: None,
            unit: String::new(),
            at: None,
            ours: None,
            same: false,
            evidence: Evidence::Tests,
        }
    }

    /// Ours by the paper's, where both are the same quantity.
    pub(super) fn ratio(&self) -> Option<f64> {
        Some(self.ours.as_ref()?.median / self.paper?).filter(|_| self.same)
    }

    /// The paper's figure in words.
    pub(super) fn theirs(&self) -> String {
        match (&self.says, self.paper) {
            (Some(says), _) => says.clone(),
            (None, Some(paper)) => with_unit(number(paper), &self.unit),
            (None, None) => String::new(),
        }
    }

    /// Our figure in words, with its range, or what stands for it.
    pub(super) fn ours_text(&self) -> String {
        let Some(ours) = &self.ours else {
            let said = match self.evidence {
                Evidence::Tests => "by test",
                Evidence::Lacks(_) => "no command yet",
                Evidence::Run(_) | Evidence::NotRun(_) => "not run",
            };
            return said.to_owned();
        };
        let unit = if ours.unit.is_empty() { &self.unit } else { &ours.unit };
        let (least, most) = (number(ours.least), number(ours.most));
        let range = if least == most { String::new() } else { format!(" ({least} to {most})") };
        with_unit(number(ours.median), unit) + &range
    }

    fn json(&self) -> Value {
        let (evidence, by) = match &self.evidence {
            Evidence::Run(name) => ("run", name.as_str()),
            Evidence::Tests => ("tests", ""),
            Evidence::NotRun(command) => ("not run", command.as_str()),
            Evidence::Lacks(why) => ("lacks", why.as_str()),
        };
        let ours = self.ours.as_ref().map(|ours| json!([ours.median, ours.least, ours.most]));
        json!({"what": self.what, "paper": self.paper, "says": self.says, "unit": self.unit, "at": self.at,
            "ours": ours, "ratio": self.ratio(), "evidence": evidence, "by": by})
    }
}

impl SystemRows {
    /// The system for programs.
    pub(super) fn json(&self) -> Value {
        let tests: Vec<Value> =
            self.tests.iter().map(|(test, command)| json!({"test": test, "command": command})).collect();
        let rows: Vec<Value> = self.rows.iter().map(PageRow::json).collect();
        json!({"number": self.number, "paper": self.paper, "name": self.name, "cause": self.cause,
            "tests": tests, "rows": rows})
    }
}

fn with_unit(number: String, unit: &str) -> String {
    match unit {
        "" => number,
        "%" => format!("{number} %"),
        unit if unit.starts_with('/') => number + unit,
        unit => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(paper: Option<f64>, ours: Option<[f64; 3]>, same: bool) -> PageRow {
        let reading =
            |[least, median, most]: [f64; 3]| OurFigure { median, least, most, unit: "us".to_owned() };
        PageRow {
            paper,
            ours: ours.map(reading),
            same,
            evidence: Evidence::NotRun("make one".to_owned()),
            ..PageRow::by_tests("w")
        }
    }

    #[test]
    fn only_the_same_quantity_has_a_ratio() {
        assert_eq!(row(Some(8.0), Some([1.0, 2.0, 3.0]), true).ratio(), Some(0.25));
        assert_eq!(row(Some(8.0), Some([1.0, 2.0, 3.0]), false).ratio(), None);
        assert_eq!(row(None, Some([1.0, 2.0, 3.0]), true).ratio(), None);
        assert_eq!(row(Some(8.0), None, true).ratio(), None);
    }

    #[test]
    fn figures_are_told_with_unit_and_range() {
        assert_eq!(row(None, Some([1.0, 2.0, 3.0]), true).ours_text(), "2 us (1 to 3)");
        assert_eq!(row(None, Some([2.0; 3]), true).ours_text(), "2 us");
        assert_eq!(row(None, None, true).ours_text(), "not run");
        assert_eq!(PageRow::by_tests("w").ours_text(), "by test");
        assert_eq!(
            PageRow { says: Some("> 293 us".to_owned()), ..row(Some(293.0), None, true) }.theirs(),
            "> 293 us"
        );
        assert_eq!(with_unit(number(134.7), "%"), "135 %");
        assert_eq!(with_unit(number(46_000.0), "/s"), "46 000/s");
    }

    #[test]
    fn what_was_not_run_says_so_with_its_command() {
        let text = "[run.one]\ncommand = 'make one'\nminutes = 1\n[[paper]]\nletter = 'A'\ntitle = ''\n\
            source = ''\nmachine = ''\n[[system]]\nnumber = 1\npaper = 'A'\nname = ''\ncause = ''\n\
            [[system.figure]]\nwhat = 'w'\nunit = 's'\npaper = 2\nsame = true\n\
            ours = { run = 'one', pointer = '/a' }";
        let sheet: Sheet = toml::from_str(text).expect("a sheet");
        let row = |results: &RunFiles| PageRow::of(&sheet.system[0].figure[0], &sheet, results);
        let empty = row(&RunFiles::default()).expect("a row");
        assert_eq!((empty.ours_text().as_str(), empty.ratio()), ("not run", None));
        assert_eq!(empty.evidence, Evidence::NotRun("make one".to_owned()));
        let run = RunFiles([("one".to_owned(), json!({"a": 3}))].into());
        let full = row(&run).expect("a row");
        assert_eq!((full.ratio(), full.evidence), (Some(1.5), Evidence::Run("one".to_owned())));
        let other = RunFiles([("one".to_owned(), json!({"b": 3}))].into());
        assert!(row(&other).is_err_and(|error| error.contains("figure `w`: run `one`: no number")));
    }
}
