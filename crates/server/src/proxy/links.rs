//! A worker's links: connections to servers of applications, at work or at rest.
//!
//! It must never give a link at rest to two requests, nor one that its server has closed.

use std::collections::HashMap;

use staunch_engine::{Address, Outbox, Piece, Upstream};
use staunch_tls::{OutgoingFault, OutgoingSession};

use super::application::ServerName;
use super::config::{ProxyConfig, ProxyServer};
use super::exchange::Forwarded;
use super::shared::ProxyShared;
use super::wire::LinkReader;

/// A link older than this is not given a request that cannot be sent twice, in milliseconds: its server may
/// be about to close it.
const FRESH_MS: u64 = 1_000;

/// A connection to a server.
pub(super) struct ServerLink {
    pub(super) server: ServerName,
    pub(super) reader: LinkReader,
    /// The exchange that it serves.
    pub(super) exchange: Option<Address>,
    /// Whether another exchange was served by it before.
    pub(super) is_used: bool,
    is_connected: bool,
    /// The moment in which data came last, or an exchange has got the link.
    heard_ms: u64,
    rests_since_ms: u64,
    /// The session of TLS, if that is spoken.
    secured: Option<Box<OutgoingSession>>,
}

/// The links of one worker.
#[derive(Default)]
pub(super) struct Links {
    all: HashMap<Upstream, ServerLink>,
    /// Those at rest, by server; the one that rested last stands last.
    at_rest: HashMap<usize, Vec<Upstream>>,
    /// Links that tunnels have.
    given: usize,
}

/// The address of what is known of a server: a link keeps that from being another's.
fn key(server: &ServerName) -> usize {
    std::ptr::from_ref(server.get()).addr()
}

impl Links {
    /// A link for an exchange: one at rest that may be trusted with it, or a new one. `None`: there are as
    /// many as there may be. It is `unix_s` seconds after 1970.
    pub(super) fn open(
        &mut self,
        server: &ServerName,
        exchange: Address,
        forwarded: &Forwarded,
        shared: &ProxyShared,
        unix_s: u64,
        outbox: &Outbox,
    ) -> Option<Upstream> {
        let (now_ms, config) = (outbox.now_ms(), &shared.config);
        if let Some(upstream) = self.rested(server, forwarded.is_idempotent, now_ms) {
            outbox.upstreams().serve(upstream, Some(exchange), config.at_work());
            if let Some(link) = self.all.get_mut(&upstream) {
                (link.exchange, link.is_used, link.heard_ms) = (Some(exchange), true, now_ms);
            }
            return Some(upstream);
        }
        let mut hello = Vec::new();
        let secured = match &server.get().address {
            ProxyServer::Secured(_, name) => {
                Some(Box::new(shared.tls()?.connect(name, unix_s, &mut hello).ok()?))
            }
            ProxyServer::Internet(_) | ProxyServer::Unix(_) => None,
        };
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
            heard_ms: now_ms,
            rests_since_ms: 0,
            secured,
        };
        self.all.insert(upstream, link);
        if !hello.is_empty() {
            outbox.upstreams().send(upstream, Piece::Bytes(hello));
        }
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

    /// Sends bytes of a request.
    pub(super) fn send(&mut self, upstream: Upstream, mut bytes: Vec<u8>, outbox: &Outbox) {
        if bytes.is_empty() {
            return;
        }
        if let Some(link) = self.all.get_mut(&upstream) {
            link.reader.number(&mut bytes);
            if let Some(session) = &mut link.secured {
                let mut sealed = Vec::new();
                session.send(&bytes, &mut sealed);
                bytes = sealed;
            }
        }
        if !bytes.is_empty() {
            outbox.upstreams().send(upstream, Piece::Bytes(bytes));
        }
    }

    /// Whether more of a body may be sent: not before there are keys, or it would be kept without a bound.
    pub(super) fn has_room(&self, upstream: Upstream, outbox: &Outbox) -> bool {
        let has_keys = self.all.get(&upstream).is_none_or(ServerLink::has_keys);
        has_keys && outbox.upstreams().has_room(upstream)
    }

