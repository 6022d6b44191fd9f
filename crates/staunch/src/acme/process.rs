//! The agent's process: how it is started, and what it does then.
//!
//! It must never keep more rights than it needs: it becomes the user that the server becomes, in a session
//! of signals of its own, so that it ends when the server is gone and not before.

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

/// The subcommand, which people have no use for.
const WORD: &str = "certificate-agent";
/// This program, also if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// What everybody may do with a folder that leads to another one: go through it.
const PASSAGE: u32 = 0o011;

/// How the agent is started.
#[derive(Args, Debug)]
pub(crate) struct AgentArguments {
    /// Folder with certificates and keys
    folder: PathBuf,

    /// User to become
    user: Option<String>,
}

/// Starts the agent, and gives the line to it.
///
/// # Errors
/// It cannot be started.
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

/// Makes the folder, and gives it to the user.
///
/// # Errors
/// A folder that cannot be used, with its name.
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

/// Gives a folder and all in it.
fn give(path: &Path, user: &Identity) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    user.give(path)
}

/// Lets the user through to the folder: the names in it stay hidden, and its files have rights of their own.
fn open_passage(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    fs::set_permissions(folder, Permissions::from_mode(mode | PASSAGE))
}

/// The agent: looks after certificates until the server is gone.
///
/// # Errors
/// It was started by somebody else than a server; no thread can be had.
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
