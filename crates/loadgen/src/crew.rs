//! The threads of a run: each makes its own lanes and its own way to the network, and all begin together.
//!
//! It must never look into a report. Order of calls: `hire`, `begin`, reports until all are over, `dismiss`.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use staunch_netio::host::cpu;
use staunch_netio::uring::Uring;
use staunch_netio::{Capacity, Epoll, Io, Waker, clock};

use crate::backend::Backend;
use crate::fault::Fault;
use crate::fitting::{self, Fittings};
use crate::network_side::NetworkSide;
use crate::plan::Plan;
use crate::secured::TlsBase;
use crate::tally::Report;
use crate::worker::{RunControl, Times, Worker};

/// Connections a thread may have on io_uring, which opens rings as it needs them.
const CONNECTIONS_MAX: u32 = 4_000_000;

/// The threads, waiting for their begin or working.
pub(crate) struct WorkerThreads {
    begins: Vec<Sender<Times>>,
    threads: Vec<JoinHandle<Result<(), Fault>>>,
    pub(crate) reports: Receiver<Report>,
}

impl WorkerThreads {
    /// Starts the threads and waits until each is ready.
    ///
    /// # Errors
    /// The first fault of a thread: a processor that is not there, no ring, no memory, a wrong request; and
    /// authorities that cannot be read.
    pub(crate) fn hire(plan: &Plan, backend: Backend, control: &Arc<RunControl>) -> Result<Self, Fault> {
        let (report, reports) = channel();
        let (ready, readies) = channel();
        let tls = plan.tls.as_ref().map(TlsBase::open).transpose()?;
        let plan = Arc::new(plan.clone());
        let mut crew = Self { begins: Vec::new(), threads: Vec::new(), reports };
        for number in 0..plan.threads.len() {
            let (begin, begins) = channel();
            let post = Post {
                number,
                plan: Arc::clone(&plan),
                tls: tls.clone(),
                backend,
                control: Arc::clone(control),
                ready: ready.clone(),
                begins,
                report: report.clone(),
            };
            let name = format!("load-{number}");
            let thread = thread::Builder::new().name(name).spawn(move || post.work());
            crew.threads.push(thread.map_err(|error| Fault::new(format!("cannot start a thread: {error}")))?);
            crew.begins.push(begin);
        }
        drop(ready);
        for _ in 0..plan.threads.len() {
            readies.recv().unwrap_or_else(|_| Err(Fault::new("a thread ended before it was ready")))?;
        }
        Ok(crew)
    }

    /// Has all threads begin.
    pub(crate) fn begin(&self, times: Times) {
        for begin in &self.begins {
            // A thread that is gone tells why when it is dismissed.
            let _ = begin.send(times);
        }
    }

    /// Waits until all threads are gone.
    ///
    /// # Errors
    /// The first fault of a thread.
    pub(crate) fn dismiss(self) -> Result<(), Fault> {
        for thread in self.threads {
            thread.join().unwrap_or_else(|_| Err(Fault::new("a thread of the generator has panicked")))?;
        }
        Ok(())
    }
}

/// What one thread needs.
struct Post {
    number: usize,
    plan: Arc<Plan>,
    tls: Option<TlsBase>,
    backend: Backend,
    control: Arc<RunControl>,
    ready: Sender<Result<(), Fault>>,
    begins: Receiver<Times>,
    report: Sender<Report>,
}

impl Post {
    fn work(self) -> Result<(), Fault> {
        let told = |fault: &Fault| drop(self.ready.send(Err(fault.clone())));
        let fittings = self.settle_in().inspect_err(told)?;
        let system = |error: io::Error| Fault::new(format!("cannot set up {}: {error}", self.backend.name()));
        let waker = Waker::new().map_err(system).inspect_err(told)?;
        match self.backend {
            Backend::Uring(features) => {
                let capacity = Capacity::connecting(fittings.capacity().unwrap_or(CONNECTIONS_MAX));
                let io =
                    Uring::new(Vec::new(), waker, capacity, &features).map_err(system).inspect_err(told)?;
                self.offer(io, fittings)
            }
            Backend::Epoll => {
                let capacity = Capacity::connecting(u32::MAX);
                let io = Epoll::new(Vec::new(), waker, capacity).map_err(system).inspect_err(told)?;
                self.offer(io, fittings)
            }
        }
    }

    fn settle_in(&self) -> Result<Fittings, Fault> {
        if let Some(cpu) = self.plan.threads[self.number] {
            cpu::pin_current_thread(cpu)
                .map_err(|error| Fault::new(format!("cannot run on processor {cpu}: {error}")))?;
        }
        // Without it the starts are 50 us late, which the drift shows.
        let _ = clock::fine_timers();
        let tls = self.tls.as_ref().map(TlsBase::client);
        fitting::fit(&self.plan, self.number, tls.as_ref())
    }

    fn offer<I: Io>(&self, io: I, fittings: Fittings) -> Result<(), Fault> {
        let net = NetworkSide::new(io, self.number as u32);
        if self.ready.send(Ok(())).is_err() {
            return Ok(());
        }
        let Ok(times) = self.begins.recv() else { return Ok(()) };
        Worker::new(net, fittings.begin(times.began_ns, times.until_ns), times)
            .run(&self.control, &self.report)
            .map_err(|error| Fault::new(format!("{} has failed: {error}", self.backend.name())))
    }
}
