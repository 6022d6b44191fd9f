//! The instruments: `staunch load`, `staunch model` and `staunch lab` are another program, `staunch-load`,
//! which takes the place of this one.
//!
//! The module owns where that program is looked for: beside this one alone. It must never understand a
//! word that is meant for it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use staunch_program::Failure;
use staunch_program::outline::Outline;
use staunch_program::output::remark;

/// The file that is looked for.
const FILE: &str = "staunch-load";
/// Commands of the second program, which `staunch` starts.
const COMMANDS: [&str; 3] = ["load", "model", "lab"];
/// Exit codes of shells when there is no such program, and when one cannot be run.
const CODE_MISSING: u8 = 127;
const CODE_NOT_RUN: u8 = 126;

/// Words that only the other program understands.
#[derive(Args)]
pub(crate) struct Words {
    /// Words for the instrument
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Keeps the words of an instrument, its flags and `--help` too, from being taken for this program's.
pub(crate) fn set_apart(words: &mut Vec<OsString>) {
    if words.get(1).is_some_and(|word| COMMANDS.iter().any(|command| word == command)) {
        words.insert(2, "--".into());
    }
}

/// Becomes the other program, which has the same number, the same files and the same words. Returns only when
/// that fails.
pub(crate) fn start(command: &str, words: &Words) -> Failure {
    let program = match beside() {
        Ok(program) => program,
        Err(failure) => return failure,
    };
    let own_name = std::env::args_os().next().unwrap_or_else(|| "staunch".into());
    let error = Command::new(&program).arg0(own_name).arg(command).args(&words.words).exec();
    not_started(&program, &error)
}

/// This program's command with the outlines of the instruments in it. Where they are missing it is told, and
/// their words are left out.
///
/// # Errors
/// The other program is there and does not tell its outline.
pub(crate) fn filled(mut command: clap::Command) -> Result<clap::Command, Failure> {
    let program = beside()?;
    let told = match Command::new(&program).arg("outline").output() {
        Ok(told) => told,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remark(&format!("staunch: {}\n", not_started(&program, &error).text));
            return Ok(command);
        }
        Err(error) => return Err(not_started(&program, &error)),
    };
    let outlines: Vec<Outline> = serde_json::from_slice(&told.stdout)
        .map_err(|error| format!("{} tells no outline of its commands: {error}", program.display()))?;
    for outline in outlines {
        let name = outline.name().to_owned();
        command =
            command.mut_subcommand(name, |own| outline.command().display_order(own.get_display_order()));
    }
    Ok(command)
}

/// Where the other program stands, if it does: in the folder of this one's file, links followed.
fn beside() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(own.with_file_name(FILE))
}

fn not_started(program: &Path, error: &io::Error) -> Failure {
    let path = program.display();
    if error.kind() == io::ErrorKind::NotFound {
        let text = format!(
            "{path} is missing, the program of `staunch load`, `model` and `lab`: the package of staunch \
             brings it, and `cargo build --release -p staunch-instruments` makes it, to be put there"
        );
        return Failure { code: CODE_MISSING, text };
    }
    Failure { code: CODE_NOT_RUN, text: format!("{path} cannot be started: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(text: &str) -> Vec<OsString> {
        let mut words = text.split(' ').map(OsString::from).collect();
        set_apart(&mut words);
        words
    }

    #[test]
    fn words_of_an_instrument_come_through_as_they_are() {
        use clap::Parser as _;
        for text in ["--help", "sweep -c 3 --help", "-- x -- y", "http://h/ --rate 1/s -h", "-V"] {
            let words = apart(&format!("staunch load {text}"));
            let command = crate::Command::try_parse_from(words).map_err(|error| error.to_string());
            let Some(crate::Subcommands::Load(given)) = command.expect(text).command else {
                panic!("{text}: another command");
            };
            assert_eq!(given.words, text.split(' ').map(OsString::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn words_of_this_program_are_left_alone() {
        for text in ["staunch serve load", "staunch", "staunch loads", "staunch kernel load --root x"] {
            assert_eq!(apart(text), text.split(' ').map(OsString::from).collect::<Vec<_>>());
        }
    }
}
