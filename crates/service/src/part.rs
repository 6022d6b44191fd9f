//! The contract of a part of the server: what is done with each at every step of the server's life.
//!
//! Order of calls: a part is opened by a function of its own, before sockets are bound; `Part::bound`
//! before the process is confined; `Part::start` once it is; then reloads and upgrades; `Part::drain` and
//! `Part::end`, which may come at any step, and more than once: what a part has opened is closed by it, or
//! when the part is dropped. A part must never know the list it stands in.

use std::net::SocketAddr;
use std::sync::Arc;

use staunch_config::Config;
use staunch_confine::Identity;
use staunch_engine::{Notice, Post, Stats};
use staunch_program::Failure;
use staunch_server::Mail;
use staunch_server::metrics::ContentFigures;

use crate::descriptors::Descriptors;

/// The surroundings when parts are opened: nothing is bound, and the process is still the user that started
/// it.
pub(crate) struct BeforeBinding<'a> {
    pub(crate) config: &'a Config,
    /// The user that the process will be.
    pub(crate) user: Option<&'a Identity>,
    pub(crate) notice: &'a Notice,
    /// Another process serves until this one does.
    pub(crate) takes_over: bool,
}

/// The surroundings once sockets are bound.
pub(crate) struct Surroundings<'a> {
    pub(crate) config: &'a Config,
    pub(crate) notice: &'a Notice,
    /// Another process serves until this one does.
    pub(crate) takes_over: bool,
    /// Where HTTP is spoken in plain text.
    pub(crate) plain: &'a [SocketAddr],
    /// Where TLS is spoken.
    pub(crate) secured: &'a [SocketAddr],
    pub(crate) connections_max: u64,
    /// Mail to the workers.
    pub(crate) post: Post<Mail>,
    /// Counters of the workers.
    pub(crate) stats: Vec<Arc<Stats>>,
}

/// Settings that are to come into use while the server runs.
pub(crate) struct NewSettings<'a> {
    /// The settings the server was started with.
    pub(crate) started: &'a Config,
    pub(crate) config: &'a Config,
    /// Where HTTP will be spoken in plain text.
    pub(crate) plain: &'a [SocketAddr],
    /// Where TLS will be spoken.
    pub(crate) secured: &'a [SocketAddr],
    /// Whether another process, free to confine itself anew, can take over.
    pub(crate) has_starter: bool,
    /// An access log is switched on.
    pub(crate) begins_access_log: bool,
}

/// Why settings do not come into use.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The settings are at fault.
    Faulty(String),
    /// Only a process that confines itself anew can go by them.
    Beyond(String),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Faulty(failure.text)
    }
}

/// The second half of a reload, which cannot fail. Gives what is to be said; nothing has changed if this is
/// dropped instead.
pub(crate) type Commit<'a> = Box<dyn FnOnce() -> Vec<String> + 'a>;

/// The end of the server's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving {
    /// Another process serves from now on.
    pub(crate) hands_over: bool,
    /// In how many seconds readers of live data leave.
    pub(crate) readers_within_s: u64,
}

/// A part of the server; every step that it has nothing to do with stays as it is here.
pub(crate) trait Part: Send + Sync {
    /// Told that sockets are bound: the last step before the process is confined. Starts no thread.
    ///
    /// # Errors
    /// Whatever keeps the server from serving.
    fn bound(&self, _around: &Surroundings<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Lines of the start-up block.
    fn describe(&self, _config: &Config) -> Vec<String> {
        Vec::new()
    }

    /// Begins its work, within the fence. Gives what is to be said once the server has told where it listens.
    ///
    /// # Errors
    /// Whatever keeps the server from serving.
    fn start(&self, _around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// The first half of a reload: everything that can fail, without a change.
    ///
    /// # Errors
    /// Why the settings do not come into use.
    fn prepare<'a>(&'a self, _new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        Ok(Box::new(Vec::new))
    }

    /// Told that another process is about to take over: stops what must not go on in both, and gives the
    /// lines by which that passes.
    ///
    /// # Errors
    /// Why it cannot: then [`Part::take_back`] is due.
    fn lend(&self, _lent: &mut Descriptors) -> Result<(), String> {
        Ok(())
    }

    /// Gives descriptors that the process that takes over uses beside this one.
    fn descriptors(&self, _shared: &mut Descriptors) {}

    /// Told that the other process did not take over.
    fn take_back(&self) {}

    /// Told that the process before this one has left the sockets, or is gone.
    fn take_over(&self) {}

    /// Told that the server's work ends.
    fn drain(&self, _departure: Leaving) {}

    /// Ends its work, and waits for what has to be kept.
    fn end(&self) {}

    /// Writes what it knows into the figures of the admin address.
    fn figures(&self, _figures: &mut ContentFigures) {}

    /// Adds its metrics, as Prometheus reads them.
    fn metrics(&self, _text: &mut String) {}
}