    /// A link serves nobody any more, and may serve the next.
    pub(super) fn rest(&mut self, upstream: Upstream, config: &ProxyConfig, outbox: &Outbox) {
        let is_full = self.all.len() + self.given >= config.links_max as usize;
        let Some(link) = self.all.get_mut(&upstream) else { return };
        if is_full || link.server.get().is_gone() || link.is_spent() {
            // Another server may be asked next, and there is no other link to be had.
            self.close(upstream, outbox);
            return;
        }
        let Some(at_rest) = config.at_rest(link.reader.is_fastcgi()) else {
            self.close(upstream, outbox);
            return;
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

    /// A link is a tunnel's from now on: what is needed of it beside its name.
    pub(super) fn give_away(&mut self, upstream: Upstream) -> Option<Box<OutgoingSession>> {
        self.given += 1;
        self.forget(upstream)?.secured
    }

    /// A tunnel closes its link behind what stands to be sent, and by TLS behind the word that it ends.
    pub(super) fn take_back(
        &mut self,
        upstream: Upstream,
        session: Option<&mut OutgoingSession>,
        outbox: &Outbox,
    ) {
        self.forget_given();
        match session {
            Some(session) => hang_up(upstream, Some(session), outbox),
            None => outbox.upstreams().close_after_sending(upstream),
        }
    }

    /// The link of a tunnel is closed with its exchange.
    pub(super) fn forget_given(&mut self) {
        self.given -= 1;
    }

    /// Closes a link, and gives what it was. By TLS its server is told first, unless much else stands to be
    /// sent before that: a body of which nobody wants to know any more.
    pub(super) fn close(&mut self, upstream: Upstream, outbox: &Outbox) -> Option<ServerLink> {
        let mut link = self.forget(upstream);
        hang_up(upstream, link.as_mut().and_then(|link| link.secured.as_deref_mut()), outbox);
        link
    }
}

/// Closes a connection to a server; by TLS behind the word that it ends.
fn hang_up(upstream: Upstream, session: Option<&mut OutgoingSession>, outbox: &Outbox) {
    let upstreams = outbox.upstreams();
    let Some(session) = session.filter(|_| upstreams.has_room(upstream)) else {
        return upstreams.close(upstream);
    };
    let mut notice = Vec::new();
    session.close(&mut notice);
    upstreams.send(upstream, Piece::Bytes(notice));
    upstreams.close_after_sending(upstream);
}

impl ServerLink {
    pub(super) fn note_connected(&mut self) {
        self.is_connected = true;
    }

    /// Whether the server may have seen something of the request.
    pub(super) fn may_have_sent(&self) -> bool {
        (self.is_connected && self.has_keys()) || self.is_used
    }

    /// Whether bytes of a request reach the server: by TLS not before its handshake is over.
    pub(super) fn has_keys(&self) -> bool {
        self.secured.as_ref().is_none_or(|session| session.is_established())
    }

    /// Opens what came by TLS; `None` where none is spoken. Records that TLS owes in reply are sent.
    pub(super) fn opened(
        &mut self,
        upstream: Upstream,
        bytes: &[u8],
        outbox: &Outbox,
    ) -> Option<(Vec<u8>, Result<(), OutgoingFault>)> {
        let session = self.secured.as_mut()?;
        let (mut plain, mut answer) = (Vec::new(), Vec::new());
        let result = session.receive(bytes, &mut plain, &mut answer);
        if !answer.is_empty() {
            outbox.upstreams().send(upstream, Piece::Bytes(answer));
        }
        Some((plain, result))
    }

    /// Whether the connection has ended without the close_notify of TLS: anybody on the way may have cut it.
    pub(super) fn lacks_close_notify(&mut self) -> bool {
        self.secured.as_mut().is_some_and(|session| !session.has_ended())
    }

    /// Whether the server has sent the close_notify of TLS.
    pub(super) fn has_close_notify(&mut self) -> bool {
        self.secured.as_mut().is_some_and(|session| session.has_ended())
    }

    /// Whether no other exchange may be served: the server has ended, or what is under way belongs to the
    /// exchange before.
    pub(super) fn is_spent(&mut self) -> bool {
        self.has_close_notify() || self.secured.as_ref().is_some_and(|session| session.is_amid_record())
    }

    /// Data came for the exchange.
    pub(super) fn note_heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// Time since data came, or since the exchange has had the link.
    pub(super) fn silent_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.heard_ms)
    }

    pub(super) fn rests_for_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.rests_since_ms)
    }
}
