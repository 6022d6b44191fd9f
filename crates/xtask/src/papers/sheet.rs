//! `bench/papers.toml`: what the papers say, and where a figure of ours is read.
//!
//! The module owns the form of that file. It must never hold a figure of ours, and opens no run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// How many systems the papers have together.
pub(super) const SYSTEMS: u32 = 31;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sheet {
    pub(super) paper: Vec<Paper>,
    pub(super) run: BTreeMap<String, Run>,
    pub(super) system: Vec<System>,
}

/// A paper, as the page introduces it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) letter: String,
    pub(super) title: String,
    /// Authors, where it was printed, when.
    pub(super) source: String,
    /// The machine that the paper measured on.
    pub(super) machine: String,
}

/// A measurement by its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// The kept file with its figures; without one it was not run, or not kept.
    pub(super) kept: Option<String>,
    /// The machine, where the file does not name it.
    pub(super) machine: Option<String>,
    /// The command that measures it again.
    pub(super) command: String,
    /// The file where that command leaves its figures, if it takes no `--json FILE`.
    pub(super) result: Option<String>,
    /// How long it takes, roughly.
    pub(super) minutes: u32,
    /// Whether only root can run it.
    #[serde(default)]
    pub(super) root: bool,
}

/// A system of the papers, as its table in the file says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) number: u32,
    /// The letter of its paper.
    pub(super) paper: String,
    pub(super) name: String,
    /// The sentence that says where today's cause differs.
    pub(super) cause: String,
    /// Tests that prove what has no figure: `file::name`.
    #[serde(default)]
    pub(super) tests: Vec<String>,
    #[serde(default)]
    pub(super) figure: Vec<Comparison>,
}

/// A figure of the paper, ours, or both.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Comparison {
    pub(super) what: String,
    /// The paper's figure.
    pub(super) paper: Option<f64>,
    /// The paper's figure as it is printed, where the number alone would say more or less.
    pub(super) says: Option<String>,
    #[serde(default)]
    pub(super) unit: String,
    /// Where in the paper it stands.
    pub(super) at: Option<String>,
    pub(super) ours: Option<FigurePlace>,
    /// Whether both are the same quantity, so that their ratio means something.
    #[serde(default)]
    pub(super) same: bool,
    /// Why no command measures it yet, in place of `ours`.
    pub(super) lacks: Option<String>,
    /// Whether the tests of the system prove it, in place of `ours`.
    #[serde(default)]
    pub(super) by_test: bool,
}

/// Where a figure stands in a run: by server and measure (or promise), and the scenario where several have
/// both; by JSON pointer; or by a row of the laboratory.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigurePlace {
    pub(super) run: String,
    pub(super) scenario: Option<String>,
    pub(super) server: Option<String>,
    pub(super) measure: Option<String>,
    pub(super) promise: Option<String>,
    pub(super) pointer: Option<String>,
    pub(super) model: Option<String>,
    pub(super) children: Option<u64>,
    pub(super) loops: Option<u64>,
    #[serde(default)]
    pub(super) pool: u64,
    /// The divisor of the figure.
    pub(super) over: Option<Box<FigurePlace>>,
}

