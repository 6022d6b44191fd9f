//! `cargo xtask bench`: Staunch side by side with the servers people use, and with the floor.
//!
//! It owns the order of a run: build, run the chosen scenarios, print, store. It must never be built into
//! what it measures. Order: [`run`] builds the programs, then each scenario starts its servers, checks their
//! answers, measures, judges its bars; at last the report is printed and stored under `bench/results/`.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::building::Wanted;
use crate::figures::{Outcome, Report};
use crate::scenario::Scenario;
use crate::setting::Setting;
use crate::setup::Kind;
use crate::{crowd, machine, page, scenario, terminal};

/// What is measured, how often, and where the report goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Scenarios to run, 'load' or 'gate' for all of these; all but the longest when none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How often each server is measured in each scenario
    #[arg(long, default_value_t = Setting::ROUNDS)]
    rounds: u32,
    /// Length of one measurement under load, in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Servers to measure: nginx, lighttpd, h2o, caddy, floor, uring, epoll
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    servers: Vec<String>,
    /// A staunch that is already built; without it one is built with --release
    #[arg(long, value_name = "FILE")]
    staunch: Option<PathBuf>,
    /// Write the report as JSON here too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as an HTML page here too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With the scenario 'instructions': record the counts that later runs are judged by
    #[arg(long)]
    record: bool,
    /// Judge only: store no report (for CI, with the scenario 'instructions')
    #[arg(long)]
    gate: bool,
    /// Hold idle connections for the scenario 'idle'
    #[arg(long, hide = true, value_name = "ADDRESS:PORT,COUNT,PATH")]
    hold: Option<String>,
}

/// Runs the benchmark: 0 when every bar passed, 1 when one was missed or something failed, 2 for a wrong
/// command.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    if let Some(words) = &arguments.hold {
        return crowd::hold(words).map_or_else(fail, |()| ExitCode::SUCCESS);
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

fn choose_servers(words: &[String]) -> Result<Vec<Kind>, String> {
    if words.is_empty() {
        return Ok(Kind::ALL.to_vec());
    }
    if let Some(word) = words.iter().find(|word| Kind::ALL.iter().all(|kind| kind.word() != *word)) {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        return Err(format!("there is no server '{word}'; there are {}", known.join(", ")));
    }
    Ok(Kind::ALL.into_iter().filter(|kind| words.iter().any(|word| word == kind.word())).collect())
}

/// Whether every bar passed.
fn measure(
    root: &Path,
    arguments: &Arguments,
    scenarios: &[&'static Scenario],
    kinds: &[Kind],
) -> Result<bool, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let scratch = target.join("bench");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let mut report = begin_report(arguments, root);
    let wanted = Wanted::new(scenarios, kinds, arguments.staunch.as_deref());
    let programs = wanted.build(root, &target)?;
    report.versions.extend(wanted.versions(&programs));
    for scenario in scenarios {
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
        report.outcomes.push((scenario.run)(&setting));
        setting.progress.finish_and_clear();
    }
    shorten_paths(&mut report, root, &target);
    print!("{}", terminal::text(&report, std::io::stdout().is_terminal()));
    if !arguments.gate {
        store(arguments, &report, root)?;
    }
    Ok(report.outcomes.iter().all(Outcome::passed))
}

fn begin_report(arguments: &Arguments, root: &Path) -> Report {
    let given: Vec<String> = std::env::args().skip(1).collect();
    // Nobody knows of which commit a given program is.
    let program = if arguments.staunch.is_some() { "-given" } else { "" };
    Report {
        began: machine::now_text(),
        commit: machine::commit(root) + program,
        command: format!("cargo xtask {}", given.join(" ")),
        machine: machine::describe(),
        versions: vec![
            ("wrk".to_owned(), machine::version("wrk", "-v")),
            ("curl".to_owned(), machine::version("curl", "--version")),
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

fn store(arguments: &Arguments, report: &Report, root: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    let page = page::html(report);
    let results = root.join("bench/results");
    fs::create_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    let day = report.began.split(' ').next().unwrap_or("undated");
    let name = free_name(&results, &format!("{day}-{}", report.commit));
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&results.join(format!("{name}.json")), &json)?;
    write(&results.join(format!("{name}.html")), &page)?;
    write(&results.join(format!("{name}.txt")), &terminal::text(report, false))?;
    println!("\nStored as bench/results/{name}.json, .html and .txt");
    arguments.json.as_deref().map_or(Ok(()), |path| write(path, &json))?;
    arguments.html.as_deref().map_or(Ok(()), |path| write(path, &page))
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
        assert_eq!(choose_servers(&words(&["uring", "nginx"])), Ok(vec![Kind::Nginx, Kind::Uring]));
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
        report.outcomes.push(Outcome::new("name", "title"));
        report.outcomes[0].note(format!("{0}/target/staunch serve {0}/site", folder.display()));
        shorten_paths(&mut report, folder, &folder.join("target"));
        assert_eq!(report.command, "cargo xtask bench --staunch target/staunch");
        assert_eq!(report.outcomes[0].notes, ["target/staunch serve site"]);
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
