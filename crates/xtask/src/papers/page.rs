//! The page `docs/papers.md`: a table for each paper, what differs today below it, and the runs at the end.
//!
//! The module owns the form of the page. It must never read a file: rows come with their figures.

use std::collections::BTreeMap;

use super::rows::{Evidence, PageRow, SystemRows};
use super::sheet::Paper;
use super::words::{number, table, wrapped};

const HEAD: [&str; 6] = ["no", "what", "the paper", "ours", "ours / paper", "from"];
const RIGHT: [bool; 6] = [true, false, true, true, true, false];

/// The words about a run at the end of the page.
pub(super) struct RunLine {
    pub(super) machine: String,
    pub(super) command: String,
    pub(super) was_run: bool,
}

/// The whole page.
pub(super) fn page(papers: &[Paper], systems: &[SystemRows], runs: &BTreeMap<String, RunLine>) -> String {
    let mut text = introduction(systems);
    for paper in papers {
        let own: Vec<&SystemRows> = systems.iter().filter(|system| system.paper == paper.letter).collect();
        text += &format!("\n## {}. {}\n\n", paper.letter, paper.title);
        text += &wrapped(&format!("{} Measured there on {}", paper.source, paper.machine));
        text.push('\n');
        text += &table(&HEAD, &RIGHT, &own.iter().flat_map(|system| cells(system)).collect::<Vec<_>>());
        own.iter().for_each(|system| text += &format!("\n{}", remark(system)));
    }
    text + &runs_table(runs)
}

fn introduction(systems: &[SystemRows]) -> String {
    let rows = || systems.iter().flat_map(|system| &system.rows);
    let count = |is_meant: fn(&PageRow) -> bool| rows().filter(|row| is_meant(row)).count();
    let measured = count(|row| row.ours.is_some());
    let compared = count(|row| row.ratio().is_some());
    let open = count(|row| matches!(row.evidence, Evidence::NotRun(_) | Evidence::Lacks(_)));
    let say = format!(
        "Staunch comes from five papers. Here are the {} systems that they describe, each with the paper's \
         figure and ours. A program makes this page of `bench/papers.toml` and of kept runs \
         (`cargo xtask papers`), so no figure of ours was typed: {measured} were measured or counted, \
         {compared} of them are the same quantity as the paper's and have a ratio, and {open} rows have no \
         figure: they say `not run`, with the command that would run them, or `no command yet`. \
         `by test` is a property without a figure; the tests that prove it are named below the table.",
        systems.len()
    );
    let how = "Figures are medians of rounds, with the smallest and the largest round in brackets. What was \
        run in an emulated machine was counted, in instructions, and never timed. Two of our processors are \
        no eight of theirs: a ratio says what it says on these machines, and the remarks say where the cause \
        is another one today. `make papers` runs all of it again and writes `bench/runs/papers.md`.";
    format!("# The five papers, figure by figure\n\n{}\n{}", wrapped(&say), wrapped(how))
}

fn cells(system: &SystemRows) -> Vec<Vec<String>> {
    let first = |index: usize| if index == 0 { system.number.to_string() } else { String::new() };
    let row = |(index, row): (usize, &PageRow)| {
        vec![first(index), row.what.clone(), row.theirs(), row.ours_text(), ratio_text(row), from(row)]
    };
    system.rows.iter().enumerate().map(row).collect()
}

fn ratio_text(row: &PageRow) -> String {
    row.ratio().map(number).unwrap_or_default()
}

fn from(row: &PageRow) -> String {
    match &row.evidence {
        Evidence::Run(name) => format!("`{name}`"),
        Evidence::Tests => "tests".to_owned(),
        Evidence::NotRun(_) | Evidence::Lacks(_) => String::new(),
    }
}

