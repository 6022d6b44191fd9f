//! # Staunch's engine on io_uring
//!
//! The same engine as `staunch-epoll`, with the kernel doing the calls: one accept that goes on for ever
//! (multishot) into descriptors that only the ring knows, one receive for a connection's whole life that
//! takes buffers from a common store, and everything of a turn handed over with one system call. Compare the
//! plain `uring`: what stands there in one file is here `crates/netio/src/uring`, and this file only says
//! what is answered.
//!
//! It speaks HTTP only: its sessions are HTTP's, and the paper's request is refused as a bad one. To compare
//! a connection per request, ask it and the others by HTTP with `Connection: close`.
//!
//! It must never differ from `staunch-epoll` but in the way to the network.

use std::io;
use std::thread;

use staunch_engine::{ClientPolicy, Drain, Engine, IoChoice, Pressure, Settings, notice_on_standard_error};
use staunch_protocol::Timeouts;

use crate::handler::Sized;
use crate::model::{Model, PoolUse};
use crate::options::Options;
use crate::syscall::{hold_signals, wait_for_signal};

pub(super) const MODEL: Model = Model {
    name: "staunch-uring",
    title: "Staunch's engine on io_uring",
    lesson: "The engine of this house, all calls in the ring: one system call a turn for all clients.",
    picture: PICTURE,
    pool: PoolUse::None,
    speaks_paper: false,
    paper_row: None,
    serve,
};

const PICTURE: &str = "
              +--> [queue 0] ---> worker 0: ring -> session -> handler -> send
clients --> hash-> [queue 1] ---> worker 1: ring -> session -> handler -> send
              +--> [queue N] ---> worker N: ring -> session -> handler -> send";

/// The end comes at once: nobody is waited for.
const AT_ONCE: Drain = Drain { cap_ms: 0, idle_ms: Some(0), leave_queues: true };

fn serve(options: &Options) -> io::Result<()> {
    let signals = hold_signals(&[libc::SIGTERM, libc::SIGINT]);
    let engine = Engine::<()>::bind(Settings {
        listen: vec![options.address.into()],
        socket_mode: 0o666,
        workers: options.cpus.iter().copied().map(Some).collect(),
        io: IoChoice::Uring,
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
