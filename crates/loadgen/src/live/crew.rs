//! The threads of a run with readers: some with readers, one that publishes.
//!
//! It must never look into what they tell. Order of calls: `hire`, `publish` when the readers are there, news
//! until all have told their last, `dismiss`.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use staunch_netio::host::cpu;
use staunch_netio::uring::Uring;
use staunch_netio::{Capacity, Epoll, Waker, clock};

use super::crowd::{CrowdPlan, ReaderCrowd};
use super::news::CrewNews;
use super::publisher::{Publisher, PublisherPlan};
use super::shared::LiveShared;
use crate::backend::Backend;
use crate::fault::Fault;
use crate::worker::RunControl;

/// The threads.
pub(crate) struct LiveCrew {
    threads: Vec<JoinHandle<()>>,
    begin: Option<Sender<()>>,
    shared: Arc<LiveShared>,
    control: Arc<RunControl>,
    pub(crate) news: Receiver<CrewNews>,
}

impl LiveCrew {
    /// Starts the readers' threads, which begin at once, and the publisher's, which waits.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn hire(
        crowds: Vec<(CrowdPlan, Option<usize>)>,
        publisher: Option<PublisherPlan>,
        backend: Backend,
        shared: &Arc<LiveShared>,
        control: &Arc<RunControl>,
    ) -> Result<Self, Fault> {
        let (tell, news) = channel();
        let (threads, begin) = (Vec::new(), None);
        let mut crew =
            Self { threads, begin, shared: Arc::clone(shared), control: Arc::clone(control), news };
        for (plan, cpu) in crowds {
            let (shared, tell) = (Arc::clone(shared), tell.clone());
            let name = format!("readers-{}", plan.thread);
            crew.spawn(name, move || told(&tell, || read(plan, cpu, backend, shared, &tell)))?;
        }
        if let Some(plan) = publisher {
            let (shared, control) = (Arc::clone(shared), Arc::clone(control));
            let (begin, begins) = channel();
            crew.begin = Some(begin);
            crew.spawn("publisher".to_owned(), move || {
                // Without a begin there is nothing to be published.
                if begins.recv().is_ok() {
                    told(&tell, || publish(plan, backend, shared, &control, &tell));
                }
            })?;
        }
        Ok(crew)
    }

    fn spawn(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
        let thread = thread::Builder::new().name(name).spawn(work);
        self.threads.push(thread.map_err(|error| Fault::new(format!("cannot start a thread: {error}")))?);
        Ok(())
    }

    /// Publishing begins.
    pub(crate) fn publish(&mut self) {
        if let Some(begin) = self.begin.take() {
            // A thread that is gone has told why.
            let _ = begin.send(());
        }
    }

    /// Waits until all threads are gone.
    ///
    /// # Errors
    /// A thread has panicked.
    pub(crate) fn dismiss(&mut self) -> Result<(), Fault> {
        self.begin = None;
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| Fault::new("a thread of the generator has panicked"))?;
        }
        Ok(())
    }
}

/// A run that ends by a fault leaves no thread behind.
impl Drop for LiveCrew {
    fn drop(&mut self) {
        self.shared.set_phase(None);
        self.control.stop();
        // Why the run has ended is told already.
        let _ = self.dismiss();
    }
}

fn told(tell: &Sender<CrewNews>, work: impl FnOnce() -> Result<(), Fault>) {
    if let Err(fault) = work() {
        // A listener that is gone wants no more.
        let _ = tell.send(CrewNews::Failed(fault));
    }
}

/// A way to the network, whichever it is: the same work on each.
macro_rules! with_network {
    ($backend:expr, $capacity:expr, |$io:ident| $work:expr) => {{
        let backend = $backend;
        let system = |error: io::Error| Fault::new(format!("{} has failed: {error}", backend.name()));
        let waker = Waker::new().map_err(system)?;
        match backend {
            Backend::Uring(features) => {
                let $io = Uring::new(Vec::new(), waker, Capacity::connecting($capacity), &features)
                    .map_err(system)?;
                $work.map_err(system)
            }
            Backend::Epoll => {
                let $io = Epoll::new(Vec::new(), waker, Capacity::connecting(u32::MAX)).map_err(system)?;
                $work.map_err(system)
            }
        }
    }};
}

fn read(
    plan: CrowdPlan,
    cpu: Option<usize>,
    backend: Backend,
    shared: Arc<LiveShared>,
    tell: &Sender<CrewNews>,
) -> Result<(), Fault> {
    if let Some(cpu) = cpu {
        cpu::pin_current_thread(cpu)
            .map_err(|error| Fault::new(format!("cannot run on processor {cpu}: {error}")))?;
    }
    // Connections that are being closed still take a slot.
    let capacity = (plan.topics.len() as u32).saturating_mul(2).saturating_add(64);
    with_network!(backend, capacity, |io| ReaderCrowd::new(io, plan, shared).run(tell))
}

fn publish(
    plan: PublisherPlan,
    backend: Backend,
    shared: Arc<LiveShared>,
    control: &RunControl,
    tell: &Sender<CrewNews>,
) -> Result<(), Fault> {
    // Without it updates are sent 50 us late, which the drift shows.
    let _ = clock::fine_timers();
    let capacity = u32::from(plan.connections) * 2 + 64;
    with_network!(backend, capacity, |io| Publisher::new(io, plan, shared).run(control, tell))
}
