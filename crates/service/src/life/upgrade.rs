//! The start of the process that takes over, until it says that it serves.
//!
//! It must never let that process keep anything but what it is told of, nor leave one behind that did not
//! make it.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::Child;
use std::sync::Arc;

use staunch_netio::handover as descriptors;

use super::duties::Duties;
use super::handover::{self, Handed};
use super::program::Program;
use super::starter::{self, Starter};
use crate::descriptors::Descriptors;

/// How long the next process may take until it serves, in milliseconds: many sites are opened in a second.
const PATIENCE_MS: u64 = 30_000;

/// The longest reason that a process says for not serving: settings that are wrong in many places.
const REASON_BYTES_MAX: u64 = 16_384;

/// A process that was started and does not serve yet.
pub(super) struct Upgrade {
    child: Started,
    pipe: PipeReader,
    left: PipeWriter,
    until_ms: u64,
}

/// By whom the process was started.
enum Started {
    ByThis(Child),
    /// And its number.
    ByStarter(Arc<Starter>, u32),
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
    /// Starts the program, and leaves it the lines by which parts pass (`lent`). `starter` starts
    /// it, if there is one.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(super) fn start(
        program: &Program,
        starter: Option<&Arc<Starter>>,
        known: &[Handed],
        duties: &Duties,
        lent: Descriptors,
        now_ms: u64,
    ) -> Result<Self, String> {
        let start = || -> io::Result<(Started, PipeReader, PipeWriter)> {
            let (pipe, word) = io::pipe()?;
            let word = descriptors::inheritable(&word)?;
            let (heard, left) = io::pipe()?;
            let heard = descriptors::inheritable(&heard)?;
            let sockets = duties.control.inheritable()?;
            let mut further = lent;
            duties.parts.descriptors(&mut further);
            let further = further.inheritable()?;
            let told = handover::describe(
                &sockets,
                known,
                duties.backend,
                AsRawFd::as_raw_fd,
                [&word, &heard],
                &further,
            );
            let child = match starter {
                Some(starter) => {
                    let further = further.iter().map(|(_, descriptor)| descriptor);
                    let sockets = sockets.iter().flat_map(|inherited| &inherited.sockets);
                    let all = sockets.chain([&word, &heard]).chain(further).map(AsFd::as_fd);
                    let process = starter.start(&told, &all.collect::<Vec<_>>())?;
                    Started::ByStarter(Arc::clone(starter), process)
                }
                None => {
                    let environment = duties.environment.iter().map(|(name, value)| (name, value));
                    let mut command = starter::command(program);
                    Started::ByThis(command.envs(environment).env(handover::VARIABLE, told).spawn()?)
                }
            };
            Ok((child, pipe, left))
        };
        let (child, pipe, left) =
            start().map_err(|error| format!("cannot start {}: {error}", program.path.display()))?;
        Ok(Self { child, pipe, left, until_ms: now_ms + PATIENCE_MS })
    }

    /// Number of the process.
    pub(super) fn process(&self) -> u32 {
        match &self.child {
            Started::ByThis(child) => child.id(),
            Started::ByStarter(_, process) => *process,
        }
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
            Ok(1) if word == [handover::FAILED] => {
                let mut reason = Vec::new();
                // Ends with the process, which has nothing to do but to end.
                let _ = (&self.pipe).take(REASON_BYTES_MAX).read_to_end(&mut reason);
                let how = self.end(false);
                let reason = String::from_utf8_lossy(&reason);
                UpgradeEnd::Failed(format!("process {}: it ended ({how}): {reason}", self.process()))
            }
            Ok(1) => UpgradeEnd::Serves {
                process: self.process(),
                shares_queues: word == [handover::SHARES_QUEUES],
                left: self.left,
            },
            _ => {
                let how = self.end(false);
                UpgradeEnd::Failed(format!("process {}: it ended ({how})", self.process()))
            }
        }
    }

    /// Gives up waiting for the new process.
    pub(super) fn give_up(mut self, why: &str) -> UpgradeEnd {
        let how = self.end(true);
        UpgradeEnd::Failed(format!("process {}: {why} ({how})", self.process()))
    }

    /// How it has ended, or was killed.
    fn end(&mut self, kill: bool) -> String {
        let ended = match &mut self.child {
            Started::ByThis(child) => if kill { child.kill() } else { Ok(()) }.and_then(|()| child.wait()),
            Started::ByStarter(starter, _) => return starter.end(kill),
        };
        ended.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}
