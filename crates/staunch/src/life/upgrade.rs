//! The start of the process that takes over, until it says that it serves.
//!
//! It must never let that process keep anything but what it is told of, nor leave one behind that did not
//! make it.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use staunch_netio::handover as descriptors;

use super::duties::Duties;
use super::handover::{self, Further, Handed};
use super::program::Program;

/// How long the next process may take until it serves, in milliseconds: many sites are opened in a second.
const PATIENCE_MS: u64 = 30_000;

/// A process that was started and does not serve yet.
pub(super) struct Upgrade {
    child: Child,
    pipe: PipeReader,
    left: PipeWriter,
    until_ms: u64,
}

/// What became of it.
pub(super) enum UpgradeEnd {
    /// The new process serves, and whether at these sockets. It waits for the end of a pipe, which is to come
    /// when this process has left them.
    Serves { process: u32, shares_queues: bool, left: PipeWriter },
    /// The new process is gone, with the reason.
    Failed(String),
}

impl Upgrade {
    /// Starts the program, and leaves it the lines by which live data and the fabric pass.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(super) fn start(
        program: &Program,
        known: &[Handed],
        duties: &Duties,
        lent: Further,
        now_ms: u64,
    ) -> Result<Self, String> {
        let start = || -> io::Result<(Child, PipeReader, PipeWriter)> {
            let (pipe, word) = io::pipe()?;
            let word = descriptors::inheritable(&word)?;
            let (heard, left) = io::pipe()?;
            let heard = descriptors::inheritable(&heard)?;
            let sockets = duties.control.inheritable()?;
            let Further { agent, tickets, .. } = (duties.further)();
            let further = Further {
                agent: agent.map(descriptors::inheritable).transpose()?,
                tickets: tickets.map(descriptors::inheritable).transpose()?,
                live: lent.live.map(descriptors::inheritable).transpose()?,
                fabric: lent.fabric.map(descriptors::inheritable).transpose()?,
            };
            let pipes = [&word, &heard];
            let number_of = AsRawFd::as_raw_fd;
            let told = handover::describe(&sockets, known, duties.backend, number_of, pipes, &further);
            let child = command(program, duties).env(handover::VARIABLE, told).spawn()?;
            Ok((child, pipe, left))
        };
        let (child, pipe, left) =
            start().map_err(|error| format!("cannot start {}: {error}", program.path.display()))?;
        Ok(Self { child, pipe, left, until_ms: now_ms + PATIENCE_MS })
    }

    /// Number of the process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Readable when `hear` has something to hear.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// When to stop waiting.
    pub(super) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// The process has said something, or has ended.
    pub(super) fn hear(mut self) -> UpgradeEnd {
        let mut word = [0];
        match self.pipe.read(&mut word) {
            Ok(1) => UpgradeEnd::Serves {
                process: self.process(),
                shares_queues: word == [handover::SHARES_QUEUES],
                left: self.left,
            },
            _ => self.fail("it ended"),
        }
    }

    /// Gives up waiting for the new process.
    pub(super) fn give_up(self, why: &str) -> UpgradeEnd {
        self.fail(why)
    }

    /// Ends it, if it has not ended.
    fn fail(mut self, why: &str) -> UpgradeEnd {
        let process = self.process();
        let ended = if why == "it ended" { self.child.wait() } else { self.kill() };
        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        UpgradeEnd::Failed(format!("process {process}: {why} ({how})"))
    }

    fn kill(&mut self) -> io::Result<std::process::ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }
}

fn command(program: &Program, duties: &Duties) -> Command {
    let mut command = Command::new(&program.path);
    let mut words = program.words.iter();
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    command.args(words).stdin(Stdio::null());
    command.envs(duties.environment.iter().map(|(name, value)| (name, value)));
    for name in handover::FOREIGN {
        command.env_remove(name);
    }
    command
}
