//! Tests and commands that the page names: whether they exist, and how they are run.
//!
//! The module reads sources, and owns what is known of where tests and scenarios stand. It must never run
//! anything.

use std::fs;
use std::path::Path;

use toml::Table;

/// The command that runs a test given as `file::name`.
///
/// # Errors
/// A test that is not there.
pub(super) fn command_of_test(root: &Path, test: &str) -> Result<String, String> {
    let fault = |what: String| format!("test `{test}`: {what}");
    let (file, name) = test.split_once("::").ok_or_else(|| fault("not `file::name`".to_owned()))?;
    let text = read(root, file).map_err(fault)?;
    if !text.contains(&format!("fn {name}(")) {
        return Err(fault("the file has no function of that name".to_owned()));
    }
    let words = target(root, file).map_err(fault)?;
    Ok(format!("cargo test --profile fast {words} {name}"))
}

/// The words by which cargo chooses the program of tests that a file belongs to.
fn target(root: &Path, file: &str) -> Result<String, String> {
    let parts: Vec<&str> = file.split('/').collect();
    match parts[..] {
        ["crates", room, "src", ..] => Ok(format!("-p {}", package(root, room)?)),
        ["crates", room, "tests", first, ..] => {
            Ok(format!("-p {} --test {}", package(root, room)?, first.trim_end_matches(".rs")))
        }
        ["tests", first, ..] => Ok(format!("-p staunch-tests --test {}", suite(root, first)?)),
        _ => Err("neither below crates nor below tests".to_owned()),
    }
}

fn package(root: &Path, room: &str) -> Result<String, String> {
    let table = table(root, &format!("crates/{room}/Cargo.toml"))?;
    let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    Ok(name.ok_or_else(|| format!("crates/{room} has no name"))?.to_owned())
}

/// The suite whose first file stands in this folder, or is this file.
fn suite(root: &Path, first: &str) -> Result<String, String> {
    let table = table(root, "tests/Cargo.toml")?;
    let suites = table.get("test").and_then(toml::Value::as_array).into_iter().flatten();
    let word = |suite: &toml::Value, key: &str| Some(suite.get(key)?.as_str()?.to_owned());
    let mut meant = suites
        .filter(|suite| word(suite, "path").is_some_and(|path| path.split('/').next() == Some(first)))
        .filter_map(|suite| word(suite, "name"));
    meant.next().ok_or_else(|| format!("no suite of tests/Cargo.toml begins in `{first}`"))
}

/// Checks that a command exists: a target of make, or a chore, with its scenarios.
///
/// # Errors
/// A name that does not exist, or of which nothing is known.
pub(super) fn check_command(root: &Path, chores: &[String], command: &str) -> Result<(), String> {
    let fault = |what: String| format!("command `{command}`: {what}");
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    match words[..] {
        ["make", goal, ..] => {
            let makefile = read(root, "Makefile").map_err(fault)?;
            let is_there = makefile.lines().any(|line| line.starts_with(&format!("{goal}:")));
            if is_there { Ok(()) } else { Err(fault(format!("there is no target `{goal}`"))) }
        }
        ["cargo", "xtask", chore, ref rest @ ..] => {
            if chores.iter().all(|known| known != chore) {
                return Err(fault(format!("there is no chore `{chore}`")));
            }
            if chore == "bench" { check_scenarios(root, rest).map_err(fault) } else { Ok(()) }
        }
        _ => Err(fault("neither make nor cargo xtask".to_owned())),
    }
}

/// Every name before the first option is a scenario's.
fn check_scenarios(root: &Path, words: &[&str]) -> Result<(), String> {
    let known = read(root, "crates/bench/src/scenario.rs")?;
    let mut names = words.iter().take_while(|word| !word.starts_with('-'));
    let missing = names.find(|name| !known.contains(&format!("(\"{name}\"")));
    missing.map_or(Ok(()), |name| Err(format!("there is no scenario `{name}`")))
}

fn table(root: &Path, file: &str) -> Result<Table, String> {
    read(root, file)?.parse::<Table>().map_err(|error| format!("{file}: {error}"))
}

/// A file below the top of the tree.
///
/// # Errors
/// A source that cannot be read, with its name.
pub(super) fn read(root: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_where_they_stand() {
        let root = crate::root();
        let command = |test: &str| command_of_test(&root, test);
        let here = "crates/xtask/src/papers/evidence.rs::tests_are_found_where_they_stand";
        let expected = "cargo test --profile fast -p xtask tests_are_found_where_they_stand";
        assert_eq!(command(here).as_deref(), Ok(expected));
        let wire = command("tests/wire.rs::on_the_bare_session");
        assert_eq!(
            wire,
            Ok("cargo test --profile fast -p staunch-tests --test wire on_the_bare_session".into())
        );
        assert!(command("tests/wire.rs::on_the_moon").is_err_and(|error| error.contains("no function")));
        assert!(command("tests/moon.rs::on_the_bare_session").is_err_and(|error| error.contains("moon.rs")));
        assert!(command("tests/lib.rs::suite").is_err());
    }

    #[test]
    fn commands_that_do_not_exist_are_named() {
        let root = crate::root();
        let chores = ["bench".to_owned()];
        let check = |command: &str| check_command(&root, &chores, command);
        assert_eq!(check("make lab"), Ok(()));
        assert_eq!(check("cargo xtask bench gate-model --rounds 5"), Ok(()));
        assert!(check("make labour").is_err_and(|error| error.contains("`labour`")));
        assert!(check("cargo xtask bend").is_err_and(|error| error.contains("`bend`")));
        assert!(check("cargo xtask bench gate-moodle").is_err_and(|error| error.contains("`gate-moodle`")));
        assert!(check("rm everything").is_err());
    }
}
