//! What every scenario of the gate plays on: the bed, a server in it, and the gate when there is one.
//!
//! It owns the order of a measurement: a crowd is there before it is measured, so that a figure is of the
//! state that lasts and not of its beginning. It must never judge.
use std::path::{Path, PathBuf};
use std::thread::{self, sleep};
use std::time::Duration;

use staunch_loadgen::report::Document;

use super::bed::{Bed, Reception};
use super::clients::{self, Clients, Crowd};
use super::daemon::GateProcess;
use super::flood::Flooder;
use super::spent::Spent;
use super::subject::{Name, PageKind, Subject};

/// How long a crowd is there before it is measured: longer than clients wait.
const BEFORE: Duration = Duration::from_millis(1200);
/// After a load, until what waits in the server is over.
const REST: Duration = Duration::from_millis(500);
/// Until a crowd's first request, at most: its programs start.
const STARTS: Duration = Duration::from_millis(300);
/// Share of the peak at which those come who are to be known when the flood begins.
const ACQUAINTANCE: f64 = 0.5;

/// What came of a crowd under a flood.
#[derive(Debug)]
pub(crate) struct Flooded {
    /// What the crowd got.
    pub(crate) answers: Document,
    /// Segments of the flood a second.
    pub(crate) came_per_s: f64,
    /// How the server's processor was spent.
    pub(crate) spent: String,
}

/// The bed with a server in it.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The bed. (Dropped after what runs in it: the order of these fields matters.)
    pub(crate) subject: Subject,
    pub(crate) bed: Bed,
    /// The program under test.
    pub(crate) staunch: PathBuf,
    scratch: PathBuf,
    content: PageKind,
}

impl Stage {
    /// Makes it. The server has one page, and may queue so many connections.
    ///
    /// # Errors
    /// No privilege, or a server that does not start.
    pub(crate) fn set(
        name: Name,
        reception: Reception,
        backlog: u32,
        staunch: &Path,
        scratch: &Path,
    ) -> Result<Self, String> {
        Self::set_with(PageKind::Page, name, reception, backlog, staunch, scratch)
    }

    /// Sets a stage as [`Stage::set`] does, with other content.
    ///
    /// # Errors
    /// No privilege, or a server that does not start.
    pub(crate) fn set_with(
        content: PageKind,
        name: Name,
        reception: Reception,
        backlog: u32,
        staunch: &Path,
        scratch: &Path,
    ) -> Result<Self, String> {
        let bed = Bed::make(reception)?;
        bed.limit_backlog(backlog)?;
        let subject = Subject::start(name, content, &bed, staunch, scratch)?;
        Ok(Self { subject, bed, staunch: staunch.to_path_buf(), scratch: scratch.to_path_buf(), content })
    }

    fn clients(&self) -> Clients<'_> {
        Clients { bed: &self.bed, staunch: &self.staunch, content: self.content }
    }

    /// What the server answers to patient clients, a second.
    ///
    /// # Errors
    /// See [`Clients::peak`].
    pub(crate) fn peak(&self, seconds: f64) -> Result<f64, String> {
        self.clients().peak(seconds)
    }

    /// Opens the gate before the server.
    ///
    /// # Errors
    /// See [`GateProcess::open`].
    pub(crate) fn gate(&self, arguments: &[&str]) -> Result<GateProcess, String> {
        if arguments.contains(&"cookie") {
            self.bed.take_cookies(&self.scratch)?;
        }
        GateProcess::open(&self.bed, &self.staunch, arguments)
    }

    /// Begins to look at who has the server's processor.
    ///
    /// # Errors
    /// See [`Spent::begin`].
    pub(crate) fn spent(&self, daemon: Option<&GateProcess>) -> Result<Spent, String> {
        Spent::begin(&self.subject, &self.bed, daemon)
    }

    /// Lets a crowd come, whatever was before.
    ///
    /// # Errors
    /// See [`Clients::offer`].
    pub(crate) fn offer(&self, crowd: &Crowd) -> Result<Document, String> {
        self.clients().offer(crowd)
    }

    /// Regulars at a steady rate, when it has lasted for a while.
    ///
    /// # Errors
    /// See [`Clients::offer`].
    pub(crate) fn steady(&self, per_second: f64, seconds: f64) -> Result<Document, String> {
        self.lasting(&Crowd::regulars(per_second, seconds))
    }

    /// A crowd of one rate, when it has lasted for a while.
    ///
    /// # Errors
    /// See [`Clients::offer`].
    pub(crate) fn lasting(&self, crowd: &Crowd) -> Result<Document, String> {
        sleep(REST);
        self.clients().offer_after(crowd, BEFORE)
    }

    /// A crowd under a flood, when both have lasted for a while. All regulars come before the flood, so they
    /// have been seen. The daemon is that of the gate, if there is one.
    ///
    /// # Errors
    /// See [`Clients::offer`] and [`Flooder::begin`].
    pub(crate) fn flooded(
        &self,
        syn_per_s: u32,
        crowd: &Crowd,
        peak: f64,
        daemon: Option<&GateProcess>,
    ) -> Result<Flooded, String> {
        sleep(REST);
        let per_second = ACQUAINTANCE * peak;
        self.offer(&Crowd::regulars(per_second, 1.2 * f64::from(clients::REGULARS) / per_second))?;
        let flood = Flooder::begin(&self.bed, &self.staunch, syn_per_s)?;
        let meanwhile = Duration::from_secs_f64(crowd.seconds.unwrap_or_default()).saturating_sub(STARTS);
        let (answers, spent) = thread::scope(|scope| {
            let spent = scope.spawn(|| {
                sleep(BEFORE + STARTS);
                let spent = self.spent(daemon)?;
                sleep(meanwhile);
                Ok::<String, String>(spent.told())
            });
            let answers = self.clients().offer_after(crowd, BEFORE);
            (answers, spent.join().unwrap_or_else(|_| Err("nobody looked at the processor".to_owned())))
        });
        Ok(Flooded { answers: answers?, came_per_s: flood.end(&self.bed)?, spent: spent? })
    }
}
