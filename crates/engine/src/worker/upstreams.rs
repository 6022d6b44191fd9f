//! Connections that the handler has the worker make: the handler is told here of what has happened
//! on them.
//!
//! It must never hold a row while the handler is asked: the handler asks for steps itself.

use staunch_netio::{Input, Io, Slot};

use super::Worker;
use crate::handler::Handler;
use crate::upstream::{UpstreamEvent, UpstreamNews};

impl<I: Io, H: Handler> Worker<I, H> {
    /// Takes steps until there is none.
    pub(super) fn go_on_with(&mut self, upstream: Option<u32>) {
        let Some(index) = upstream else { return };
        while let Some(news) = self.transport.step_upstream(index) {
            self.tell(index, &Heard::News(&news));
        }
        self.relieve_if_over();
    }

    /// Tells the handler, and lends it the answer that goes on of the exchange that it serves.
    fn tell(&mut self, index: u32, heard: &Heard<'_>) {
        let (upstream, exchange) = self.transport.outbox.upstreams().tie(index);
        let open = exchange.filter(|address| {
            let connection = self.transport.connections.get(address.slot as usize);
            connection.is_some_and(|it| it.is_under_way(*address) && it.exchanges.is_open(address.stream))
        });
        match open {
            Some(address) => {
                let (connection, mut turn, io) = self.lend_to(address);
                connection.hear(upstream, heard.event(io), &mut turn);
                self.flush(address.slot);
            }
            None => {
                let event = heard.event(&self.transport.io);
                self.handler.upstream(upstream, event, None, &self.transport.outbox);
            }
        }
    }

    /// Bytes came on an upstream.
    #[cold]
    pub(super) fn hear_upstream(&mut self, slot: Slot, input: Input) {
        let upstream = self.transport.outbox.upstreams().index_of(slot);
        if let Some(index) = upstream
            && self.transport.takes_upstream(index, &input)
        {
            self.tell(index, &Heard::Input(&input));
        }
        self.go_on_with(upstream);
        self.transport.io.release(input);
    }
}

/// What the handler is told: kept in its row until now, or still in a buffer of the backend.
enum Heard<'a> {
    News(&'a UpstreamNews),
    Input(&'a Input),
}

impl<'a> Heard<'a> {
    fn event<I: Io>(&self, io: &'a I) -> UpstreamEvent<'a> {
        match self {
            Self::News(told) => told.event(),
            Self::Input(input) => UpstreamEvent::Received(io.input(input)),
        }
    }
}
