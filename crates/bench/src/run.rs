//! `cargo xtask bench`: Staunch side by side with the servers people use, and with the floor.
//!
//! It owns the order of a run: build, run the chosen scenarios, print, store. It must never be built into
//! what it measures. Order: [`run`] builds the programs, then each scenario starts its servers, checks their
//! answers, measures, judges its bars; at last the report is printed and stored in `bench/runs/`, which git
//! ignores, or kept under a name in `bench/results/`, if a document is to cite it.
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use staunch_figures::plot::alone;

use crate::building::Wanted;
use crate::machine::CpuTimes;
use crate::report::{Report, ScenarioOutcome};
use crate::scenario::Scenario;
use crate::setting::Setting;
use crate::setup::ServerKind;
use crate::{crowd, machine, page, pressure, scenario, terminal};

/// What is measured, how often, and where the report goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Scenarios; 'tls', 'load', 'gate', 'proxy-cost' for all of these; all but the longest if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How often each server is measured in each scenario
    #[arg(long, default_value_t = Setting::ROUNDS)]
    rounds: u32,
    /// Length of one measurement under load, in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Servers to measure: nginx, lighttpd, h2o, haproxy, caddy, floor, uring, epoll
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    servers: Vec<String>,
    /// A staunch that is already built; without it one is built with --release
    #[arg(long, value_name = "FILE")]
    staunch: Option<PathBuf>,
    /// Keep the report as bench/results/NAME, for a document that cites it
    #[arg(long, value_name = "NAME", value_parser = kept_name)]
    keep: Option<String>,
    /// Measure nothing: show a report that was stored as JSON
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Write the report as JSON here too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as an HTML page here too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the plot of the scenario 'pressure' as SVG here
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// With the scenario 'instructions': record the counts that later runs are judged by
    #[arg(long)]
    record: bool,
    /// Judge only: store no report (for CI, with the scenario 'instructions')
    #[arg(long)]
    gate: bool,
    /// Hold idle connections for the scenarios 'idle' and 'tls-memory'
    #[arg(long, hide = true, value_name = "ADDRESS:PORT,COUNT,SPEECH,PATH")]
    hold: Option<String>,
    /// Hold them over TLS with a server of this certificate
    #[arg(long, hide = true, value_name = "FILE")]
    hold_certificate: Option<PathBuf>,
}

/// Runs the benchmark: 0 when every bar passed, 1 when one was missed or something failed, 2 for a wrong
/// command.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    if let Some(words) = &arguments.hold {
        let certificate = arguments.hold_certificate.as_deref();
        return crowd::hold(words, certificate).map_or_else(fail, |()| ExitCode::SUCCESS);
    }
    if let Some(path) = &arguments.from {
        return show(arguments, path).map_or_else(fail, |()| ExitCode::SUCCESS);
    }
    let (scenarios, kinds) = match (scenario::choose(&arguments.names), choose_servers(&arguments.servers)) {
        (Ok(scenarios), Ok(kinds)) => (scenarios, kinds),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match measure(root, arguments, &scenarios, &kinds) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(error),
    }
}

fn fail(error: String) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

fn choose_servers(words: &[String]) -> Result<Vec<ServerKind>, String> {
    if words.is_empty() {
        return Ok(ServerKind::ALL.to_vec());
    }
    if let Some(word) = words.iter().find(|word| ServerKind::ALL.iter().all(|kind| kind.word() != *word)) {
        let known: Vec<&str> = ServerKind::ALL.iter().map(|kind| kind.word()).collect();
        return Err(format!("there is no server '{word}'; there are {}", known.join(", ")));
    }
    Ok(ServerKind::ALL.into_iter().filter(|kind| words.iter().any(|word| word == kind.word())).collect())
}

