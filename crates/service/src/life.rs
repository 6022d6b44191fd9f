//! The life of a server: how it arrives, what it obeys while it serves, and how it goes.
//!
//! It owns the signals of the process and what systemd is told. It must never be on the path of a request,
//! nor wake up while nothing happens. Order of calls: `Takeover::new` before anything else is opened,
//! `Takeover::sockets` for the engine, `Takeover::write_pid_file` before the server says where it
//! listens, `Takeover::keep` when all that can fail has been tried, and then the engine runs.
//!
//! | signal | what it does |
//! |---|---|
//! | TERM, INT, QUIT | drains, then ends; a second one ends at once |
//! | HUP | reads the configuration again |
//! | USR1 | opens the logs anew |
//! | USR2 | starts the program anew, which takes over the sockets; then drains |

mod duties;
mod handover;
mod keeper;
mod notify;
mod pid_file;
mod program;
mod signals;
mod starter;
mod upgrade;
mod watchdog;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use staunch_confine::Identity;
use staunch_engine::Inherited;
use staunch_netio::ListenPlace;

pub(crate) use duties::{DrainTimes, Duties, Reloaded};
pub(crate) use pid_file::OwnPidFile;
pub use pid_file::ReloadNote;
pub use starter::run as run_starter;

use crate::descriptors::Descriptors;
use crate::settings;
use handover::{Handed, LastWords, Ready, Received};
use pid_file::PidFile;
use program::Program;
use signals::Signals;
use starter::Starter;

/// A process that has just been started.
pub(crate) struct Takeover {
    signals: Signals,
    program: Program,
    starter: Option<Arc<Starter>>,
    handed: Vec<Handed>,
    ready: Option<Ready>,
    further: Descriptors,
}

impl Takeover {
    /// Takes hold of the signals, and of what the program before this one or systemd has left open.
    ///
    /// # Errors
    /// Signals that cannot be had; something else was left than was announced.
    pub(crate) fn new() -> Result<Self, String> {
        let signals = Signals::new().map_err(|error| format!("cannot watch for signals: {error}"))?;
        let program = Program::of_this_process();
        let Received { handed, ready, further } = handover::receive()?;
        Ok(Self { signals, program, starter: None, handed, ready, further })
    }

    /// By what a process that was to take over says why it does not.
    pub(crate) fn last_words(&self) -> Option<LastWords> {
        self.ready.as_ref()?.last_words()
    }

    /// Has a process beside this one start the next one: to be called before this one is confined, if it is
    /// to be. Without one an upgrade is born within the fence of this process. Whether there is one that is
    /// free.
    pub(crate) fn start_starter(&mut self, user: Option<&Identity>) -> bool {
        self.starter = Starter::new(&self.program, user).map(Arc::new).ok();
        self.starter.is_some() && !staunch_confine::is_born_fenced()
    }

    /// Whether another process serves until this one does.
    pub(crate) fn takes_over(&self) -> bool {
        self.ready.is_some()
    }

    /// Where the sockets listen that were handed over, by the names for `fd:NAME`: systemd's
    /// FileDescriptorName=, and the number of the descriptor; and under [`settings::BOTH`] those of IPv4 that
    /// a socket of IPv6 takes with its own.
    pub(crate) fn names(&self) -> Vec<(String, ListenPlace)> {
        let named = |handed: &Handed| -> Vec<_> {
            handed.names.iter().map(|name| (name.clone(), handed.wanted.clone())).collect()
        };
        let both = self.handed.iter().filter(|handed| handed.takes_ipv4).filter_map(|handed| {
            let port = handed.wanted.address()?.port();
            Some((settings::BOTH.to_owned(), SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into()))
        });
        self.handed.iter().flat_map(named).chain(both).collect()
    }

    /// What was handed over, for the engine: once.
    pub(crate) fn sockets(&mut self) -> Vec<Inherited> {
        self.handed.iter_mut().filter_map(Handed::take).collect()
    }

    /// Further descriptors that the process before has left, for the parts to take.
    pub(crate) fn descriptors(&mut self) -> &mut Descriptors {
        &mut self.further
    }

    /// Writes the PID file, if there is to be one: before the server says that it listens, so that its reader
    /// knows whom to signal. A process that takes over writes it when it serves.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_pid_file(&self, path: Option<PathBuf>) -> Result<OwnPidFile, String> {
        let file = PidFile::new(path);
        if !self.takes_over() {
            file.write()?;
        }
        Ok(OwnPidFile::new(file))
    }

    /// Begins to obey signals, once the workers serve.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn keep(self, duties: Duties, pid_file: &OwnPidFile) -> Result<(), String> {
        keeper::start(
            self.signals,
            (self.program, self.starter),
            self.handed,
            self.ready,
            (duties, pid_file.file()),
        )
    }
}
