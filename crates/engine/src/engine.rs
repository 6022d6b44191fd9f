//! From settings to running workers: sockets, backend, threads.
//!
//! It owns the listening sockets until the workers take them. It must never look at what is served. Order of
//! calls: `Engine::bind`, then whatever needs `post`, `control` or `stats`, then `run`.

mod resources;
mod settings;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use staunch_netio::Epoll;
use staunch_netio::host::cpu;
use staunch_netio::uring::Uring;
use staunch_netio::{Capacity, FileReader, Io, Waker, descriptors, memory};
use staunch_protocol::Timeouts;

use self::resources::{BoundSockets, ChosenBackend, choose, limit_connections, limit_memory, listen};
pub use self::settings::{IoChoice, Settings};
use crate::clients::{ClientPolicy, ClientTable};
use crate::control::Control;
use crate::handler::Handler;
use crate::listening::Inherited;
use crate::mailbox::{Mailbox, Post};
use crate::order::ListenerName;
use crate::pressure::{Complaints, Pressure};
use crate::secured::TlsSettings;
use crate::start_error::StartError;
use crate::stats::Stats;
use crate::worker::{Worker, WorkerParts};

/// Bound sockets and chosen backend: everything that can fail has been tried.
pub struct Engine<M> {
    settings: Settings,
    sockets: BoundSockets,
    control: Control,
    shares_queues: bool,
    backend: ChosenBackend,
    reason: String,
    connections_max: u64,
    connections_reason: String,
    memory_budget_bytes: u64,
    memory_reason: String,
    wakers: Vec<Waker>,
    mailboxes: Vec<Arc<Mailbox<M>>>,
    stats: Vec<Arc<Stats>>,
}

impl<M: Send + 'static> Engine<M> {
    /// Raises the descriptor limit, chooses the backend and binds every address for every worker.
    ///
    /// # Errors
    /// An address that is taken, not ours, or needs a privilege; io_uring asked for where it is not to be
    /// had.
    pub fn bind(settings: Settings) -> Result<Self, StartError> {
        Self::bind_or_take_over(settings, Vec::new())
    }

    /// Like [`Engine::bind`], but addresses at which an inherited socket listens are not bound anew. What was
    /// inherited for another address is closed.
    ///
    /// # Errors
    /// Those of [`Engine::bind`].
    pub fn bind_or_take_over(settings: Settings, inherited: Vec<Inherited>) -> Result<Self, StartError> {
        let listens =
            !settings.listen.is_empty() || settings.tls.as_ref().is_some_and(|tls| !tls.listen.is_empty());
        assert!(!settings.workers.is_empty() && listens);
        let descriptors = descriptors::raise_descriptor_limit().map_err(|error| {
            StartError::System(format!("cannot raise the limit of file descriptors: {error}"))
        })?;
        let (backend, reason) = choose(settings.io)?;
        let (memory_budget_bytes, memory_reason) = limit_memory(&settings)?;
        let (connections_max, connections_reason) =
            limit_connections(&settings, &backend, descriptors, memory_budget_bytes)?;
        let wakers = settings
            .workers
            .iter()
            .map(|_| Waker::new())
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| StartError::System(format!("cannot make an eventfd: {error}")))?;
        let mailboxes: Vec<_> = wakers.iter().map(|waker| Arc::new(mailbox(waker.clone()))).collect();
        let control = Control::new(&mailboxes).with_socket_mode(settings.socket_mode);
        let rival =
            |inherited: &Inherited| inherited.backend.as_ref().is_some_and(|name| name != backend.name());
        let shares_queues = !inherited.iter().any(rival);
        let sockets = listen(&settings, inherited, shares_queues, &control)?;
        let stats = wakers.iter().map(|_| Arc::new(Stats::default())).collect();
        Ok(Self {
            settings,
            sockets,
            control,
            shares_queues,
            backend,
            reason,
            connections_max,
            connections_reason,
            memory_budget_bytes,
            memory_reason,
            wakers,
            mailboxes,
            stats,
        })
    }

    /// Chooses the backend once more, for a process that has become another user since: what root may use,
    /// others may not.
    ///
    /// # Errors
    /// io_uring or a number of connections asked for, where they are no longer to be had.
    pub fn choose_again(&mut self) -> Result<(), StartError> {
        let descriptors = descriptors::raise_descriptor_limit().map_err(|error| {
            StartError::System(format!("cannot raise the limit of file descriptors: {error}"))
        })?;
        (self.backend, self.reason) = choose(self.settings.io)?;
        (self.connections_max, self.connections_reason) =
            limit_connections(&self.settings, &self.backend, descriptors, self.memory_budget_bytes)?;
        Ok(())
    }

    /// Takes connections also from khttpd's device, of which every worker gets a copy.
    ///
    /// # Errors
    /// EMFILE.
    pub fn take_from(&mut self, device: &OwnedFd) -> io::Result<()> {
        for listeners in &mut self.sockets.listeners {
            listeners.push((ListenerName::HANDOVER, device.try_clone()?));
        }
        Ok(())
    }

    /// Where it listens in plain text, with the ports taken.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.sockets.plain
    }

    /// Where it speaks TLS, with the ports taken.
    pub fn secured_addresses(&self) -> &[SocketAddr] {
        &self.sockets.secured
    }

    /// The socket files it listens at, each with whether TLS is spoken there.
    pub fn socket_files(&self) -> &[(PathBuf, bool)] {
        &self.sockets.files
    }

    /// Name of the backend, and why it was chosen.
    pub fn backend(&self) -> (&'static str, &str) {
        (self.backend.name(), &self.reason)
    }

    /// Whether it accepts at the very sockets it has inherited: not if another backend still does.
    pub fn shares_queues(&self) -> bool {
        self.shares_queues
    }

    /// Most connections at a time, and where the number comes from.
    pub fn connections_max(&self) -> (u64, &str) {
        (self.connections_max, &self.connections_reason)
    }

    /// How much peers may make it hold, in bytes, and where the number comes from.
    pub fn memory_budget_bytes(&self) -> (u64, &str) {
        (self.memory_budget_bytes, &self.memory_reason)
    }

    /// How many workers, and on which processors.
    pub fn describe_workers(&self) -> String {
        let workers = &self.settings.workers;
        let cpus: Vec<String> = workers.iter().flatten().map(usize::to_string).collect();
        match cpus.len() {
            0 => format!("{}", workers.len()),
            1 => format!("1, on CPU {}", cpus[0]),
            count => format!("{count}, on CPUs {}", cpus.join(", ")),
        }
    }

    /// Mail to the workers' connections.
    pub fn post(&self) -> Post<M> {
        Post::new(self.mailboxes.clone())
    }

    /// Orders to the workers.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The workers' counters.
    pub fn stats(&self) -> Vec<Arc<Stats>> {
        self.stats.clone()
    }

    /// Runs the workers, each with its own handler, until all have drained or one fails.
    ///
    /// # Errors
    /// What a worker could not go on after. The others still run: the caller ends the process.
    pub fn run<H>(self, make_handler: impl Fn(u16) -> H) -> Result<(), StartError>
    where
        H: Handler<Mail = M> + Send + 'static,
    {
        memory::keep_little();
        let (ended, ends) = mpsc::channel();
        let accepted =
            u32::try_from(self.connections_max.div_ceil(self.wakers.len() as u64)).unwrap_or(u32::MAX);
        let backend = Arc::new(self.backend);
        let client_table = ClientTable::default();
        let complaints = Complaints::new(Arc::clone(&self.settings.notice));
        let workers = self.wakers.len() as u16;
        for (index, listeners) in self.sockets.listeners.into_iter().enumerate() {
            let handler = make_handler(index as u16);
            let thread = WorkerThread {
                index: index as u16,
                cpu: self.settings.workers[index],
                listeners,
                waker: self.wakers[index].clone(),
                capacity: Capacity { connected: handler.upstreams_max(), accepted },
                mailbox: Arc::clone(&self.mailboxes[index]),
                stats: Arc::clone(&self.stats[index]),
                timeouts: self.settings.timeouts,
                clients: self.settings.clients.clone(),
                client_table: client_table.clone(),
                http2: self.settings.http2,
                tls: self.settings.tls.clone(),
                pressure: self.settings.pressure,
                memory_budget_bytes: self.memory_budget_bytes / u64::from(workers),
                workers,
                complaints: complaints.clone(),
            };
            let backend = Arc::clone(&backend);
            let ended = ended.clone();
            std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || ended.send(thread.work(&backend, handler)))
                .map_err(|error| StartError::System(format!("cannot start a thread: {error}")))?;
        }
        drop(ended);
        for _ in &self.wakers {
            let end = ends.recv().map_err(|_| StartError::System("a worker is gone".into()))?;
            end.map_err(|error| StartError::System(format!("a worker failed: {error}")))?;
        }
        Ok(())
    }
}

