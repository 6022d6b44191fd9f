//! `cargo xtask count`: instructions per request of the kernel's modules, of the whole emulated machine.
//!
//! It owns `bench/kernel-instructions.json`, what was recorded last. The machine's clock counts instructions
//! (`guest`, counted), and the program `kernel-count` in it asks each server for N, 2 N and 3 N requests: the
//! differences, divided by N, know nothing of beginnings. A figure is given only where both differences agree
//! and a loop beside them costs the same before and after; else the run is an error. The client is counted
//! with the server. Cache misses and the cost of faults that processors have are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum as _};

use crate::guest::{Machine, Module, Series};
use crate::install::succeed;
use crate::running::{cargo, target};

/// What was recorded, by kernel and then by row.
const RECORD: &str = "bench/kernel-instructions.json";
/// A figure may rise by this factor before the gate fails.
const GROWTH_MAX: f64 = 1.01;
/// The two differences of a row may be so far apart: over connections that are kept, and where each request
/// has its own.
const APART_KEPT_MAX: f64 = 0.005;
const APART_NEW_MAX: f64 = 0.03;
/// Canaries may be so far apart: the kernel's clock ticks in them, too.
const APART_CANARIES_MAX: f64 = 0.02;
/// What a connection may cost that khttpd hands over, beside one that the server accepts itself.
const HANDED_OVER_MAX: f64 = 1.15;
/// A listing from the cache has to cost less than one that is read, by this factor: 10 866 requests a second
/// for 2 135 is what a paper has of it.
const LISTED_MIN: f64 = 5.0;
/// A listing that is sent in pieces has to cost more than one that is sent whole, by this factor at so many
/// names: a paper has 85 % more requests by sending whole, of about so many.
const PIECES_MIN: f64 = 1.5;
const PIECES_NAMES: &str = "30";
/// The program that tells the scheduler of the client.
const CHRT: &str = "/usr/bin/chrt";
/// A machine that is not done by then hangs.
const SECONDS_MAX: u32 = 1800;

/// What to count.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel: a package of Debian
    #[arg(long, value_enum, default_value = "6.1")]
    kernel: Series,
    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail where a figure has risen by more than 1 % over bench/kernel-instructions.json, or is not there
    #[arg(long, conflicts_with = "record")]
    gate: bool,
    /// Make these the figures that later runs are judged by; where servers are named, theirs alone
    #[arg(long)]
    record: bool,
    /// Only these: kecho, khttpd, staunch, behind (staunch behind khttpd), listing (khttpd's, of 30 files),
    /// whole and pieces (khttpd's, sent in one call and in one for each line), timers (khttpd's other ways to
    /// keep deadlines)
    servers: Vec<String>,
}

/// Figures by row: server, mode, and whether connections are kept or new.
type Rows = BTreeMap<String, f64>;

/// Counts, prints a table, and judges it if that is asked for.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match count(root, arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("count: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no figure has risen.
fn count(root: &Path, arguments: &Arguments) -> Result<bool, String> {
    let mut said = Vec::new();
    let machine = machine(root, arguments.kernel)?;
    let script = format!("exec kernel-count {}", arguments.servers.join(" "));
    let ended = machine.run(root, &script, |line| said.push(line.to_owned()))?;
    if ended.status != 0 {
        return Err(format!("kernel-count ended with {}\n{}", ended.status, said.join("\n")));
    }
    let rows = rows(said.iter().map(String::as_str))?;
    let mut recorded = recorded(root)?;
    let series = arguments.kernel.to_possible_value().map_or_else(String::new, |name| name.get_name().into());
    let before = recorded.get(&series).cloned().unwrap_or_default();
    let risen = print(&series, &rows, &before);
    let judged = [handed_over(&rows), listed(&rows), sent(&rows)].concat();
    judged.iter().for_each(|line| println!("{line}"));
    if let Some(file) = &arguments.json {
        write(file, &BTreeMap::from([(series.clone(), rows.clone())]))?;
    }
    if arguments.record {
        record(&mut recorded, series, rows, arguments.servers.is_empty());
        write(&root.join(RECORD), &recorded)?;
    } else if arguments.gate {
        are_recorded(&rows, &before).map_err(|error| format!("{RECORD}: {series}: {error}"))?;
    }
    Ok(!arguments.gate || risen == 0)
}

/// Takes rows of a kernel into the record: in place of what it has of that kernel, or of these rows.
/// Whether there is something to judge each row by.
fn are_recorded(rows: &Rows, recorded: &Rows) -> Result<(), String> {
    let unknown: Vec<&str> =
        rows.keys().filter(|name| !recorded.contains_key(*name)).map(String::as_str).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(format!("no figure of {}: --record makes them", unknown.join(", "))),
    }
}

