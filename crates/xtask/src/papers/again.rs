//! Running every row's command again: the figures of this machine.
//!
//! The module owns the order and the folder of results, `bench/runs/papers`. A run that fails, or has
//! skipped a scenario, leaves its rows without a figure. It must never touch a kept run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::reading::{RunFiles, document, faults};
use super::sheet::Run;

/// Below the top of the tree; git ignores it.
pub(super) const FOLDER: &str = "bench/runs/papers";

/// Runs those of these names, of no name all, and gives every result in the folder, and the names of the runs
/// that failed. What only root can run is left out for others, and that is no failure.
///
/// # Errors
/// A name that no run has; a folder that cannot be made.
pub(super) fn run(
    root: &Path,
    runs: &BTreeMap<String, Run>,
    names: &[String],
) -> Result<(RunFiles, Vec<String>), String> {
    if let Some(name) = names.iter().find(|name| !runs.contains_key(*name)) {
        let known: Vec<&str> = runs.keys().map(String::as_str).collect();
        return Err(format!("there is no run `{name}`; there are {}", known.join(", ")));
    }
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let chosen: Vec<_> = runs.iter().filter(|(name, _)| names.is_empty() || names.contains(*name)).collect();
    let minutes: u32 = chosen.iter().map(|(_, run)| run.minutes).sum();
    println!("papers: {} runs, about {minutes} minutes", chosen.len());
    let mut failed = Vec::new();
    for (index, (name, run)) in chosen.iter().enumerate() {
        println!("papers: {} of {}: {name}, about {} minutes", index + 1, chosen.len(), run.minutes);
        if run.root && !is_root() {
            eprintln!("papers: {name}: needs root, and was left out");
        } else if let Err(error) = once(root, name, run) {
            eprintln!("papers: {name}: {error}");
            failed.push((*name).clone());
        }
    }
    let found = runs.keys().filter_map(|name| Some((name.clone(), whole(&result(root, name)).ok()?)));
    Ok((RunFiles(found.collect()), failed))
}

/// The result in a file.
///
/// # Errors
/// A file that is not there or is no JSON; one that tells of scenarios that were skipped or went wrong.
fn whole(file: &Path) -> Result<Value, String> {
    let document = document(file)?;
    let faults = faults(&document);
    if faults.is_empty() { Ok(document) } else { Err(faults.join("; ")) }
}

fn result(root: &Path, name: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{name}.json"))
}

/// Runs a command. Whether it missed a bar is said in its result, so only that there is a whole one counts.
fn once(root: &Path, name: &str, run: &Run) -> Result<(), String> {
    let file = result(root, name);
    let left = run.result.as_ref().map(|left| root.join(left));
    for old in left.iter().chain([&file]) {
        // An older result must not be taken for this one; that there is none is the usual case.
        let _ = fs::remove_file(old);
    }
    let ended = command(root, run, &file)?.status().map_err(|error| format!("{}: {error}", run.command))?;
    if let Some(left) = left.filter(|left| left.exists()) {
        fs::copy(&left, &file).map_err(|error| format!("{}: {error}", left.display()))?;
    }
    if !file.exists() {
        return Err(format!("{}: {ended}, no result", run.command));
    }
    whole(&file).map(drop).map_err(|error| format!("{}: {error}", run.command))
}

/// The command, told where its result goes. A chore is run by this very program.
fn command(root: &Path, run: &Run, file: &Path) -> Result<Command, String> {
    let words: Vec<&str> = run.command.split_ascii_whitespace().collect();
    let mut command = match words[..] {
        ["cargo", "xtask", ref rest @ ..] => {
            let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
            command.args(rest);
            command
        }
        [program, ref rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        [] => return Err("an empty command".to_owned()),
    };
    if run.result.is_none() {
        command.arg("--json").arg(file);
    }
    command.current_dir(root);
    Ok(command)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(command: &str, result: Option<&str>) -> Run {
        let result = result.map(str::to_owned);
        Run { kept: None, machine: None, command: command.to_owned(), result, minutes: 1, root: false }
    }

    #[test]
    fn results_are_gathered_and_a_run_without_one_is_none() {
        let folder = std::env::temp_dir().join(format!("staunch-papers-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("source.json"), "{\"a\": 1}").expect("our folder");
        let runs: BTreeMap<String, Run> = [
            ("copied".to_owned(), made("cp source.json left.json", Some("left.json"))),
            ("fails".to_owned(), made("false", None)),
        ]
        .into();
        fs::create_dir_all(folder.join(FOLDER)).expect("our folder");
        fs::write(folder.join(FOLDER).join("fails.json"), "{}").expect("our folder");
        let (results, failed) = run(&folder, &runs, &[]).expect("names are right");
        assert_eq!(failed, ["fails"]);
        assert_eq!(results.0.keys().collect::<Vec<_>>(), ["copied"]);
        assert!(run(&folder, &runs, &["nme".to_owned()]).is_err_and(|error| error.contains("copied, fails")));
        fs::remove_dir_all(&folder).expect("our folder");
    }

    #[test]
    fn a_run_that_skipped_a_scenario_has_failed() {
        let folder = std::env::temp_dir().join(format!("staunch-papers-skipped-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let outcome = |rest: &str| format!("{{\"outcomes\": [{{\"name\": \"gate\", {rest}}}]}}");
        let reports = [
            ("passed", outcome("\"errors\": [], \"skipped\": null")),
            ("skips", outcome("\"errors\": [], \"skipped\": \"no namespaces\"")),
            ("wrong", outcome("\"errors\": [\"nginx ended\"]")),
        ];
        let mut runs = BTreeMap::new();
        for (name, text) in reports {
            fs::write(folder.join(format!("{name}.source")), text).expect("our folder");
            let command = format!("cp {name}.source {name}.json");
            runs.insert(name.to_owned(), made(&command, Some(&format!("{name}.json"))));
        }
        let (results, failed) = run(&folder, &runs, &[]).expect("names are right");
        assert_eq!(failed, ["skips", "wrong"]);
        assert_eq!(results.0.keys().collect::<Vec<_>>(), ["passed"]);
        let said = whole(&result(&folder, "skips")).expect_err("skipped");
        assert_eq!(said, "`gate` was skipped: no namespaces");
        // Nor is it taken by a later call that runs another.
        let (results, failed) = run(&folder, &runs, &["passed".to_owned()]).expect("names are right");
        assert_eq!((results.0.len(), failed.len()), (1, 0));
        fs::remove_dir_all(&folder).expect("our folder");
    }

    #[test]
    fn a_command_is_told_where_its_result_goes() {
        let words = |run: &Run| {
            let command = command(Path::new("root"), run, Path::new("file")).expect("a command");
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words(&made("cargo xtask bench one", None)), ["bench", "one", "--json", "file"]);
        assert_eq!(words(&made("make lab", Some("lab.json"))), ["lab"]);
    }
}
