//! Where the figures come from, and whether the server is ready.
//!
//! Order of calls: one value a process; `serve` once the workers accept, `drain` once, when no further
//! requests are wanted.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::fabric::FabricFigures;
use super::process::ProcessFigures;
use super::snapshot::{ErrorLogFigures, Readiness, ReloadFigures, SiteFigures, Snapshot, WorkerFigures};
use crate::live::LiveFigures;
use crate::log::{AccessLog, ErrorLog};
use crate::proxy::ProxyFigures;
use crate::status::About;

/// What is told of what is served.
#[derive(Debug, Clone, Default)]
pub struct ContentFigures {
    /// How far each site is.
    pub sites: Vec<SiteFigures>,
    /// Live data, if there is any.
    pub live: Option<LiveFigures>,
    /// Applications that requests are passed on to, if there are any.
    pub proxy: Option<ProxyFigures>,
    /// The other servers of the LAN, if they are told of.
    pub fabric: Option<FabricFigures>,
    /// Faults of single sites and of logs while the rest is served, in sentences.
    pub troubles: Vec<String>,
}

/// The sources of all figures.
pub struct Sources {
    about: About,
    connections_max: u64,
    started: Instant,
    content: Box<dyn Fn() -> ContentFigures + Send + Sync>,
    log: Arc<AccessLog>,
    error_log: Arc<ErrorLog>,
    serving: AtomicBool,
    walked: AtomicBool,
    draining: AtomicBool,
    reload: Mutex<Option<ReloadFigures>>,
}

impl Sources {
    /// `content` tells how far each site is, of live data and of the fabric; `started` is when the server
    /// began; `takes_over`: another process serves at the same sockets until this one does, so requests may
    /// come at once. Turns are measured from now on.
    pub fn new(
        about: About,
        connections_max: u64,
        started: Instant,
        content: Box<dyn Fn() -> ContentFigures + Send + Sync>,
        logs: (Arc<AccessLog>, Arc<ErrorLog>),
        takes_over: bool,
    ) -> Self {
        about.stats.iter().for_each(|stats| stats.turns.measure(true));
        let [serving, walked] = [takes_over; 2].map(AtomicBool::new);
        let (log, error_log) = logs;
        let draining = AtomicBool::new(false);
        let reload = Mutex::default();
        Self { about, connections_max, started, content, log, error_log, serving, walked, draining, reload }
    }

    /// The configuration was read again: whether it is in use, and what is to be said.
    pub fn note_reload(&self, is_applied: bool, text: &str) {
        let mut reload = self.reload.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let number = reload.as_ref().map_or(0, |last| last.number) + 1;
        *reload = Some(ReloadFigures { number, is_applied, text: text.to_owned() });
    }

    /// The workers accept.
    pub fn serve(&self) {
        self.serving.store(true, Relaxed);
    }

    /// No further requests are wanted.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// What is known of the other servers of the LAN.
    pub(crate) fn fabric(&self) -> Option<FabricFigures> {
        (self.content)().fabric
    }

    /// What is known of applications.
    pub(crate) fn proxy(&self) -> Option<ProxyFigures> {
        (self.content)().proxy
    }

    /// Whether requests should be sent here: workers accept, and every folder was walked once. Encodings are
    /// not waited for: until they are made the same content is sent without them.
    pub fn readiness(&self) -> Readiness {
        if !self.walked.load(Relaxed) {
            self.walked.store((self.content)().sites.iter().all(|site| site.walked), Relaxed);
        }
        let is_ready = self.serving.load(Relaxed) && self.walked.load(Relaxed);
        match (self.draining.load(Relaxed), is_ready) {
            (true, _) => Readiness::Draining,
            (false, true) => Readiness::Ready,
            (false, false) => Readiness::Preparing,
        }
    }

    /// Faults of single sites and of logs while the rest is served, in sentences.
    pub fn troubles(&self) -> Vec<String> {
        self.with_logs((self.content)().troubles)
    }

    fn with_logs(&self, mut troubles: Vec<String>) -> Vec<String> {
        troubles.extend(self.log.trouble().map(|why| format!("access_log: {why}")));
        troubles.extend(self.error_log.trouble().map(|why| format!("error_log: {why}")));
        troubles
    }

    /// Everything at this moment. Takes the locks of the content threads, none of a worker.
    pub fn snapshot(&self) -> Snapshot {
        let ContentFigures { sites, live, proxy, fabric, troubles } = (self.content)();
        let own_lines = self.error_log.counts();
        Snapshot {
            version: self.about.version.to_owned(),
            io: self.about.io.to_owned(),
            process_id: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            readiness: self.readiness(),
            connections_max: self.connections_max,
            workers: self.about.stats.iter().map(|stats| WorkerFigures::of(stats)).collect(),
            sites,
            live,
            proxy,
            fabric,
            troubles: self.with_logs(troubles),
            log: self.log.counts().into(),
            error_log: ErrorLogFigures { written: own_lines.written(), lost: own_lines.lost() },
            process: ProcessFigures::read(),
            reload: self.reload.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone(),
        }
    }
}