fn record(recorded: &mut BTreeMap<String, Rows>, series: String, rows: Rows, is_whole: bool) {
    let kept = recorded.entry(series).or_default();
    if is_whole {
        kept.clear();
    }
    kept.extend(rows);
}

fn machine(root: &Path, kernel: Series) -> Result<Machine, String> {
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--profile",
        "fast",
        "--workspace",
        "--bin",
        "kernel-count",
        "--bin",
        "staunch",
    ]);
    succeed(build.arg("--manifest-path").arg(root.join("Cargo.toml")))?;
    let built = target(root).join("fast");
    let module = |name: &str| Module { name: name.to_owned(), define: None, parameters: None };
    Ok(Machine {
        kernel,
        programs: vec![built.join("kernel-count"), built.join("staunch"), CHRT.into()],
        modules: ["kecho", "khttpd"].map(module).into(),
        stock: Vec::new(),
        cards: &[],
        processors: 1,
        memory_mib: 2048,
        words: String::new(),
        files: Vec::new(),
        counted: true,
        seconds: SECONDS_MAX,
    })
}

/// Figures from what the program said.
fn rows<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Rows, String> {
    let mut runs: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut canaries = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{line:?}: {error}"));
        match words[..] {
            ["canary", spent] => canaries.push(number(spent)?),
            ["count", server, mode, work, requests, spent] => runs
                .entry(format!("{server} {mode} {work}"))
                .or_default()
                .push((number(requests)?, number(spent)?)),
            _ => return Err(format!("not understood: {line:?}")),
        }
    }
    let (least, most) = extremes(&canaries);
    if canaries.is_empty() || apart(least, most) > APART_CANARIES_MAX {
        return Err(format!("something ran beside what was counted: a loop cost {least} and {most}"));
    }
    runs.into_iter().map(|(name, runs)| Ok((name.clone(), slope(&name, &runs)?))).collect()
}

/// Instructions per request, from three runs of a row.
fn slope(name: &str, runs: &[(f64, f64)]) -> Result<f64, String> {
    let &[once, twice, thrice] = runs else { return Err(format!("{name}: {} runs, not 3", runs.len())) };
    let between = |less: (f64, f64), more: (f64, f64)| (more.1 - less.1) / (more.0 - less.0);
    let (first, second) = (between(once, twice), between(twice, thrice));
    let apart_max = if name.ends_with(" kept") { APART_KEPT_MAX } else { APART_NEW_MAX };
    if apart(first, second) > apart_max {
        return Err(format!("{name}: no figure, {first:.0} and {second:.0} are too far apart"));
    }
    Ok(between(once, thrice).round())
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)))
}

/// How far two figures are apart, as a part of the greater one.
fn apart(one: f64, other: f64) -> f64 {
    (one - other).abs() / one.max(other)
}

/// Prints the table; gives how many figures have risen.
fn print(series: &str, rows: &Rows, recorded: &Rows) -> usize {
    println!("Linux {series}: instructions per request, of the whole machine, its client included");
    println!("{:<28} {:>12} {:>12}", "server, mode, connections", "now", "recorded");
    let mut risen = 0;
    for (name, now) in rows {
        let before = recorded.get(name);
        let is_risen = before.is_some_and(|before| *now > before * GROWTH_MAX);
        risen += usize::from(is_risen);
        let before = before.map_or_else(|| "-".to_owned(), |before| format!("{before:.0}"));
        println!("{name:<28} {now:>12.0} {before:>12}{}", if is_risen { "  risen" } else { "" });
    }
    risen
}

/// What a connection costs that khttpd hands over, beside one that the server accepts itself: a line for each
/// way to the network.
fn handed_over(rows: &Rows) -> Vec<String> {
    let line = |io: &&str| {
        let new = |server: &str| rows.get(&format!("{server} {io} new"));
        let factor = new("behind")? / new("staunch")?;
        let verdict = if factor > HANDED_OVER_MAX { "missed" } else { "kept" };
        Some(format!("{io}: handed over {factor:.3} of accepted there; bar {HANDED_OVER_MAX}: {verdict}"))
    };
    ["epoll", "uring"].iter().filter_map(line).collect()
}

/// The instructions of a listing that is read for each answer, beside one from the cache: a line for each
/// mode.
fn listed(rows: &Rows) -> Vec<String> {
    let line = |mode: &&str| {
        let cost = |mode: &str| rows.get(&format!("listing {mode} kept"));
        let factor = cost("streamed")? / cost(mode)?;
        let verdict = if factor < LISTED_MIN { "missed" } else { "kept" };
        Some(format!("{mode}: a listing read anew {factor:.2} of one kept; bar {LISTED_MIN}: {verdict}"))
    };
    ["ready", "softirq"].iter().filter_map(line).collect()
}