impl Sheet {
    /// The file's text, read.
    ///
    /// # Errors
    /// A text that is no TOML of this form, with line and key; systems that are missing, doubled, or prove
    /// nothing.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let sheet: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut missing: BTreeSet<u32> = (1..=SYSTEMS).collect();
        for system in &sheet.system {
            let fault = |what: String| format!("system {}: {what}", system.number);
            if !missing.remove(&system.number) {
                return Err(fault(format!("twice, or not one of 1 to {SYSTEMS}")));
            }
            sheet.judge(system).map_err(fault)?;
        }
        match missing.first() {
            Some(number) => Err(format!("system {number}: no row")),
            None => Ok(sheet),
        }
    }

    fn judge(&self, system: &System) -> Result<(), String> {
        if self.paper.iter().all(|paper| paper.letter != system.paper) {
            return Err(format!("there is no paper `{}`", system.paper));
        }
        if system.figure.is_empty() && system.tests.is_empty() {
            return Err("neither `figure` nor `tests`".to_owned());
        }
        system.figure.iter().try_for_each(|figure| {
            self.judge_figure(system, figure).map_err(|what| format!("figure `{}`: {what}", figure.what))
        })
    }

    fn judge_figure(&self, system: &System, figure: &Comparison) -> Result<(), String> {
        if figure.same && (figure.paper.is_none() || figure.ours.is_none()) {
            return Err("`same` needs `paper` and `ours`".to_owned());
        }
        let given = [figure.ours.is_some(), figure.lacks.is_some(), figure.by_test];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            return Err("one of `ours`, `lacks` and `by_test`".to_owned());
        }
        if figure.by_test && system.tests.is_empty() {
            return Err("`by_test` needs `tests`".to_owned());
        }
        figure.ours.iter().flat_map(FigurePlace::all).try_for_each(|place| {
            let known = self.run.contains_key(&place.run);
            if known { Ok(()) } else { Err(format!("there is no run `{}`", place.run)) }
        })
    }
}

impl FigurePlace {
    /// This place, and those that it is divided by.
    pub(super) fn all(&self) -> Vec<&Self> {
        std::iter::successors(Some(self), |place| place.over.as_deref()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A good file: every system by a test, but the first, which has this.
    pub(crate) fn text(first: &str) -> String {
        let head = "[[paper]]\nletter = \"A\"\ntitle = \"t\"\nsource = \"s\"\nmachine = \"m\"\n\
            [run.one]\ncommand = \"make one\"\nminutes = 1\n";
        let system = |number: u32, rest: &str| {
            format!("[[system]]\nnumber = {number}\npaper = \"A\"\nname = \"n\"\ncause = \"c\"\n{rest}\n")
        };
        let others = (2..=SYSTEMS).map(|number| system(number, "tests = [\"a.rs::b\"]"));
        head.to_owned() + &system(1, first) + &others.collect::<String>()
    }

    fn fault(first: &str) -> String {
        Sheet::read(&text(first)).expect_err("a bad file")
    }

    #[test]
    fn thirty_one_systems_are_read() {
        let sheet = Sheet::read(&text("tests = [\"a.rs::b\"]")).expect("a good file");
        assert_eq!(sheet.system.len(), 31);
    }

    #[test]
    fn what_is_no_row_is_named_with_line_and_key() {
        let error = fault("causes = \"c\"");
        assert!(error.contains("line 14") && error.contains("`causes`"), "{error}");
        let error = fault("tests = 3");
        assert!(error.contains("line 14") && error.contains("tests = 3"), "{error}");
        let error = fault("[[system.figure]]\nwhat = \"w\"\nours = { run = \"one\", mesure = \"m\" }");
        assert!(error.contains("line 16") && error.contains("`mesure`"), "{error}");
    }

    #[test]
    fn rows_that_prove_nothing_are_refused() {
        assert!(fault("").contains("system 1: neither"));
        let figure = |rest: &str| fault(&format!("[[system.figure]]\nwhat = \"w\"\n{rest}"));
        assert!(figure("").contains("one of `ours`"));
        assert!(figure("lacks = \"l\"\nby_test = true").contains("one of `ours`"));
        assert!(figure("by_test = true").contains("needs `tests`"));
        assert!(figure("ours = { run = \"two\" }").contains("no run `two`"));
        assert!(figure("ours = { run = \"one\" }\nsame = true").contains("`same` needs"));
        let over = "ours = { run = \"one\", over = { run = \"two\" } }";
        assert!(figure(over).contains("no run `two`"));
        let doubled = text("tests = [\"a.rs::b\"]").replace("number = 31", "number = 30");
        assert!(Sheet::read(&doubled).expect_err("twice").contains("system 30: twice"));
        let short = text("tests = [\"a.rs::b\"]");
        let short = &short[..short.rfind("[[system]]").expect("systems")];
        assert!(Sheet::read(short).expect_err("too few").contains("system 31: no row"));
    }
}
