//! A worker: the loop of one thread between the connections that it carries and the handler.
//!
//! A worker owns listeners, mail and what connections are lent while a handler answers; their bytes,
//! deadlines and memory are `transport`'s. Its parts: `turn` is the loop, `lending` lends a connection to
//! its handler, `securing` leads handshakes, `giving_way` and `holding` act under pressure, `obeying`
//! carries out orders, `upstreams` tells of connections made for the handler.

use std::sync::Arc;

use staunch_netio::Io;
use staunch_protocol::Timeouts;
use staunch_protocol::http1::RequestMemory;

use crate::clients::{ClientPolicy, ClientTable, Clients};
use crate::draining::Draining;
use crate::exchange::http2_shared::Http2Shared;
use crate::exchange::rendered::Rendered;
use crate::handler::Handler;
use crate::listening::Listening;
use crate::mailbox::Mailbox;
use crate::order::{Left, ListenerName};
use crate::pressure::Complaints;
use crate::stats::Stats;
use crate::transport::Transport;

mod giving_way;
mod holding;
mod lending;
mod mail;
mod obeying;
mod securing;
mod turn;
mod upstreams;

/// A worker: it lives on one thread.
pub struct Worker<I, H: Handler> {
    handler: H,
    transport: Transport<I>,
    listening: Listening,
    draining: Option<Draining>,
    /// Dropped when all listeners are given up: an order to drain waits for that.
    left: Option<Left>,
    mailbox: Arc<Mailbox<H::Mail>>,
    reused: Reused,
    /// `None` while no rule asks who is connected.
    clients: Option<Box<Clients>>,
    client_table: ClientTable,
    index: u16,
}

/// Parts that a worker is given beside its network and its handler.
pub struct WorkerParts<M> {
    /// So many listeners of the backend are accepted on, all known by one name, and plain.
    pub listeners: u16,
    /// Where mail and orders for it come in.
    pub mailbox: Arc<Mailbox<M>>,
    /// Where it counts.
    pub stats: Arc<Stats>,
    /// How long its peers may take.
    pub timeouts: Timeouts,
    /// The number of the worker among all.
    pub index: u16,
}

/// Memory that is used again, so that a request allocates nothing.
#[derive(Default)]
struct Reused {
    heads: RequestMemory,
    rendered: Rendered,
    http2: Http2Shared,
}

impl<I: Io, H: Handler> Worker<I, H> {
    /// A worker that accepts on the listeners of its backend from now on.
    pub fn new(io: I, handler: H, parts: WorkerParts<H::Mail>) -> Self {
        let WorkerParts { listeners, mailbox, stats, timeouts, index } = parts;
        let mut transport = Transport::new(io, timeouts, stats);
        for listener in 0..listeners {
            transport.io.admit_syn(listener);
            transport.io.accept(listener);
        }
        Self {
            handler,
            transport,
            listening: Listening::new(listeners),
            draining: None,
            left: None,
            mailbox,
            reused: Reused::default(),
            clients: None,
            client_table: ClientTable::default(),
            index,
        }
    }

    /// Gives its listeners names, in their order, in place of the common one, and tells it how many workers
    /// share what a [`crate::Pressure`] says, and where to complain.
    pub(crate) fn among(mut self, names: &[ListenerName], workers: u16, complaints: Complaints) -> Self {
        self.listening.rename(names);
        self.transport.overload.capacity.set_workers(workers);
        self.transport.overload.complaints = complaints;
        self
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
                self.transport.io.learn_peers();
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
        &mut self.transport.io
    }
}
