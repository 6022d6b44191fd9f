//! What is the same for all answers of a connection in one turn of its worker.

use std::cell::Cell;

use staunch_tls::ClientIdentity;

use super::address::Address;
use super::outbox::Outbox;
use crate::clients::Clients;
use crate::secured::Secured;
use crate::stats::Stats;

/// What is the same for all answers of a connection in one turn of its worker.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) stats: &'a Stats,
    pub(crate) date: &'a [u8; 29],
    pub(crate) address: Address,
    pub(crate) unix_ms: u64,
    /// Changes with the date.
    pub(crate) second: u64,
    /// If clients mean anything.
    pub(crate) clients: Option<&'a mut Clients>,
    /// See [`crate::Answer::guard`]. Here, and not in what every answer carries, for hardly any needs it.
    pub(crate) guarded: Cell<bool>,
    pub(crate) outbox: &'a Outbox,
    /// What stands before secured connections, if any ever is.
    pub(crate) secured: Option<&'a Secured>,
}

impl<'a> Context<'a> {
    /// Whether TLS is spoken on the connection.
    #[inline]
    pub(crate) fn is_secured(&self) -> bool {
        self.secured.is_some_and(|secured| secured.is_walled(self.address.slot))
    }

    /// Whether a request came on a secured connection that was made for another name: its certificate says
    /// nothing of this host, and what is served here may be another's (RFC 9110, section 7.4).
    #[inline]
    pub(crate) fn is_misdirected(&self, host: &[u8]) -> bool {
        self.secured.is_some_and(|secured| secured.is_misdirected(self.address.slot, host))
    }

    /// Whether a ticket of ours began the session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.secured.is_some_and(|secured| secured.is_resumed(self.address.slot))
    }

    /// The identity of the client, if it showed a certificate.
    pub(crate) fn identity(&self) -> Option<&'a ClientIdentity> {
        self.secured?.identity(self.address.slot)
    }

    /// Whether the client showed a certificate that would not be verified now as it was then.
    pub(crate) fn is_outdated(&self) -> bool {
        self.secured.is_some_and(|secured| secured.is_outdated(self.address.slot, self.unix_ms / 1_000))
    }

    /// Of a worker that keeps no answers and knows no clients. `date` is the current one as in RFC 9110,
    /// section 5.6.7, and `unix_ms` the same in milliseconds since 1970.
    pub fn new(
        stats: &'a Stats,
        date: &'a [u8; 29],
        unix_ms: u64,
        outbox: &'a Outbox,
        address: Address,
    ) -> Self {
        Self {
            stats,
            date,
            address,
            unix_ms,
            second: 0,
            clients: None,
            guarded: Cell::new(false),
            outbox,
            secured: None,
        }
    }
}
