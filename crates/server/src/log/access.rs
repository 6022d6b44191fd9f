//! The access log as the program holds it: set, reopened, finished, counted.
//!
//! Order of calls: [`AccessLog::new`] once, [`AccessLog::set`] at start and whenever the configuration
//! changed,
//! one [`super::Logged`] a worker, [`AccessLog::finish`] at the end. There is no thread before there is a
//! log.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Notice;
use super::bell::Bell;
use super::feeder::{self, Feeder};
use super::fields;
use super::settings::{LogError, LogSettings};
use super::sink::Sink;
use super::writer::{Counts, Order, Writer};

/// See the module's text.
pub struct AccessLog {
    /// What a line needs, as bits; 0: there is no log.
    wanted: AtomicU32,
    bell: Arc<Bell>,
    orders: Sender<Order>,
    counts: Arc<Counts>,
    workers: Mutex<Workers>,
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
    /// Written.
    pub written: u64,
    /// Dropped, because the log's thread was too slow.
    pub dropped: u64,
    /// Lost, because writing failed.
    pub failed: u64,
}

impl AccessLog {
    /// A log that is off. What goes wrong later is told to `notice`.
    pub fn new(notice: Notice) -> Arc<Self> {
        let (bell, counts) = (Arc::<Bell>::default(), Arc::<Counts>::default());
        let (orders, received) = mpsc::channel();
        let writer = Writer::new(received, Arc::clone(&bell), Arc::clone(&counts), notice);
        let workers = Mutex::new(Workers { writer: Some(writer), dropped: Vec::new() });
        Arc::new(Self { wanted: AtomicU32::new(0), bell, orders, counts, workers })
    }

    /// Logs so from now on, or no longer. Lines of the next moment may still go the old way.
    ///
    /// # Errors
    /// If the file cannot be opened: then all stays as it was.
    pub fn set(&self, settings: Option<LogSettings>) -> Result<(), LogError> {
        let Some(settings) = settings else {
            self.wanted.store(0, Relaxed);
            self.order(Order::Output(None));
            return Ok(());
        };
        let wanted = fields::wanted(&settings.format);
        let target = settings.target.clone();
        let sink = Sink::open(settings.target, settings.size_bytes_max, settings.keep)?;
        if let Some(writer) = self.workers().writer.take() {
            let started = thread::Builder::new().name("access-log".into()).spawn(|| writer.run());
            started.map_err(|error| LogError { target, error })?;
        }
        self.order(Order::Output(Some((sink, settings.format))));
        self.wanted.store(wanted, Relaxed);
        Ok(())
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

    /// A worker's end.
    pub(super) fn feeder(&self, worker: u16) -> Feeder {
        let (feeder, outlet) = feeder::ring(worker, Arc::clone(&self.bell));
        self.workers().dropped.push(feeder.dropped());
        self.order(Order::Outlet(outlet));
        feeder
    }

    fn order(&self, order: Order) {
        // The thread never ends, and before it begins its end of the channel is kept here.
        let _ = self.orders.send(order);
        self.bell.wake();
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
