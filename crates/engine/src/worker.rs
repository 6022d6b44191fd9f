//! A worker: a network backend, the connections in it, their deadlines, and what they are lent.
//!
//! It owns all of that for one thread. Its parts: `turn` is the loop, `sending` hands answers over,
//! `securing` and `sealing` stand between where TLS is spoken, `giving_way` and `holding` act under pressure,
//! `obeying` carries out orders, `upstreams` makes connections for the handler.

use std::sync::Arc;

use staunch_netio::{Io, Slot};
use staunch_protocol::Timeouts;
use staunch_protocol::http1::RequestMemory;

use crate::clients::{ClientPolicy, ClientTable, Clients};
use crate::connection::Connection;
use crate::draining::Draining;
use crate::exchange::http2_shared::Http2Shared;
use crate::exchange::outbox::Outbox;
use crate::exchange::rendered::Rendered;
use crate::handler::Handler;
use crate::listening::Listening;
use crate::mailbox::Mailbox;
use crate::order::{Left, ListenerName};
use crate::pressure::Overload;
use crate::secured::Secured;
use crate::spare::Spare;
use crate::stats::Stats;
use crate::time::Time;
use crate::timer_wheel::TimerWheel;

mod giving_way;
mod holding;
mod looking;
mod mail;
mod obeying;
mod sealing;
mod securing;
mod sending;
mod turn;
mod upstreams;

/// A worker: it lives on one thread.
pub struct Worker<I, H: Handler> {
    io: I,
    handler: H,
    /// By slot. The first ones stay free where the handler has connections made: those have rows of their
    /// own.
    connections: Vec<Connection>,
    secured: Secured,
    deadlines: Deadlines,
    listening: Listening,
    draining: Option<Draining>,
    /// Dropped when all listeners are given up: an order to drain waits for that.
    left: Option<Left>,
    mailbox: Arc<Mailbox<H::Mail>>,
    stats: Arc<Stats>,
    overload: Overload,
    time: Time,
    reused: Reused,
    outbox: Outbox,
    /// `None` while no rule asks who is connected.
    clients: Option<Box<Clients>>,
    client_table: ClientTable,
    index: u16,
}

/// The deadlines of all connections.
struct Deadlines {
    wheel: TimerWheel,
    /// Slots whose node came up, while they are dealt with; kept to be filled again.
    due: Vec<u32>,
    /// Connections whose send began in this turn, and after the turn those where it is not over: their nodes
    /// in the wheel do not know of it yet.
    sends_begun: Vec<Slot>,
}

/// Memory that is used again, so that a request allocates nothing.
#[derive(Default)]
struct Reused {
    spare: Spare,
    heads: RequestMemory,
    rendered: Rendered,
    http2: Http2Shared,
}

impl<I: Io, H: Handler> Worker<I, H> {
    /// A worker that accepts on `listeners` listeners of its backend, all known by one name, and plain.
    /// `index` is its number among the workers.
    pub fn new(
        io: I,
        handler: H,
        listeners: u16,
        mailbox: Arc<Mailbox<H::Mail>>,
        stats: Arc<Stats>,
        timeouts: Timeouts,
        index: u16,
    ) -> Self {
        let capacity = io.capacity();
        let now_ns = io.now_ns();
        let now_ms = now_ns / 1_000_000;
        let wheel = TimerWheel::new(now_ms, capacity.slots() as usize);
        let mut worker = Self {
            io,
            handler,
            connections: Vec::with_capacity(capacity.slots() as usize),
            secured: Secured::default(),
            deadlines: Deadlines { wheel, due: Vec::new(), sends_begun: Vec::new() },
            listening: Listening::new(listeners),
            draining: None,
            left: None,
            mailbox,
            stats,
            overload: Overload::new(capacity.accepted, now_ns, timeouts),
            time: Time::new(now_ms),
            reused: Reused::default(),
            outbox: Outbox::new(capacity.connected),
            clients: None,
            client_table: ClientTable::default(),
            index,
        };
        for listener in 0..listeners {
            worker.io.admit_syn(listener);
            worker.io.accept(listener);
        }
        worker
    }

    /// Gives its listeners names, in their order, in place of the common one.
    pub(crate) fn name_listeners(&mut self, names: &[ListenerName]) {
        self.listening.rename(names);
    }

    /// Counts clients together with the other workers of this table. To be called before `set_clients`.
    pub fn share_clients(&mut self, table: ClientTable) {
        self.client_table = table;
    }

    /// Other rules for clients from now on. Connections that are there and were not counted stay so.
    pub fn set_clients(&mut self, policy: ClientPolicy) {
        match &mut self.clients {
            Some(clients) => clients.set_policy(policy),
            None if policy.needs_addresses() => {
                self.io.learn_peers();
                self.clients = Some(Box::new(Clients::new(policy, self.client_table.clone())));
            }
            None => {}
        }
    }

    /// Whether connections may begin with the preface of HTTP/2. Those that speak it go on.
    pub fn set_http2(&mut self, on: bool) {
        self.reused.http2.is_on = on;
    }

    /// The backend, for a simulation that has to look into it.
    pub fn io(&mut self) -> &mut I {
        &mut self.io
    }
}
