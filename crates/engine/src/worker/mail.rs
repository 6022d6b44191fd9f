//! Mail from other threads, and what the handler has asked for beside its answers.
//!
//! It must never give a letter to an exchange that is not the one it was written to.

use staunch_netio::{Io, Tuning};

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::OPEN_UNSENT_BYTES;
use crate::mailbox::Recipient;

impl<I: Io, H: Handler> Worker<I, H> {
    /// Gives letters to handlers and requests that wait, and carries out orders.
    pub(super) fn deliver(&mut self) {
        for (recipient, letter) in self.mailbox.take() {
            let address = match recipient {
                Recipient::Exchange(address) => address,
                Recipient::Owner(owner) => {
                    self.handler.mail(owner, letter, &self.outbox);
                    continue;
                }
            };
            let slot = address.slot;
            let Some(connection) = self.connections.get(slot as usize) else { continue };
            if !connection.is_under_way(address) {
                continue;
            }
            if connection.is_open(address.stream) || connection.is_reading(address.stream) {
                let owner = connection.owner(address.stream).unwrap_or_default();
                self.handler.mail(owner, letter, &self.outbox);
            } else if connection.is_waiting(address.stream) && !self.has_no_memory_for(slot) {
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
        self.attend_upstreams();
        self.tune_connections();
        self.wake_exchanges();
    }

    /// Tells the kernel how much it is to keep of what connections send.
    fn tune_connections(&mut self) {
        for (slot, keeps_little) in self.outbox.take_tunings() {
            if matches!(self.connections[slot as usize].phase, Phase::Free | Phase::Closing) {
                continue;
            }
            let unsent = match keeps_little {
                true => Tuning::Unsent(OPEN_UNSENT_BYTES),
                false => Tuning::UNSENT_AT_FIRST,
            };
            self.io.tune(slot, unsent);
            if !self.io.can_inspect() {
                // Also cuts off a peer that takes little at a time: better where nobody can look.
                let gone_ms = if keeps_little { self.gone_ms() } else { 0 };
                self.io.tune(slot, Tuning::UserTimeout(gone_ms));
            }
            self.keep_little(slot, keeps_little);
        }
    }

    /// Asks the handler again about exchanges it has named.
    fn wake_exchanges(&mut self) {
        for address in self.outbox.take_wakes() {
            if !self.is_under_way(address) {
                continue;
            }
            let connection = &self.connections[address.slot as usize];
            if connection.is_open(address.stream) || !self.has_no_memory_for(address.slot) {
                let (connection, mut turn, _) = self.lend_to(address);
                connection.wake(&mut turn);
                self.flush(address.slot);
            }
        }
    }
}
