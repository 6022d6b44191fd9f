//! What an engine is given by its host: a backend, memory, connections, listening sockets.
//!
//! It must never keep any of it: it is told what is wanted and says what there is, and why.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use staunch_netio::{ListenPlace, memory, uring};

use super::settings::{IoChoice, Settings};
use crate::control::Control;
use crate::listening::{self, Inherited};
use crate::order::ListenerName;
use crate::pressure::{HostResources, Memory, connection_limit, memory_budget};
use crate::start_error::StartError;

/// The backend chosen, and why.
pub(super) enum ChosenBackend {
    Uring(uring::Features),
    Epoll,
}

impl ChosenBackend {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Uring(_) => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// The backend and the reason for it.
pub(super) fn choose(io: IoChoice) -> Result<(ChosenBackend, String), StartError> {
    match (io, uring::probe()) {
        (IoChoice::Epoll, _) => Ok((ChosenBackend::Epoll, "asked for".into())),
        (IoChoice::Uring, Ok(features)) => Ok((ChosenBackend::Uring(features), "asked for".into())),
        (IoChoice::Uring, Err(refusal)) => Err(StartError::Configuration(format!(
            "io_uring cannot be used here: {refusal}; use --io auto or --io epoll"
        ))),
        (IoChoice::Auto, Ok(features)) => {
            Ok((ChosenBackend::Uring(features), "every operation it needs works here".into()))
        }
        (IoChoice::Auto, Err(refusal)) => Ok((ChosenBackend::Epoll, format!("io_uring: {refusal}"))),
    }
}

fn memory_there_is() -> Memory {
    Memory {
        total_bytes: memory::total_bytes(),
        group_bytes: memory::group_limit_bytes(),
        process_bytes: memory::process_limit_bytes(),
    }
}

/// How much peers may make the server hold, and why so much.
pub(super) fn limit_memory(settings: &Settings) -> Result<(u64, String), StartError> {
    memory_budget(settings.memory_budget_bytes, settings.workers.len(), memory_there_is())
        .map_err(StartError::Configuration)
}

/// How many connections may be open, and why so many.
pub(super) fn limit_connections(
    settings: &Settings,
    backend: &ChosenBackend,
    descriptors: u64,
    memory_budget_bytes: u64,
) -> Result<(u64, String), StartError> {
    let memory = memory_there_is();
    let (memory_bytes, memory_is_limited) = memory.for_sockets();
    let resources = HostResources {
        is_uring: matches!(backend, ChosenBackend::Uring(_)),
        // At most a quarter: those who ask need more than those who are asked.
        descriptors: descriptors - settings.upstream_descriptors.min(descriptors / 4),
        memory_bytes: memory_bytes.saturating_sub(memory_budget_bytes),
        memory_is_limited,
        process_bytes: memory.process_bytes,
    };
    connection_limit(settings.connections_max, &settings.pressure, resources)
        .map_err(StartError::Configuration)
}

/// Where is listened at, in plain text and secured, and each worker's sockets with their names.
#[derive(Default)]
pub(super) struct BoundSockets {
    pub(super) plain: Vec<SocketAddr>,
    pub(super) secured: Vec<SocketAddr>,
    /// Socket files, with whether TLS is spoken there.
    pub(super) files: Vec<(PathBuf, bool)>,
    pub(super) listeners: Vec<Vec<(ListenerName, OwnedFd)>>,
}

/// Listens at every address with every worker.
pub(super) fn listen(
    settings: &Settings,
    mut inherited: Vec<Inherited>,
    share_queues: bool,
    control: &Control,
) -> Result<BoundSockets, StartError> {
    let listeners = settings.workers.iter().map(|_| Vec::new()).collect();
    let mut all = BoundSockets { listeners, ..BoundSockets::default() };
    let plain = settings.listen.iter().map(|wanted| (wanted, false));
    let secured = settings.tls.iter().flat_map(|tls| tls.listen.iter().map(|wanted| (wanted, true)));
    for (wanted, is_secured) in plain.chain(secured) {
        let position = inherited.iter().position(|inherited| inherited.wanted == *wanted);
        let inherited = position.map(|position| inherited.swap_remove(position));
        let inherited = inherited.filter(|inherited| !inherited.sockets.is_empty());
        let outlasting = inherited.as_ref().is_some_and(|inherited| inherited.outlasting);
        let (workers, mode) = (settings.workers.len(), settings.socket_mode);
        let mut bound = match inherited {
            Some(others) if !share_queues => listening::bind_beside(wanted, &others, workers, mode)?,
            inherited => listening::bind(wanted, inherited, workers, mode)?,
        };
        let name = control
            .note(&mut bound, outlasting, is_secured)
            .map_err(|error| StartError::System(error.to_string()))?;
        match bound.place {
            ListenPlace::Internet(address) if is_secured => all.secured.push(address),
            ListenPlace::Internet(address) => all.plain.push(address),
            ListenPlace::Unix(file) => all.files.push((file, is_secured)),
        }
        for (listeners, sockets) in all.listeners.iter_mut().zip(bound.sockets) {
            listeners.extend(sockets.into_iter().map(|socket| (name, socket)));
        }
    }
    control.note_unwanted(inherited.iter().filter_map(Inherited::left_file).collect());
    Ok(all)
}
