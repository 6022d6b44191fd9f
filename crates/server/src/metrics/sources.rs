//! Where the figures come from, and whether the server is ready.
//!
//! Order of calls: one value a process; `drain` once, when no further requests are wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::process::ProcessFigures;
use super::snapshot::{Readiness, SiteFigures, Snapshot, WorkerFigures};
use crate::log::AccessLog;
use crate::status::About;

/// See the module's text.
pub struct Sources {
    about: About,
    connections_max: u64,
    started: Instant,
    sites: Box<dyn Fn() -> Vec<SiteFigures> + Send + Sync>,
    log: Arc<AccessLog>,
    prepared: AtomicBool,
    draining: AtomicBool,
}

impl Sources {
    /// `sites` tells how far each is; `started` is when the server began. Turns are measured from now on.
    pub fn new(
        about: About,
        connections_max: u64,
        started: Instant,
        sites: Box<dyn Fn() -> Vec<SiteFigures> + Send + Sync>,
        log: Arc<AccessLog>,
    ) -> Self {
        about.stats.iter().for_each(|stats| stats.measure(true));
        let (prepared, draining) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { about, connections_max, started, sites, log, prepared, draining }
    }

    /// No further requests are wanted.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Whether requests should be sent here. Once prepared, a server stays so when content changes.
    pub fn readiness(&self) -> Readiness {
        if !self.prepared.load(Relaxed) {
            self.prepared.store((self.sites)().iter().all(|site| site.done), Relaxed);
        }
        match (self.draining.load(Relaxed), self.prepared.load(Relaxed)) {
            (true, _) => Readiness::Draining,
            (false, true) => Readiness::Ready,
            (false, false) => Readiness::Preparing,
        }
    }

    /// Everything at this moment. Takes the locks of the content threads, none of a worker.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: self.about.version.to_owned(),
            io: self.about.io.to_owned(),
            process_id: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            readiness: self.readiness(),
            connections_max: self.connections_max,
            workers: self.about.stats.iter().map(|stats| WorkerFigures::of(stats)).collect(),
            sites: (self.sites)(),
            log: self.log.counts().into(),
            process: ProcessFigures::read(),
        }
    }
}
