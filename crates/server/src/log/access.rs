//! The access log as the program holds it: set, reopened, finished, counted.
//!
//! Order of calls: [`AccessLog::new`] once, [`AccessLog::prepare`] and [`AccessLog::commit`] at start and
//! whenever the configuration changed, one `LogAccount` per worker, [`AccessLog::finish`] at the end.
//! There is no thread before there is a log.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Notice;
use super::counts::Counts;
use super::feeder::{self, Feeder};
use super::output::Output;
use super::settings::{LogError, LogPlan, LogSettings};
use super::signal::Signal;
use super::sink::Sink;
use super::writer::{Order, Writer};

/// The access log of a process.
pub struct AccessLog {
    /// What a line needs, as bits; 0: there is no log.
    wanted: AtomicU32,
    signal: Arc<Signal>,
    orders: Sender<Order>,
    counts: Arc<Counts>,
    workers: Mutex<Workers>,
}

/// What is to be logged to, opened and not yet written to.
pub struct Prepared {
    output: Option<Output>,
    /// The parts of an exchange that lines need, as bits.
    wanted: u32,
}

impl Prepared {
    /// Why places could not be opened, of those that could not.
    pub fn absences(&self) -> Vec<String> {
        let absent = self.output.as_ref().map(Output::absent).unwrap_or_default();
        absent.into_iter().map(|(_, why)| why).collect()
    }
}

struct Workers {
    /// Until it has a thread.
    writer: Option<Writer>,
    /// What each worker dropped.
    dropped: Vec<Arc<AtomicU64>>,
}

/// What became of lines since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogCounts {
    /// Lines that were written.
    pub written: u64,
    /// Dropped, because the log's thread was too slow.
    pub dropped: u64,
    /// Lost, because writing failed.
    pub failed: u64,
}

impl AccessLog {
    /// A log that is off. What goes wrong later is told to `notice`.
    pub fn new(notice: Notice) -> Arc<Self> {
        let (signal, counts) = (Arc::<Signal>::default(), Arc::<Counts>::default());
        let (orders, received) = mpsc::channel();
        let writer = Writer::new(received, Arc::clone(&signal), Arc::clone(&counts), notice);
        let workers = Mutex::new(Workers { writer: Some(writer), dropped: Vec::new() });
        Arc::new(Self { wanted: AtomicU32::new(0), signal, orders, counts, workers })
    }

    /// Opens what is to be logged to, and starts the thread that will write it.
    ///
    /// # Errors
    /// If the file cannot be opened, or no thread be started: then all stays as it was.
    pub fn prepare(&self, plan: impl Into<LogPlan>) -> Result<Prepared, LogError> {
        self.prepare_by(&plan.into(), |log| Sink::open(log.target.clone(), log.size_bytes_max, log.keep))
    }

    fn prepare_by(
        &self,
        plan: &LogPlan,
        open: impl FnMut(&LogSettings) -> Result<Sink, LogError>,
    ) -> Result<Prepared, LogError> {
        let output = Output::new(plan, open)?;
        if let Some(place) = output.as_ref().and_then(|output| output.places.first()) {
            self.start().map_err(|error| LogError { target: place.sink.target().clone(), error })?;
        }
        Ok(Prepared { output, wanted: Output::wanted(plan) })
    }

    /// As [`Self::prepare`], for a start: what cannot be opened is no reason not to serve. Its lines are lost
    /// until it can be, [`Self::trouble`] says why, and it is tried again while there are lines.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn prepare_what_can_be(&self, plan: impl Into<LogPlan>) -> Result<Prepared, LogError> {
        let open = |log: &LogSettings| Sink::open_or_await(log.target.clone(), log.size_bytes_max, log.keep);
        self.prepare_by(&plan.into(), |log| Ok(open(log)))
    }

    /// Why lines are lost at present, in a sentence, if they are.
    pub fn trouble(&self) -> Option<String> {
        self.counts.trouble()
    }

    /// Logs so from now on, or no longer. Lines of the next moment may still go the old way.
    pub fn commit(&self, prepared: Prepared) {
        let Prepared { output, wanted } = prepared;
        if wanted == 0 {
            self.wanted.store(0, Relaxed);
        }
        self.counts.begin(output.as_ref().map(Output::absent).unwrap_or_default());
        self.order(Order::Output(output.map(Box::new)));
        self.wanted.store(wanted, Relaxed);
    }

    /// Both at once.
    ///
    /// # Errors
    /// Those of [`Self::prepare`].
    pub fn set(&self, plan: impl Into<LogPlan>) -> Result<(), LogError> {
        self.prepare(plan).map(|prepared| self.commit(prepared))
    }

    /// Opens the file that now has the name, for one that was renamed. If that fails, the old one is kept and
    /// the notice says so.
    pub fn reopen(&self) {
        self.order(Order::Reopen);
    }

    /// Waits until everything logged before is written, but no longer than `patience`. Whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        if self.workers().writer.is_some() {
            return true;
        }
        let (sender, done) = mpsc::sync_channel(1);
        self.order(Order::Flush(sender));
        done.recv_timeout(patience).is_ok()
    }

    /// What became of lines until now.
    pub fn counts(&self) -> LogCounts {
        let dropped = self.workers().dropped.iter().map(|dropped| dropped.load(Relaxed)).sum();
        LogCounts {
            written: self.counts.written.load(Relaxed),
            dropped,
            failed: self.counts.failed.load(Relaxed),
        }
    }

    /// What a line needs, as bits; 0: there is no log.
    #[inline]
    pub(super) fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed)
    }

    /// Whether anything is logged at present.
    pub fn is_on(&self) -> bool {
        self.wanted() != 0
    }

    /// A worker's end.
    pub(super) fn feeder(&self, worker: u16) -> Feeder {
        let (feeder, outlet) = feeder::ring(worker, Arc::clone(&self.signal));
        self.workers().dropped.push(feeder.dropped());
        self.order(Order::Outlet(outlet));
        feeder
    }

    fn start(&self) -> io::Result<()> {
        let mut workers = self.workers();
        if let Some(writer) = workers.writer.take() {
            // The closure is lost with the thread that could not be started, so the writer stays here until
            // the thread asks for it.
            let place = Arc::new(Mutex::new(Some(writer)));
            let taken = Arc::clone(&place);
            let run = move || {
                let writer = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
                writer.into_iter().for_each(Writer::run);
            };
            if let Err(error) = thread::Builder::new().name("access-log".into()).spawn(run) {
                workers.writer = place.lock().unwrap_or_else(PoisonError::into_inner).take();
                return Err(error);
            }
        }
        Ok(())
    }

    fn order(&self, order: Order) {
        // The thread never ends, and before it begins its end of the channel is kept here.
        let _ = self.orders.send(order);
        self.signal.wake();
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