/// The sentences below the table of a system.
fn remark(system: &SystemRows) -> String {
    let mut places: Vec<&str> = system.rows.iter().filter_map(|row| row.at.as_deref()).collect();
    places.dedup();
    let at = if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
    let mut text = format!("**{}. {}**{at}: {}", system.number, system.name, system.cause);
    for row in &system.rows {
        match &row.evidence {
            Evidence::NotRun(command) => text += &format!(" Not run: {}: `{command}`.", row.what),
            Evidence::Lacks(why) => text += &format!(" Not measured: {}: {why}.", row.what),
            Evidence::Run(_) | Evidence::Tests => {}
        }
    }
    let mut text = wrapped(&text);
    for (test, command) in &system.tests {
        text += &format!("- `{test}`\n  (`{command}`)\n");
    }
    text
}

fn runs_table(runs: &BTreeMap<String, RunLine>) -> String {
    let head = ["run", "machine, day", "command"];
    let line = |(name, run): (&String, &RunLine)| {
        vec![format!("`{name}`"), run.machine.clone(), format!("`{}`", run.command)]
    };
    let rows: Vec<_> = runs.iter().filter(|(_, run)| run.was_run).map(line).collect();
    format!("\n## The runs\n\n{}", table(&head, &[false; 3], &rows))
}

#[cfg(test)]
mod tests {
    use super::super::reading::OurFigure;
    use super::*;

    fn row(what: &str, evidence: Evidence) -> PageRow {
        PageRow {
            what: what.to_owned(),
            paper: Some(4.0),
            says: None,
            unit: "us".to_owned(),
            at: Some("table 1".to_owned()),
            ours: None,
            same: true,
            evidence,
        }
    }

    fn rendered() -> String {
        let paper = |text: &str| toml::from_str::<Paper>(text).expect("a paper");
        let papers = [paper("letter = 'A'\ntitle = 'T'\nsource = 'S.'\nmachine = 'M.'")];
        let ours = OurFigure { median: 1.0, least: 0.5, most: 2.0, unit: "us".to_owned() };
        let rows = vec![
            PageRow { ours: Some(ours), ..row("measured", Evidence::Run("one".to_owned())) },
            row("open", Evidence::NotRun("make two".to_owned())),
            row("nothing", Evidence::Lacks("why".to_owned())),
            row("proved", Evidence::Tests),
        ];
        let (name, cause) = ("N".to_owned(), "the cause.".to_owned());
        let tests = vec![("a.rs::b".to_owned(), "cargo test b".to_owned())];
        let systems = [SystemRows { number: 7, paper: "A".to_owned(), name, cause, tests, rows }];
        let line = |was_run| RunLine { machine: "here".to_owned(), command: "make it".to_owned(), was_run };
        page(&papers, &systems, &[("one".to_owned(), line(true)), ("two".to_owned(), line(false))].into())
    }

    #[test]
    fn a_row_says_what_was_run_and_no_more() {
        let page = rendered();
        let cells = |what: &str| {
            let line = page.lines().find(|line| line.contains(&format!("| {what} "))).expect(what);
            line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cells("measured")[1..7], ["7", "measured", "4 us", "1 us (0.500 to 2)", "0.250", "`one`"]);
        assert_eq!(cells("open")[1..7], ["", "open", "4 us", "not run", "", ""]);
        assert_eq!(cells("nothing")[4], "no command yet");
        assert_eq!(cells("proved")[4..7], ["by test", "", "tests"]);
        assert!(page.contains("1 were measured or counted"), "{page}");
    }

    #[test]
    fn causes_tests_and_commands_stand_below_the_table() {
        let page = rendered();
        assert!(page.contains("**7. N** (table 1): the cause. Not run: open: `make two`."), "{page}");
        assert!(page.contains("Not measured: nothing: why."), "{page}");
        assert!(page.contains("- `a.rs::b`\n  (`cargo test b`)\n"), "{page}");
        assert!(page.contains("| `one` | here         | `make it` |\n") && !page.contains("`two`"), "{page}");
    }
}
