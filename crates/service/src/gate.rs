//! The gate inside a server: put up before the server gives its rights up, run by a thread of it.
//!
//! Order: `ServedGate::put_up` once sockets are bound and before anything is confined, `ServedGate::run`
//! afterwards, `WorkingGate::take_down` when the server has ended. What it cannot do once it is confined:
//! see that
//! interfaces are renamed or removed, and come back to one.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use staunch_gate::controller::Settings;
use staunch_gate::daemon::{Daemon, Plan};
use staunch_gate::metrics;
use staunch_gate::program::{Reject, Way};
use staunch_gate::snapshot::Board;
use staunch_server::log::Notice;

/// A gate of a server, standing.
pub(crate) struct ServedGate {
    daemon: Daemon,
    /// For the start-up block.
    pub(crate) words: String,
}

/// A gate of a server, at work.
pub(crate) struct WorkingGate {
    stop: Arc<AtomicBool>,
    work: JoinHandle<()>,
    board: Board,
    /// For the start-up block.
    pub(crate) words: String,
}

impl ServedGate {
    /// Puts it up at these interfaces, for the ports the server listens at. Starts no thread.
    ///
    /// # Errors
    /// Why it cannot, in a sentence.
    pub(crate) fn put_up(
        interfaces: &[String],
        addresses: &[SocketAddr],
        notice: &Notice,
    ) -> Result<Self, String> {
        let ports: BTreeSet<u16> = addresses.iter().map(SocketAddr::port).collect();
        let plan = Plan {
            interfaces: interfaces.to_vec(),
            ports: ports.into_iter().collect(),
            way: Way::Auto,
            reject: Reject::Drop,
            dry_run: false,
            allow: Vec::new(),
            deny: Vec::new(),
            addresses: Vec::new(),
            // A process without rights could not put settings back.
            coalescing: Duration::ZERO,
            settings: Settings::default(),
            comes_back: false,
        };
        let notice = Arc::clone(notice);
        let say =
            Arc::new(move |event: &staunch_gate::daemon::Event| notice(&format!("gate: {}", event.text)));
        let daemon =
            Daemon::start(plan, env!("CARGO_PKG_VERSION"), say).map_err(|text| format!("gate: {text}"))?;
        let interfaces: Vec<String> =
            daemon.interfaces().map(|(name, way)| format!("{name} ({way})")).collect();
        let mut words = interfaces.join(", ");
        for note in daemon.notes() {
            words.push_str(&format!("\n  gate lost    {note}"));
        }
        Ok(Self { daemon, words })
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn run(self) -> Result<WorkingGate, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let Self { daemon, words } = self;
        let (board, stopped) = (daemon.board(), Arc::clone(&stop));
        let work = thread::Builder::new().name("gate".into()).spawn(move || daemon.run(&stopped));
        let work = work.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(WorkingGate { stop, work, board, words })
    }
}

impl WorkingGate {
    /// Its metrics, as Prometheus reads them.
    pub(crate) fn metrics(&self) -> String {
        metrics::text(&self.board.latest())
    }

    /// Takes it off its interfaces.
    pub(crate) fn take_down(self) {
        self.stop.store(true, Relaxed);
        // A loop that failed has taken it off already.
        let _ = self.work.join();
    }
}
