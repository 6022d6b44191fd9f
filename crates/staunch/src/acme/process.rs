//! The agent's process: how the server starts it, and its entry point.
//!
//! The agent becomes the same user as the server, so that it keeps no further rights, and has a process group
//! of its own, so that signals of the terminal end the server first and the agent after it.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use rustix::fd::AsFd as _;
use staunch_acme::{Line, Store};
use staunch_confine::Identity;

use crate::config::Failure;

/// The hidden subcommand of `staunch` that runs the agent.
const WORD: &str = "certificate-agent";
/// The program of this very process, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// The right to pass through a folder, without listing it, for group and others.
const PASSAGE: u32 = 0o011;

/// Arguments of the hidden subcommand.
#[derive(Args, Debug)]
pub(crate) struct AgentArguments {
    /// Folder with certificates and keys
    folder: PathBuf,

    /// User to become
    user: Option<String>,
}

/// Starts the agent, and gives the server's end of the line to it.
///
/// # Errors
/// The process cannot be started.
pub(super) fn start(store: &Store, user: Option<&Identity>) -> Result<Line, Failure> {
    let begin = || -> io::Result<Line> {
        let (ours, others) = Line::pair()?;
        let mut words = vec![OsString::from(WORD), store.folder().into()];
        words.extend(user.map(|user| user.to_string().into()));
        let mut command = Command::new(PROGRAM);
        command.arg0("staunch").args(words).stdin(others.into_descriptor()).stdout(Stdio::null());
        // The terminal's signals are for the server.
        command.process_group(0).spawn()?;
        Ok(ours)
    };
    begin().map_err(|error| format!("acme: the agent cannot be started: {error}").into())
}

/// Makes the store's folder, and gives it to the user that the agent becomes.
///
/// # Errors
/// The folder cannot be made, written to or given away; the fault names it.
pub(super) fn make_ready(store: &Store, user: Option<&Identity>) -> Result<(), String> {
    store.prepare().map_err(|fault| fault.to_string())?;
    let Some(user) = user else { return Ok(()) };
    let folder = store.folder();
    let blame = |error: io::Error| format!("{}: {error}", folder.display());
    // What belongs to somebody already stays as it is: only root can give, and only what is root's.
    if fs::metadata(folder).map_err(blame)?.uid() != 0 || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    give(folder, user).map_err(blame)?;
    folder.parent().map_or(Ok(()), open_passage).map_err(blame)
}

/// Gives a folder and all that it holds to a user.
fn give(path: &Path, user: &Identity) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    user.give(path)
}

/// Lets every user pass through the state folder to the store. Others still cannot list it, and its files
/// keep their own rights.
fn open_passage(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    fs::set_permissions(folder, Permissions::from_mode(mode | PASSAGE))
}

/// Runs the agent until its server has ended.
///
/// # Errors
/// Standard input is no line to a server; the user cannot be assumed; no thread can be started.
pub(crate) fn run(arguments: &AgentArguments) -> Result<(), Failure> {
    if let Some(user) = &arguments.user {
        let user = Identity::find(user).map_err(|unknown| format!("user: {unknown}"))?;
        user.assume().map_err(|error| error.to_string())?;
    }
    let line = io::stdin().as_fd().try_clone_to_owned();
    let line = Line::of(line.map_err(|error| format!("no line to a server: {error}"))?);
    let store = Store::new(arguments.folder.clone());
    let end = || std::process::exit(0);
    staunch_acme::run(line, store, end).map_err(|error| format!("acme: {error}").into())
}
