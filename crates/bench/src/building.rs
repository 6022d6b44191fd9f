//! The programs a run needs, built before anything is measured, and what each says about its version.
//!
//! It must never measure, and never install anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine;
use super::scenario::{Needs, Scenario};
use super::setup::{Programs, ServerKind};

/// The truth server, below the folder of what is built.
const TRUTH_SERVER: &str = "release/truth-server";

/// What a run needs.
pub(super) struct Wanted<'a> {
    /// The servers that are compared.
    kinds: &'a [ServerKind],
    /// Whether the load generator is measured.
    generator: bool,
    /// Whether our program is asked for without either.
    program: bool,
    /// A staunch that is already built, with its instruments beside it.
    given: Option<&'a Path>,
}

impl<'a> Wanted<'a> {
    /// What these scenarios need of these servers.
    pub(super) fn new(scenarios: &[&Scenario], kinds: &'a [ServerKind], given: Option<&'a Path>) -> Self {
        let any = |needs| scenarios.iter().any(|scenario| scenario.needs == needs);
        let kinds = if any(Needs::Servers) { kinds } else { &[] };
        Self { kinds, generator: any(Needs::Generator), program: any(Needs::Program), given }
    }

    /// Builds it.
    ///
    /// # Errors
    /// A compiler that fails, a given program that is not there.
    pub(super) fn build(&self, root: &Path, target: &Path) -> Result<Programs, String> {
        let [floor, fan] = ["floor", "fan"].map(|name| target.join("bench").join(name));
        if self.generator || self.kinds.contains(&ServerKind::Floor) {
            for (program, source) in [(&floor, "bench/floor.c"), (&fan, "bench/fan.c")] {
                let source = root.join(source);
                let flags = ["-O2", "-Wall", "-Wextra", "-o"];
                execute(Command::new("cc").args(flags).arg(program).arg(source))?;
            }
        }
        let built = target.join("release/staunch");
        let staunch = match self.given {
            Some(given) => {
                fs::canonicalize(given).map_err(|error| format!("{}: {error}", given.display()))?
            }
            None if self.generator || self.program || self.kinds.iter().any(|kind| kind.is_ours()) => {
                cargo_build(root, &["-p", "staunch", "-p", "staunch-instruments"])?;
                built
            }
            None => built,
        };
        if self.generator {
            truth_server(root, target)?;
        }
        let truth = target.join(TRUTH_SERVER);
        let tools = target.join("tools/bin");
        Ok(Programs { staunch, floor, fan, truth, oha: tools.join("oha"), tools })
    }

    /// Names and versions of what is compared.
    pub(super) fn versions(&self, programs: &Programs) -> Vec<(String, String)> {
        let mut versions: Vec<(String, String)> =
            self.kinds.iter().map(|kind| (kind.name().to_owned(), kind.version(programs))).collect();
        let said = |program: &PathBuf| machine::version(&program.to_string_lossy(), "--version");
        if self.program {
            versions.push(("staunch lab".to_owned(), said(&programs.staunch)));
        }
        if self.generator {
            versions.push(("staunch load".to_owned(), said(&programs.staunch)));
            versions.push(("oha".to_owned(), said(&programs.oha)));
        }
        versions
    }
}

/// Builds the truth server, whose service time is known.
///
/// # Errors
/// A compiler that fails.
pub(super) fn truth_server(root: &Path, target: &Path) -> Result<PathBuf, String> {
    cargo_build(root, &["-p", "staunch-tests", "--bin", "truth-server"])?;
    Ok(target.join(TRUTH_SERVER))
}

fn cargo_build(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    execute(Command::new(cargo).args(["build", "--release"]).args(arguments).current_dir(root))
}

fn execute(command: &mut Command) -> Result<(), String> {
    let words = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{words}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{words} failed: {status}")) }
}
