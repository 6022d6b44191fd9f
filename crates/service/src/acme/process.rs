//! The agent's process: how the server starts it, and its entry point.
//!
//! The agent becomes the same user as the server, confines itself to the store and to what an authority is
//! known by, before it hears or says a word, and has a process group of its own, so that signals of the
//! terminal end the server first and the agent after it.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use staunch_acme::{Line, Store, ToServer};
use staunch_config::Config;
use staunch_config::syntax::Scalar as _;
use staunch_config::syntax::choice::Sandbox as Choice;
use staunch_confine::Identity;
use staunch_program::Failure;

use crate::confinement;

/// The hidden subcommand of `staunch` that runs the agent.
const WORD: &str = "certificate-agent";
/// The program of this very process, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// How a folder is opened that a link must not lead to.
const IS_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The right to pass through a folder, without listing it, for group and others.
const PASSAGE: u32 = 0o011;

/// Arguments of the hidden subcommand.
#[derive(Debug)]
pub struct AgentPlan {
    /// Folder with certificates and keys.
    pub folder: PathBuf,
    /// User to become.
    pub user: Option<String>,
    /// How much of the process is confined, in the word of the settings.
    pub sandbox: String,
    /// Files that the agent is to read.
    pub read: Vec<PathBuf>,
}

/// Starts the agent, and gives the server's end of the line to it.
///
/// # Errors
/// The process cannot be started.
pub(super) fn start(store: &Store, config: &Config, user: Option<&Identity>) -> Result<Line, Failure> {
    let begin = || -> io::Result<Line> {
        let (ours, others) = Line::pair()?;
        let mut words = vec![OsString::from(WORD), store.folder().into()];
        words.extend(user.map(|user| user.to_string().into()));
        words.extend(["--sandbox".into(), config.process.sandbox.name().into()]);
        words.extend(files(config).flat_map(|file| [OsString::from("--read"), file.into()]));
        let mut command = Command::new(PROGRAM);
        command.arg0("staunch").args(words).stdin(others.into_descriptor()).stdout(Stdio::null());
        // The terminal's signals are for the server.
        command.process_group(0).spawn()?;
        Ok(ours)
    };
    begin().map_err(|error| format!("acme: the agent cannot be started: {error}").into())
}

/// Files of these settings that the agent reads.
pub(super) fn files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let acme = &config.acme;
    [&acme.acme_authority, &acme.acme_eab_key_file].into_iter().flatten().cloned()
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
    give_all(folder, user).map_err(blame)?;
    folder.parent().map_or(Ok(()), open_passage).map_err(blame)
}

/// Gives a folder and all that it holds to a user. What stands in it may be the user's already, from a start
/// that was cut short: no link is followed that the user may put there meanwhile, and no file is given that
/// has a name elsewhere.
fn give_all(folder: &Path, user: &Identity) -> io::Result<()> {
    let opened = openat(CWD, folder, IS_FOLDER, Mode::empty())?;
    give_content(&opened, user)?;
    user.give_open(&opened)
}

fn give_content(folder: &OwnedFd, user: &Identity) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let opened = match openat(folder, name, IS_FOLDER, Mode::empty()) {
            Ok(below) => {
                give_content(&below, user)?;
                below
            }
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match openat(folder, name, flags, Mode::empty()) {
                    Ok(file) if fstat(&file)?.st_nlink == 1 => file,
                    // A link, or a file with further names.
                    Ok(_) | Err(Errno::LOOP) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        };
        user.give_open(&opened)?;
    }
    Ok(())
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
pub fn run(plan: &AgentPlan) -> Result<(), Failure> {
    if let Some(user) = &plan.user {
        let user = Identity::find(user).map_err(|unknown| format!("user: {unknown}"))?;
        user.assume().map_err(|error| error.to_string())?;
    }
    let line = io::stdin().as_fd().try_clone_to_owned();
    let line = Line::of(line.map_err(|error| format!("no line to a server: {error}"))?);
    let sandbox = confinement::sandbox(Choice::parse(&plan.sandbox)?);
    // Before the first message, and before it speaks with anybody.
    let missing = staunch_confine::confine_client(sandbox, &plan.read, &plan.folder);
    for what in missing.map_err(|missing| missing.to_string())? {
        // Fails when the server has ended, of which the agent hears by itself.
        let _ = line.tell(&ToServer::Say(format!("acme: the agent is not wholly confined: {what}")));
    }
    let store = Store::new(plan.folder.clone());
    let end = || std::process::exit(0);
    staunch_acme::run(line, store, end).map_err(|error| format!("acme: {error}").into())
}
