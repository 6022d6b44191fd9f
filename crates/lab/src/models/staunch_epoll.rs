//! # Staunch's engine on epoll
//!
//! What a server looks like when the lesson of every other model was taken: a loop for each processor, epoll
//! that is told of a connection only if it has to wait, one send for many answers, answers made before they
//! are asked for, deadlines for those who are slow, and a way to refuse those who are too many.
//! `crates/engine` is the model; this file only says what is answered. See ARCHITECTURE.md for the way of a
//! request through it.
//!
//! It speaks HTTP only: its sessions are HTTP's, and the paper's request is refused as a bad one. To compare
//! a connection per request, ask it and the others by HTTP with `Connection: close`.
//!
//! It must never differ from `staunch-uring` but in the way to the network.

use std::io;
use std::thread;

use staunch_engine::{ClientPolicy, Drain, Engine, IoChoice, Pressure, Settings, notice_on_standard_error};
use staunch_protocol::Timeouts;

use crate::handler::Sized;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{hold_signals, wait_for_signal};

pub(super) const MODEL: Model = Model {
    name: "staunch-epoll",
    title: "Staunch's engine on epoll",
    lesson: "The engine of this house: epoll asked as seldom as can be, and a worker for each processor.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: false,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
              +--> [queue 0] ---> worker 0: epoll -> session -> handler -> send
clients --> hash-> [queue 1] ---> worker 1: epoll -> session -> handler -> send
              +--> [queue N] ---> worker N: epoll -> session -> handler -> send";

/// The end comes at once: nobody is waited for.
const AT_ONCE: Drain = Drain { cap_ms: 0, idle_ms: Some(0), leave_queues: true };

fn serve(options: &Options) -> io::Result<()> {
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT]);
    let engine = Engine::<()>::bind(Settings {
        listen: vec![options.address.into()],
        socket_mode: 0o666,
        workers: options.cpus.iter().copied().map(Some).collect(),
        io: IoChoice::Epoll,
        connections_max: None,
        upstream_descriptors: 0,
        tls: None,
        memory_budget_bytes: None,
        http2: true,
        timeouts: Timeouts::default(),
        clients: ClientPolicy::default(),
        // Like the other models it lets nobody go unanswered, however long the queue.
        pressure: Pressure { patience_ms: None, ..Pressure::default() },
        notice: notice_on_standard_error(),
    })
    .map_err(|error| io::Error::other(error.to_string()))?;
    (options.announce)(engine.addresses()[0]);
    let control = engine.control();
    thread::spawn(move || {
        wait_for_signal(&signals);
        control.drain(AT_ONCE);
    });
    let work_ns = options.work_ns;
    engine.run(|_| Sized::new(work_ns)).map_err(|error| io::Error::other(error.to_string()))
}
