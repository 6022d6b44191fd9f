//! `staunch kernel load`: the module is loaded with its parameters; where it is not, the reason is told.

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};
use rustix::io::Errno;
use staunch_program::{Failure, output};

use super::log::Log;
use super::module::NAME;
use super::obstacle;

/// Contexts of the kernel that serve a connection.
#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// A thread each
    Kthread,
    /// A work item each, which waits for its peer
    Wq,
    /// A work item when something has come
    Ready,
    /// The softirq that brings a request, where the cache has the answer
    Softirq,
}

/// What is to be served, and how.
#[derive(Args)]
pub(super) struct Arguments {
    /// Folder to serve
    #[arg(long, value_name = "DIR")]
    root: PathBuf,

    /// Address with its port; may be given several times; by default port 80 of all addresses
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,

    /// Context that serves a connection [default: ready]
    #[arg(long, value_enum)]
    mode: Option<Mode>,

    /// The module's file; without it, modprobe finds the one that is installed
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,

    /// Further parameters of the module
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// Loads it.
///
/// # Errors
/// The folder is not there, the host loads no modules, or the kernel refuses: for which parameter, if it says
/// so.
pub(super) fn run(arguments: &Arguments, host: &Path) -> Result<ExitCode, Failure> {
    let words = words(arguments)?;
    let root = arguments.root.display();
    let instead = |failure: Failure| Failure {
        text: format!(
            "{NAME} is not loaded: {}\n`staunch serve {root}` serves the folder without a module",
            failure.text
        ),
        ..failure
    };
    obstacle::find(host).map_or(Ok(()), |failure| Err(instead(failure)))?;
    let log = Log::from_now();
    let loaded = match &arguments.module {
        Some(file) => load(file, &words),
        None => modprobe(&words),
    };
    let Err(error) = loaded else {
        output::print(&format!("{NAME} serves {root}\n"));
        return Ok(ExitCode::SUCCESS);
    };
    let reason = log.last(&format!("{NAME}: ")).unwrap_or(error);
    let hint = hint(&reason, obstacle::is_locked_down(host));
    Err(instead(Failure { code: 1, text: reason + hint }))
}

/// What a refusal means on a host that takes signed modules only.
fn hint(reason: &str, is_locked_down: bool) -> &'static str {
    let is_refused = reason.contains("not permitted") || reason.contains("Key was rejected");
    if is_refused && is_locked_down {
        " (the kernel is locked down: it takes signed modules only)"
    } else {
        ""
    }
}

/// The parameters, as the kernel reads them.
fn words(arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let root = &arguments.root;
    let root = root.canonicalize().map_err(|error| format!("--root {}: {error}", root.display()))?;
    let mut words = vec![format!("root={}", root.display())];
    if !arguments.listen.is_empty() {
        words.push(format!("listen={}", arguments.listen.join(",")));
    }
    if let Some(mode) = arguments.mode.and_then(|mode| mode.to_possible_value()) {
        words.push(format!("mode={}", mode.get_name()));
    }
    words.extend(arguments.parameters.iter().cloned());
    words.into_iter().map(|word| quoted(&word).map_err(Failure::from)).collect()
}

/// A parameter in quotes where the kernel needs them: it separates parameters by spaces.
fn quoted(word: &str) -> Result<String, String> {
    let Some((name, value)) = word.split_once('=') else {
        return Err(format!("{word:?} is no parameter: NAME=VALUE"));
    };
    if word.contains(['"', '\0', '\n']) {
        return Err(format!("{word:?}: the kernel takes no parameter with such a character"));
    }
    Ok(if value.contains(char::is_whitespace) { format!("{name}=\"{value}\"") } else { word.to_owned() })
}

/// Loads a file.
fn load(file: &Path, words: &[String]) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let opened = File::open(file).map_err(|error| told(&error))?;
    let words = CString::new(words.join(" ")).map_err(|error| told(&error))?;
    rustix::system::finit_module(&opened, &words, 0).map_err(|error| match error {
        Errno::EXIST => "it is loaded already; `staunch kernel unload` ends that".to_owned(),
        Errno::NOEXEC => told(&"it was built for another kernel"),
        error => told(&error),
    })
}

/// Loads the installed module.
fn modprobe(words: &[String]) -> Result<(), String> {
    let mut command = Command::new("modprobe");
    let output = command.args(["--first-time", NAME]).args(words).output();
    let output = output.map_err(|error| format!("modprobe: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{hint, quoted};

    #[test]
    fn a_value_with_spaces_is_quoted() {
        assert_eq!(quoted("root=/srv/www").as_deref(), Ok("root=/srv/www"));
        assert_eq!(quoted("root=/srv/my www").as_deref(), Ok("root=\"/srv/my www\""));
        assert!(quoted("root=/srv/\"www").is_err() && quoted("listing").is_err());
    }

    #[test]
    fn a_lockdown_is_told_where_it_is_the_reason() {
        let refused = "a.ko: Operation not permitted (os error 1)";
        assert!(hint(refused, true).contains("signed modules only"));
        assert!(hint(refused, false).is_empty() && hint("a.ko: No such file", true).is_empty());
    }
}
