//! `staunch serve --fabric`: the other servers of one LAN, told of by DOSTP.
//!
//! It owns the socket and the thread behind it. What is told and how nodes come to agree is a matter of
//! `staunch_dostp::fabric`, which is pure. It must never be on the path of a request, nor hold a value.
//!
//! Order of calls: `OpenFabric::open` before the process is confined, `OpenFabric::waker` before live
//! data starts, `ServedFabric::start` once threads may be started, `ServedFabric::end` at the end.

mod listener;
mod load;
mod opening;
mod seen;
mod thread;
mod words;

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use staunch_engine::{Notice, Stats};
use staunch_server::LiveSites;
use staunch_server::metrics::FabricFigures;

use load::LoadMeter;
use staunch_program::Failure;
use thread::{FabricOrder, FabricThread};

pub use listener::ask;
pub use opening::is_of_interface;
pub(crate) use opening::{OpenFabric, realtime_topics};

/// A fabric at work.
pub(crate) struct ServedFabric {
    orders: Sender<FabricOrder>,
    wake: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
    seen: Arc<Mutex<FabricFigures>>,
}

impl ServedFabric {
    /// Begins to tell and to hear.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(
        mut open: OpenFabric,
        live: Option<Arc<LiveSites>>,
        stats: Vec<Arc<Stats>>,
        notice: Notice,
    ) -> Result<Self, Failure> {
        let fault = |error: std::io::Error| format!("fabric: cannot start a thread: {error}");
        open.socket.keep().map_err(fault)?;
        let (orders, ordered) = mpsc::channel();
        let seen = Arc::new(Mutex::new(open.figures()));
        let meter = LoadMeter::new(stats, live.clone());
        let wake = open.wake.try_clone().map_err(fault)?;
        let thread = FabricThread::new(open, live, meter, ordered, Arc::clone(&seen), notice);
        let run = std::thread::Builder::new().name("fabric".into()).spawn(move || thread.run());
        let thread = Mutex::new(Some(run.map_err(fault)?));
        Ok(Self { orders, wake, thread, seen })
    }

    /// What is known at this moment.
    pub(crate) fn figures(&self) -> FabricFigures {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops hearing and telling for a new process, at the begin of an upgrade, once live data has stopped
    /// numbering. Gives the end of a pair of sockets from which that process takes the socket. What is told
    /// meanwhile is asked for afterwards.
    pub(crate) fn lend(&self) -> Option<OwnedFd> {
        let (answer, answered) = mpsc::channel();
        self.order(FabricOrder::Lend(answer));
        // A thread that is over answers nobody: the new process goes without.
        answered.recv().ok()?
    }

    /// Goes on, because the new process did not come to serve.
    pub(crate) fn take_back(&self) {
        self.order(FabricOrder::TakeBack);
    }

    /// Leaves the fabric to the new process, which serves now.
    pub(crate) fn hand_over(&self) {
        self.order(FabricOrder::HandOver);
    }

    /// Tells the others that this node leaves, and waits for the thread.
    pub(crate) fn end(&self) {
        self.order(FabricOrder::End);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic of the thread was printed; there is nobody to hand it to.
        let _ = thread.map(JoinHandle::join);
    }

    fn order(&self, order: FabricOrder) {
        // A thread that is over needs no order; one that was not woken yet finds it all the same.
        let _ = self.orders.send(order);
        let _ = (&self.wake).write(&[0]);
    }
}
