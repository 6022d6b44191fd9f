//! What a connection is lent by its worker while it handles something, and what it says to one that has to
//! come back.
//!
//! It must never outlive the event it was made for.

use staunch_protocol::http1::RequestMemory;
use staunch_protocol::{Request, SelfAnswered, Status};

use super::context::Context;
use super::http2_shared::Http2Shared;
use super::owner::Owner;
use super::rendered::Rendered;
use crate::handler::{Handler, Refused};
use crate::pressure::{Strain, Waited};
use crate::spare::Spare;

/// What a connection needs of its worker while it handles something.
pub(crate) struct Turn<'a, H> {
    pub(crate) handler: &'a mut H,
    pub(crate) spare: &'a mut Spare,
    pub(crate) context: Context<'a>,
    pub(crate) now_ms: u64,
    pub(crate) heads: &'a mut RequestMemory,
    pub(crate) rendered: &'a mut Rendered,
    /// Taken while a connection of HTTP/2 works with it.
    pub(crate) http2: Option<&'a mut Http2Shared>,
    /// The worker is coming to its end: answers are the last of their connections.
    pub(crate) draining: bool,
    pub(crate) strain: Strain,
    /// So much is written into a container; what then is not answered yet waits until it was sent.
    pub(crate) written_bytes_max: usize,
    /// What is reported now came then, at the earliest.
    pub(crate) came_ms: u64,
}

impl<H: Handler> Turn<'_, H> {
    /// The handler is told of what the session has answered by itself, for an exchange of `owner` if one is
    /// under way.
    pub(crate) fn tell_refused(&mut self, answered: Option<SelfAnswered>, owner: Option<Owner>) {
        if let Some(SelfAnswered { status, body_bytes }) = answered {
            self.tell(owner, status, body_bytes, None);
        }
    }

    /// Whether a request is told to come back, which is counted then, one that `has_waited` for mail too.
    #[cold]
    pub(crate) fn has_to_come_back(
        &self,
        turned_away: bool,
        has_waited: bool,
        request: &Request<'_>,
    ) -> bool {
        let stats = self.context.stats;
        // What has waited for its content has it now: to send it costs no more than to refuse it.
        let waited = if has_waited { Waited::SHORT } else { self.strain.waited };
        let counter = match (turned_away, waited) {
            (true, _) => &stats.pressure.shed_full,
            (false, Waited::TOO_LONG) => &stats.pressure.shed_patience,
            (false, waited) if waited.is_long() && self.handler.gives_way(request) => {
                &stats.pressure.shed_low
            }
            (false, _) => return false,
        };
        counter.add(1);
        if has_waited {
            stats.requests.waits_over.add(1);
            stats.requests.answered.add(1);
            stats.requests.answered_late.add(1);
        }
        true
    }

    /// Whether a request may have to suffer for others, `turned_away` if its connection came when only
    /// reserved slots were left.
    #[inline]
    pub(crate) fn is_strained(&self, turned_away: bool) -> bool {
        self.strain.waited.is_long() || self.strain.full || turned_away
    }

    /// Whether the client asks more often than it may.
    #[inline]
    pub(crate) fn is_too_soon(&self, request: &Request<'_>) -> bool {
        let Context { clients, address, stats, .. } = &self.context;
        clients.as_ref().is_some_and(|clients| !clients.may_ask(address.slot, request, self.now_ms, stats))
    }

    /// The handler is told of an answer it has not given.
    #[cold]
    pub(crate) fn tell(
        &mut self,
        owner: Option<Owner>,
        status: Status,
        body_bytes: usize,
        request: Option<&Request<'_>>,
    ) {
        let address = self.context.address;
        let slot = address.slot;
        let peer = self.context.clients.as_ref().and_then(|clients| match request {
            Some(request) => clients.client(slot, request),
            None => clients.address(slot),
        });
        let (body_bytes, unix_ms) = (body_bytes as u64, self.context.unix_ms);
        let identity = self.context.identity();
        self.handler.refused(&Refused {
            address,
            owner,
            status,
            body_bytes,
            unix_ms,
            request,
            peer,
            identity,
        });
    }

    /// A wait ended by mail after so long.
    #[cold]
    pub(crate) fn count_late(&self, waited_ms: u64) {
        self.context.stats.requests.waits_over.add(1);
        if self.context.stats.turns.is_measuring() {
            self.context.stats.turns.latency.add(waited_ms * 1_000_000, 1);
        }
    }
}

/// What one that is told to come back gets behind the status line: fields, and the body.
pub(crate) const COME_BACK: (&[u8], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 63\r\nRetry-After: 1\r\n\
      Cache-Control: no-store\r\n",
    b"503 Service Unavailable: too much to do; try again in a second\n",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_come_back_is_as_long_as_it_says() {
        let (fields, body) = COME_BACK;
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
        assert!(fields.windows(length.len()).any(|window| window == length.as_bytes()));
    }
}
