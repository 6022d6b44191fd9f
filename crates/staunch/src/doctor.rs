//! `staunch doctor`: asks, shows and lets change what the host is set to. It must never hold a rule of its
//! own.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use console::Term;
use staunch_doctor::{Finding, Host, NicRing, SettingChange, State};
use staunch_netio::host::sock_diag::SockDiag;
use staunch_netio::uring;

/// What stands at the end of the help.
const EXPLANATION: &str = "\
Exit codes: 0 nothing matters, 1 it could not run, 2 it was called wrongly, 3 something matters.
docs/host-settings.md has the table of all settings.";

/// Something matters.
const MATTERS: u8 = 3;

/// Width of the report where there is no terminal that has one.
const PLAIN_WIDTH: usize = 110;

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXPLANATION)]
pub(crate) struct Arguments {
    /// Print JSON for programs
    #[arg(long, conflicts_with_all = ["apply", "undo", "explain"])]
    json: bool,

    /// Say what a setting does, what is right and how it is here; a part of its name will do
    #[arg(long, value_name = "NAME")]
    explain: Option<String>,

    /// Set what is advised and can be set, after showing it and asking
    #[arg(long, conflicts_with_all = ["undo", "explain"])]
    apply: bool,

    /// Put back what was before --apply
    #[arg(long, conflicts_with = "explain")]
    undo: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Where --apply writes the settings for the next start
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Look at the /proc, /sys and /etc beneath this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Runs it.
///
/// # Errors
/// Whatever keeps it from looking or changing, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let host = host(&arguments.root)?;
    let file = arguments.file.clone().unwrap_or_else(|| host.root().join(staunch_doctor::DEFAULT_FILE));
    if arguments.undo {
        return undo(&host, &file, arguments.yes);
    }
    let findings = staunch_doctor::examine(&host);
    if arguments.apply {
        return apply(&host, &findings, &file, arguments.yes);
    }
    let report = match &arguments.explain {
        Some(name) => staunch_doctor::explain(&findings, name).ok_or_else(|| {
            format!("--explain {name}: no setting has such a name; `staunch doctor` lists all of them")
        })?,
        None if arguments.json => staunch_doctor::json(&findings).map_err(|error| error.to_string())? + "\n",
        None => {
            let width =
                Term::stdout().size_checked().map_or(PLAIN_WIDTH, |(_, columns)| usize::from(columns));
            staunch_doctor::text(&findings, width, io::stdout().is_terminal() && console::colors_enabled())
        }
    };
    say(&report);
    let matters = arguments.explain.is_none() && findings.iter().any(|found| found.state == State::Matters);
    Ok(if matters { ExitCode::from(MATTERS) } else { ExitCode::SUCCESS })
}

/// This host, or a recorded one, of which io_uring cannot be tried and nobody can be asked who listens.
fn host(root: &Path) -> Result<Host, String> {
    if !root.join("proc").is_dir() {
        return Err(format!("{}: there is no /proc here, so nothing can be told", root.display()));
    }
    if root != Path::new("/") {
        return Ok(Host::at(root, NicRing::Untried));
    }
    let ring = match uring::probe() {
        Ok(features) => NicRing::Works(features.to_string()),
        Err(refusal) => NicRing::Refused(refusal.to_string()),
    };
    let listeners = SockDiag::open().and_then(|mut diag| diag.listeners());
    Ok(Host::at(root, ring).with_listeners(listeners.ok()))
}

fn apply(host: &Host, findings: &[Finding], file: &Path, yes: bool) -> Result<ExitCode, String> {
    let Some(change) = SettingChange::of(host, findings, file)? else {
        say("nothing to set: what can be set is right\n");
        return Ok(ExitCode::SUCCESS);
    };
    say(&change.difference());
    if !agreed(&format!("set {} settings now and at every start?", change.count()), yes)? {
        say("nothing has been changed\n");
        return Ok(ExitCode::SUCCESS);
    }
    change.apply(host)?;
    say(&format!("set {} settings; `staunch doctor --undo` puts back what was\n", change.count()));
    Ok(ExitCode::SUCCESS)
}

fn undo(host: &Host, file: &Path, yes: bool) -> Result<ExitCode, String> {
    if file.exists() && !agreed(&format!("put back what was before, and remove {}?", file.display()), yes)? {
        say("nothing has been changed\n");
        return Ok(ExitCode::SUCCESS);
    }
    let undone = staunch_doctor::undo(host, file)?;
    for line in &undone.restored {
        say(&format!("put back {line}\n"));
    }
    for line in &undone.left {
        say(&format!("left alone {line}\n"));
    }
    say(&format!("removed {}\n", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Asks, where there is somebody to answer.
fn agreed(question: &str, yes: bool) -> Result<bool, String> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(format!("{question} There is no terminal to answer on: --yes agrees"));
    }
    say(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Prints. Nobody reading is no reason to fail.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