/// Everything one worker's thread takes with it.
struct WorkerThread<M> {
    index: u16,
    cpu: Option<usize>,
    listeners: Vec<(ListenerName, OwnedFd)>,
    waker: Waker,
    capacity: Capacity,
    mailbox: Arc<Mailbox<M>>,
    stats: Arc<Stats>,
    timeouts: Timeouts,
    clients: ClientPolicy,
    client_table: ClientTable,
    http2: bool,
    tls: Option<TlsSettings>,
    pressure: Pressure,
    memory_budget_bytes: u64,
    workers: u16,
    complaints: Complaints,
}

impl<M: Send + 'static> WorkerThread<M> {
    /// Works until it has drained or the backend fails.
    fn work<H: Handler<Mail = M>>(mut self, backend: &ChosenBackend, handler: H) -> io::Result<()> {
        if let Some(cpu) = self.cpu {
            cpu::pin_current_thread(cpu)?;
        }
        let (names, listeners): (Vec<ListenerName>, _) =
            std::mem::take(&mut self.listeners).into_iter().unzip();
        let waker = self.waker.clone();
        match backend {
            ChosenBackend::Uring(features) => {
                let io = Uring::new(listeners, waker, self.capacity, features)?;
                self.run(io, handler, &names)
            }
            ChosenBackend::Epoll => {
                let io = Epoll::new(listeners, waker, self.capacity)?;
                self.run(io, handler, &names)
            }
        }
    }

    fn run<I: Io, H: Handler<Mail = M>>(
        self,
        mut io: I,
        handler: H,
        names: &[ListenerName],
    ) -> io::Result<()> {
        if self.clients.needs_addresses() {
            // Before anything is accepted.
            io.learn_peers();
        }
        let parts = WorkerParts {
            listeners: names.len() as u16,
            mailbox: self.mailbox,
            stats: self.stats,
            timeouts: self.timeouts,
            index: self.index,
        };
        let mut worker = Worker::new(io, handler, parts).among(names, self.workers, self.complaints);
        worker.set_http2(self.http2);
        worker.set_pressure(self.pressure);
        worker.set_memory_budget(self.memory_budget_bytes);
        worker.share_clients(self.client_table);
        worker.set_clients(self.clients);
        if let Some(tls) = self.tls {
            worker.set_tls(tls, FileReader::new(self.waker));
        }
        worker.run()
    }
}

fn mailbox<M>(waker: Waker) -> Mailbox<M> {
    Mailbox::new(Box::new(move || waker.wake()))
}