/// The instructions of a listing that is sent in pieces, beside one that is sent whole: a line for each
/// number of names.
fn sent(rows: &Rows) -> Vec<String> {
    let line = |names: &&str| {
        let cost = |server: &str| rows.get(&format!("{server} {names} kept"));
        let factor = cost("pieces")? / cost("whole")?;
        let verdict = match (*names == PIECES_NAMES, factor < PIECES_MIN) {
            (false, _) => String::new(),
            (true, true) => format!("; bar {PIECES_MIN}: missed"),
            (true, false) => format!("; bar {PIECES_MIN}: kept"),
        };
        Some(format!("{names} names: in pieces {factor:.2} of whole{verdict}"))
    };
    ["1", "10", PIECES_NAMES].iter().filter_map(line).collect()
}

fn recorded(root: &Path) -> Result<BTreeMap<String, Rows>, String> {
    match fs::read_to_string(root.join(RECORD)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{RECORD}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("{RECORD}: {error}")),
    }
}

fn write(file: &Path, figures: &BTreeMap<String, Rows>) -> Result<(), String> {
    let text = serde_json::to_string_pretty(figures).map_err(|error| error.to_string())?;
    fs::write(file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str) -> Result<Rows, String> {
        rows(lines.lines())
    }

    #[test]
    fn a_figure_is_a_slope() {
        let lines = "canary 1000\ncount kecho ready kept 10 5300\ncount kecho ready kept 20 5600\n\
            count kecho ready kept 30 5900\ncanary 1001\n";
        assert_eq!(of(lines), Ok(Rows::from([("kecho ready kept".to_owned(), 30.0)])));
    }

    #[test]
    fn a_hand_over_is_judged() {
        let ends = |behind: f64| {
            let rows =
                [("staunch uring new".to_owned(), 100.0), ("behind uring new".to_owned(), behind)].into();
            handed_over(&rows).concat()
        };
        assert!(ends(114.0).ends_with("kept") && ends(116.0).ends_with("missed"));
        assert!(handed_over(&Rows::new()).is_empty());
    }

    #[test]
    fn a_listing_is_judged() {
        let ends = |read: f64| {
            let rows =
                [("listing ready kept".to_owned(), 100.0), ("listing streamed kept".to_owned(), read)].into();
            listed(&rows).concat()
        };
        assert!(ends(501.0).ends_with("kept") && ends(499.0).ends_with("missed"));
        assert!(listed(&Rows::new()).is_empty());
    }

    #[test]
    fn pieces_are_judged() {
        let rows = Rows::from([("whole 30 kept".to_owned(), 100.0), ("pieces 30 kept".to_owned(), 151.0)]);
        assert_eq!(sent(&rows), ["30 names: in pieces 1.51 of whole; bar 1.5: kept"]);
        assert!(sent(&Rows::new()).is_empty());
    }

    #[test]
    fn rows_that_were_not_counted_stay_recorded() {
        let row = |name: &str, number: f64| Rows::from([(name.to_owned(), number)]);
        let mut recorded = BTreeMap::from([("6.1".to_owned(), row("a", 1.0))]);
        record(&mut recorded, "6.1".to_owned(), row("b", 2.0), false);
        assert_eq!(recorded["6.1"], Rows::from([("a".to_owned(), 1.0), ("b".to_owned(), 2.0)]));
        record(&mut recorded, "6.1".to_owned(), row("b", 3.0), true);
        assert_eq!(recorded["6.1"], row("b", 3.0));
    }

    #[test]
    fn a_row_that_was_never_recorded_is_not_judged_well() {
        let row = |name: &str| Rows::from([(name.to_owned(), 1.0)]);
        assert_eq!(are_recorded(&row("a"), &row("a")), Ok(()));
        let judged = are_recorded(&row("b"), &row("a"));
        assert!(judged.is_err_and(|error| error.contains("no figure of b")));
    }

    #[test]
    fn what_is_no_figure_is_told() {
        let bent = "canary 1000\ncount kecho ready kept 10 5300\ncount kecho ready kept 20 5600\n\
            count kecho ready kept 30 5990\n";
        assert!(of(bent).is_err_and(|error| error.contains("too far apart")));
        assert!(of("canary 1000\ncanary 1100\n").is_err_and(|error| error.contains("ran beside")));
        assert!(of("canary 1000\ncount kecho ready kept 10 5300\n").is_err_and(|e| e.contains("1 runs")));
        assert!(of("kernel-count: khttpd wq: broken\n").is_err_and(|error| error.contains("broken")));
    }
}