/// Whether every bar passed.
fn measure(
    root: &Path,
    arguments: &Arguments,
    scenarios: &[&'static Scenario],
    kinds: &[ServerKind],
) -> Result<bool, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let scratch = target.join("bench");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let mut report = begin_report(arguments, root);
    let wanted = Wanted::new(scenarios, kinds, arguments.staunch.as_deref());
    let programs = wanted.build(root, &target)?;
    report.versions.extend(wanted.versions(&programs));
    let so_far = scratch.join("so-far.json");
    for (index, scenario) in scenarios.iter().enumerate() {
        if !std::io::stderr().is_terminal() {
            eprintln!("{}: {} of {}", scenario.name, index + 1, scenarios.len());
        }
        let setting = Setting {
            root: root.to_path_buf(),
            scratch: scratch.clone(),
            programs: programs.clone(),
            kinds: kinds.to_vec(),
            rounds: arguments.rounds.max(1),
            seconds: arguments.seconds.max(1),
            record: arguments.record,
            progress: Setting::new_bar(scenario.name),
        };
        let before = CpuTimes::read();
        let mut outcome = (scenario.run)(&setting);
        CpuTimes::read().told_of_the_host(&before).into_iter().for_each(|said| outcome.disturbed(said));
        report.outcomes.push(outcome);
        setting.progress.finish_and_clear();
        // A run that is ended half-way leaves what it has measured: `bench --from` shows it.
        write(&so_far, &(to_json(&report)? + "\n"))?;
    }
    shorten_paths(&mut report, root, &target);
    print!("{}", terminal::text(&report, std::io::stdout().is_terminal()));
    if !arguments.gate {
        store(arguments, &report, root)?;
    }
    Ok(report.outcomes.iter().all(ScenarioOutcome::passed))
}

fn begin_report(arguments: &Arguments, root: &Path) -> Report {
    let given: Vec<String> = std::env::args().skip(1).collect();
    // The commit of a given program is not known.
    let program = if arguments.staunch.is_some() { "-given" } else { "" };
    Report {
        began: machine::now_text(),
        commit: machine::commit(root) + program,
        command: format!("cargo xtask {}", given.join(" ")),
        machine: machine::describe(),
        versions: vec![
            ("wrk".to_owned(), machine::version("wrk", "-v")),
            ("curl".to_owned(), machine::version("curl", "--version")),
            ("h2load".to_owned(), machine::version("h2load", "--version")),
        ],
        rounds: arguments.rounds.max(1),
        seconds: arguments.seconds.max(1),
        outcomes: Vec::new(),
    }
}

/// A stored report must read the same wherever the repository stands.
fn shorten_paths(report: &mut Report, root: &Path, target: &Path) {
    let outcomes = report.outcomes.iter_mut();
    let words = outcomes.flat_map(|outcome| outcome.notes.iter_mut().chain(&mut outcome.errors));
    for words in words.chain([&mut report.command]) {
        *words = words.replace(&*target.to_string_lossy(), "target");
        *words = words.replace(&format!("{}/", root.display()), "");
    }
}

/// Prints a report that was stored, and writes what is asked for.
fn show(arguments: &Arguments, path: &Path) -> Result<(), String> {
    let fault = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
    print!("{}", terminal::text(&report, std::io::stdout().is_terminal()));
    write_asked(arguments, &report)
}

