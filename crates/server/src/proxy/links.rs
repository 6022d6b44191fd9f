//! A worker's links: connections to servers of applications, at work or at rest.
//!
//! It must never give a link at rest to two requests, nor one that its server has closed.

use std::collections::HashMap;

use staunch_engine::{Address, Outbox, Upstream};

use super::application::ServerName;
use super::config::ProxyConfig;
use super::exchange::Forwarded;
use super::wire::LinkReader;

/// A link older than this is not given a request that cannot be sent twice, in milliseconds: its server may
/// be about to close it.
const FRESH_MS: u64 = 1_000;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct ServerLink {
    pub(super) server: ServerName,
    pub(super) reader: LinkReader,
    /// The exchange that it serves.
    pub(super) exchange: Option<Address>,
    /// Whether another exchange was served by it before.
    pub(super) is_used: bool,
    is_connected: bool,
    rests_since_ms: u64,
}

/// The links of one worker.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: HashMap<Upstream, ServerLink>,
    /// Those at rest, by server; the one that rested last stands last.
    at_rest: HashMap<usize, Vec<Upstream>>,
}

/// The address of what is known of a server: a link keeps that from being another's.
fn key(server: &ServerName) -> usize {
    std::ptr::from_ref(server.get()).addr()
}

impl Links {
    /// A link for an exchange: one at rest that may be trusted with it, or a new one. `None`: there are as
    /// many as there may be.
    pub(super) fn open(
        &mut self,
        server: &ServerName,
        exchange: Address,
        forwarded: &Forwarded,
        config: &ProxyConfig,
        outbox: &Outbox,
    ) -> Option<Upstream> {
        let now_ms = outbox.now_ms();
        if let Some(upstream) = self.rested(server, forwarded.is_idempotent, now_ms) {
            outbox.upstreams().serve(upstream, Some(exchange), config.at_work());
            if let Some(link) = self.all.get_mut(&upstream) {
                (link.exchange, link.is_used) = (Some(exchange), true);
            }
            return Some(upstream);
        }
        let target = server.get().address.target();
        let Some(upstream) = outbox.upstreams().connect(target, config.at_work(), Some(exchange)) else {
            self.give_way(outbox);
            return None;
        };
        let link = ServerLink {
            server: server.clone(),
            reader: LinkReader::new(forwarded.call.is_some()),
            exchange: Some(exchange),
            is_used: false,
            is_connected: false,
            rests_since_ms: 0,
        };
        self.all.insert(upstream, link);
        Some(upstream)
    }

    fn rested(&mut self, server: &ServerName, is_idempotent: bool, now_ms: u64) -> Option<Upstream> {
        let at_rest = self.at_rest.get_mut(&key(server))?;
        let last = *at_rest.last()?;
        let since_ms = self.all.get(&last)?.rests_since_ms;
        let is_fresh = is_idempotent || now_ms.saturating_sub(since_ms) < FRESH_MS;
        is_fresh.then(|| at_rest.pop())?
    }

    /// Closes a link at rest, so that the next request finds room for one.
    fn give_way(&mut self, outbox: &Outbox) {
        let oldest = self.at_rest.values().find_map(|links| links.first().copied());
        if let Some(upstream) = oldest {
            self.close(upstream, outbox);
        }
    }

    pub(super) fn get(&self, upstream: Upstream) -> Option<&ServerLink> {
        self.all.get(&upstream)
    }

    pub(super) fn get_mut(&mut self, upstream: Upstream) -> Option<&mut ServerLink> {
        self.all.get_mut(&upstream)
    }

    /// A link serves nobody any more, and may serve the next.
    pub(super) fn rest(&mut self, upstream: Upstream, config: &ProxyConfig, outbox: &Outbox) {
        let is_full = self.all.len() >= config.links_max as usize;
        let Some(link) = self.all.get_mut(&upstream) else { return };
        if is_full || link.server.get().is_gone() {
            // Another server may be asked next, and there is no other link to be had.
            return self.close(upstream, outbox);
        }
        let Some(at_rest) = config.at_rest(link.reader.is_fastcgi()) else {
            return self.close(upstream, outbox);
        };
        (link.exchange, link.rests_since_ms) = (None, outbox.now_ms());
        self.at_rest.entry(key(&link.server)).or_default().push(upstream);
        outbox.upstreams().serve(upstream, None, at_rest);
    }

    /// A link is gone, or will be: it is forgotten.
    pub(super) fn forget(&mut self, upstream: Upstream) -> Option<ServerLink> {
        let link = self.all.remove(&upstream)?;
        let key = key(&link.server);
        if let Some(at_rest) = self.at_rest.get_mut(&key) {
            at_rest.retain(|other| *other != upstream);
            if at_rest.is_empty() {
                self.at_rest.remove(&key);
            }
        }
        Some(link)
    }

    pub(super) fn close(&mut self, upstream: Upstream, outbox: &Outbox) {
        self.forget(upstream);
        outbox.upstreams().close(upstream);
    }
}

impl ServerLink {
    pub(super) fn note_connected(&mut self) {
        self.is_connected = true;
    }

    /// Whether the server may have seen something of the request.
    pub(super) fn may_have_sent(&self) -> bool {
        self.is_connected || self.is_used
    }
}
