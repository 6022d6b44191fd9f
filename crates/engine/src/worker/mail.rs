//! Mail from other threads, and what the handler has asked for beside its answers.
//!
//! It must never give a letter to an exchange that is not the one it was written to.

use staunch_netio::Io;

use super::Worker;
use crate::handler::Handler;
use crate::mailbox::Recipient;

impl<I: Io, H: Handler> Worker<I, H> {
    /// Gives letters to handlers and requests that wait, and carries out orders.
    pub(super) fn deliver(&mut self) {
        for (recipient, letter) in self.mailbox.take() {
            let address = match recipient {
                Recipient::Exchange(address) => address,
                Recipient::Owner(owner) => {
                    self.handler.mail(owner, letter, &self.transport.outbox);
                    continue;
                }
            };
            let slot = address.slot;
            let Some(connection) = self.transport.connections.get(slot as usize) else { continue };
            if !connection.is_under_way(address) {
                continue;
            }
            if connection.exchanges.is_open(address.stream) || connection.exchanges.is_reading(address.stream)
            {
                let owner = connection.exchanges.owner(address.stream).unwrap_or_default();
                self.handler.mail(owner, letter, &self.transport.outbox);
            } else if connection.exchanges.is_waiting(address.stream) && !self.has_no_memory_for(slot) {
                let (connection, mut turn, _) = self.lend_to(address);
                connection
                    .resume(|handler, request, answer| handler.resume(letter, request, answer), &mut turn);
                self.flush(slot);
            }
        }
        for order in self.mailbox.take_orders() {
            self.obey(order);
        }
    }

    /// Carries out what the handler has asked for beside its answers.
    #[cold]
    pub(super) fn look_into_outbox(&mut self) {
        for index in self.transport.outbox.upstreams().take_asked() {
            // The slot may have come back since the row was asked for.
            if !self.transport.outbox.upstreams().note(index, |row| row.is_free()) {
                self.go_on_with(Some(index));
            }
        }
        self.transport.tune_connections();
        self.relieve_if_over();
        self.wake_exchanges();
    }

    /// Asks the handler again about exchanges it has named.
    fn wake_exchanges(&mut self) {
        for address in self.transport.outbox.take_wakes() {
            if !self.transport.is_under_way(address) {
                continue;
            }
            let connection = &self.transport.connections[address.slot as usize];
            if connection.exchanges.is_open(address.stream) || !self.has_no_memory_for(address.slot) {
                let (connection, mut turn, _) = self.lend_to(address);
                connection.wake(&mut turn);
                self.flush(address.slot);
            }
        }
    }
}