fn store(arguments: &Arguments, report: &Report, root: &Path) -> Result<(), String> {
    let runs = root.join("bench/runs");
    let day = report.began.split(' ').next().unwrap_or("undated");
    let (folder, name) = match &arguments.keep {
        Some(name) => (root.join("bench/results").join(name), "report".to_owned()),
        None => (runs.clone(), free_name(&runs, &format!("{day}-{}", report.commit))),
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    write(&folder.join(format!("{name}.json")), &(to_json(report)? + "\n"))?;
    write(&folder.join(format!("{name}.txt")), &terminal::text(report, false))?;
    if arguments.keep.is_none() {
        write(&folder.join(format!("{name}.html")), &page::html(report))?;
    }
    let shown = folder.strip_prefix(root).unwrap_or(&folder).join(name);
    println!("\nStored as {}.*", shown.display());
    write_asked(arguments, report)
}

fn write_asked(arguments: &Arguments, report: &Report) -> Result<(), String> {
    if let Some(path) = &arguments.json {
        write(path, &to_json(report)?)?;
    }
    if let Some(path) = &arguments.svg {
        let plot = report.outcomes.iter().find_map(pressure::plot);
        write(path, &alone(plot.as_ref()))?;
    }
    arguments.html.as_deref().map_or(Ok(()), |path| write(path, &page::html(report)))
}

fn to_json(report: &Report) -> Result<String, String> {
    serde_json::to_string_pretty(report).map_err(|error| error.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A name that is a folder's on any system, as those in a document are.
fn kept_name(word: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !word.is_empty() && word.chars().all(is_plain) {
        Ok(word.to_owned())
    } else {
        Err("a name has small letters, digits and '-'".to_owned())
    }
}

/// A name under which nothing is stored yet: another run of the same day and commit is kept as well.
fn free_name(results: &Path, name: &str) -> String {
    let is_free = |name: &String| !results.join(format!("{name}.json")).exists();
    let others = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(others).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    #[test]
    fn servers_are_chosen_by_name() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            choose_servers(&words(&["uring", "nginx"])),
            Ok(vec![ServerKind::Nginx, ServerKind::Uring])
        );
        assert!(choose_servers(&words(&["apache"])).is_err());
    }

    #[test]
    fn stored_words_name_no_folder_of_this_machine() {
        let folder = Path::new("/folder/repository");
        let arguments = Arguments::augment_args(clap::Command::new("bench"));
        let arguments =
            Arguments::from_arg_matches(&arguments.get_matches_from(["bench"])).expect("defaults");
        let mut report = begin_report(&arguments, folder);
        report.command = format!("cargo xtask bench --staunch {}/target/staunch", folder.display());
        report.outcomes.push(ScenarioOutcome::new("name", "title"));
        report.outcomes[0].note(format!("{0}/target/staunch serve {0}/site", folder.display()));
        shorten_paths(&mut report, folder, &folder.join("target"));
        assert_eq!(report.command, "cargo xtask bench --staunch target/staunch");
        assert_eq!(report.outcomes[0].notes, ["target/staunch serve site"]);
    }

    #[test]
    fn a_run_is_kept_under_a_plain_name() {
        assert_eq!(kept_name("gate-honest"), Ok("gate-honest".to_owned()));
        for word in ["", "../lab", "Gate", "a b"] {
            assert!(kept_name(word).is_err(), "{word}");
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = std::env::temp_dir().join(format!("staunch-bench-kept-{}", std::process::id()));
        let words = ["bench", "--keep", "one"];
        let arguments = Arguments::augment_args(clap::Command::new("bench")).get_matches_from(words);
        let arguments = Arguments::from_arg_matches(&arguments).expect("good words");
        let mut report = begin_report(&arguments, &folder);
        report.outcomes.push(ScenarioOutcome::new("name", "title"));
        store(&arguments, &report, &folder).expect("a folder of ours");
        let kept = folder.join("bench/results/one");
        let mut names: Vec<_> =
            fs::read_dir(&kept).expect("a folder").flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, ["report.json", "report.txt"]);
        show(&arguments, &kept.join("report.json")).expect("a report");
        assert!(show(&arguments, &kept.join("report.txt")).is_err());
        fs::remove_dir_all(&folder).expect("our folder");
    }

    #[test]
    fn no_run_replaces_another() {
        let folder = std::env::temp_dir().join(format!("staunch-bench-names-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for expected in ["day-commit", "day-commit-2", "day-commit-3"] {
            let name = free_name(&folder, "day-commit");
            assert_eq!(name, expected);
            fs::write(folder.join(format!("{name}.json")), "{}").expect("our folder");
        }
        fs::remove_dir_all(&folder).expect("our folder");
    }
}
