//! Tunnels: exchanges of which both ends speak another protocol by now, such as WebSocket.
//!
//! A tunnel owns what is needed for bytes both ways, and nothing of the request: there may be as many as links,
//! and most of them are idle. A tunnel must never look at what it passes on.

use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Body, GivenBack, Open, Outbox, Piece, Upstream, UpstreamEvent};
use staunch_tls::OutgoingSession;

use super::ProxyWorker;
use crate::proxy::application::ServerName;
use crate::proxy::exchange::{ForwardStage, Forwarded, RelayedAnswer};
use crate::proxy::journey::Journey;
use crate::proxy::shares::ShareOwner;
use crate::proxy::trouble::Trouble;

/// An exchange whose ends speak another protocol.
pub(super) struct Tunnel {
    /// The server, until it has ended or is lost.
    far_end: Option<FarEnd>,
    /// Bytes of the server that its client has not taken yet, and whether the server has ended.
    held: Option<Box<RelayedAnswer>>,
    /// Whether the tunnel is there beside the places of its server, as all are for which there is room.
    is_beside: bool,
    /// Bytes held, as they were counted last.
    told_bytes: usize,
    pub(super) journey: Journey,
}

/// The server of a tunnel.
struct FarEnd {
    server: ServerName,
    link: Upstream,
    /// The session of TLS, if that is spoken.
    secured: Option<Box<OutgoingSession>>,
    /// Since when the tunnel has a place, if it has one.
    placed_at_ms: Option<u64>,
    /// The client in whose share the link is.
    owner: Option<ShareOwner>,
}

impl ProxyWorker {
    /// A server has agreed to another protocol: its link and its place are the tunnel's from now on.
    pub(super) fn begin_tunnel(&mut self, address: Address, mut forwarded: Box<Forwarded>) {
        // It was answered: nothing is tried once more. Its link stays in the share of its client.
        forwarded.application.retries.fetch_sub(u32::from(forwarded.has_retried), Relaxed);
        let far_end = match std::mem::replace(&mut forwarded.stage, ForwardStage::Apart) {
            ForwardStage::AtWork(server, link, placed_at_ms) => {
                let (secured, owner) = (self.links.give_away(link), forwarded.owner);
                Some(FarEnd { server, link, secured, placed_at_ms, owner })
            }
            ForwardStage::Apart | ForwardStage::InLine(_) | ForwardStage::Placed(..) => None,
        };
        let tunnel = Tunnel {
            far_end,
            held: Some(Box::new(std::mem::take(&mut forwarded.answer))),
            is_beside: forwarded.is_beside,
            told_bytes: forwarded.told_bytes,
            journey: std::mem::take(&mut forwarded.journey),
        };
        self.keep_tunnel(address, Box::new(tunnel));
    }

    /// Keeps a tunnel, and counts what it holds.
    fn keep_tunnel(&mut self, address: Address, mut tunnel: Box<Tunnel>) {
        tunnel.held.take_if(|held| !held.holds_anything());
        let held_bytes = tunnel.held.as_ref().map_or(0, |held| held.kept_bytes());
        self.shared.hold(std::mem::replace(&mut tunnel.told_bytes, held_bytes), held_bytes);
        self.tunnels.insert(address, tunnel);
    }

    /// Something has happened on a link that may be a tunnel's.
    pub(super) fn hear_tunnel(
        &mut self,
        upstream: Upstream,
        event: &UpstreamEvent<'_>,
        open: &mut Open<'_>,
        outbox: &Outbox,
    ) {
        let address = open.address();
        let Some(mut tunnel) = self.tunnels.remove(&address) else { return };
        let is_its_own = tunnel.far_end.as_ref().is_some_and(|far_end| far_end.link == upstream);
        match event {
            _ if !is_its_own => {}
            UpstreamEvent::Connected => {}
            UpstreamEvent::Room => open.go_on(),
            UpstreamEvent::Received(bytes) => self.take_from_server(&mut tunnel, bytes, open, outbox),
            UpstreamEvent::Ended => self.end_far(&mut tunnel, outbox),
            UpstreamEvent::Lost(loss) => self.lose_far(&mut tunnel, Trouble::Lost(*loss), outbox),
        }
        self.pour_tunnel(&mut tunnel, open);
        self.keep_tunnel(address, tunnel);
    }

    /// Bytes came from the server.
    fn take_from_server(&mut self, tunnel: &mut Tunnel, bytes: &[u8], open: &mut Open<'_>, outbox: &Outbox) {
        let Some(FarEnd { link, secured, .. }) = &mut tunnel.far_end else { return };
        let Some(session) = secured else { return pass(&mut tunnel.held, bytes, open) };
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let received = session.receive(bytes, &mut plain, &mut reply);
        let has_ended = session.has_ended();
        if !reply.is_empty() {
            outbox.upstreams().send(*link, Piece::Bytes(reply));
        }
        pass(&mut tunnel.held, &plain, open);
        match received {
            Err(fault) => self.lose_far(tunnel, Trouble::Secured(fault), outbox),
            Ok(()) if has_ended => self.end_far(tunnel, outbox),
            Ok(()) => {}
        }
    }

    /// The server has ended. By TLS too: a WebSocket says itself that it ends (RFC 6455, section 7).
    fn end_far(&mut self, tunnel: &mut Tunnel, outbox: &Outbox) {
        let Some(far_end) = tunnel.far_end.take() else { return };
        let FarEnd { server, link, mut secured, placed_at_ms, owner } = far_end;
        self.link_shares.leave(owner);
        tunnel.held.get_or_insert_default().has_ended = true;
        tunnel.journey.note_end(self.now_ms);
        self.end_beside(&mut tunnel.is_beside);
        if let Some(since_ms) = placed_at_ms {
            self.give_back_answered(&server, since_ms);
        }
        server.get().counts.answers.fetch_add(1, Relaxed);
        self.note_health(&server, false);
        self.links.take_back(link, secured.as_deref_mut(), outbox);
    }

    /// The server is lost.
    fn lose_far(&mut self, tunnel: &mut Tunnel, trouble: Trouble, outbox: &Outbox) {
        let Some(far_end) = tunnel.far_end.take() else { return };
        let FarEnd { server, link, mut secured, placed_at_ms, owner } = far_end;
        self.link_shares.leave(owner);
        tunnel.held.get_or_insert_default().is_cut = true;
        tunnel.journey.note_end(self.now_ms);
        self.end_beside(&mut tunnel.is_beside);
        trouble.count(server.get(), true);
        self.tell_operator(&server, trouble);
        self.note_health(&server, !trouble.is_full());
        if placed_at_ms.is_some() {
            self.give_back(&server, GivenBack::Unanswered);
        }
        self.links.take_back(link, secured.as_deref_mut(), outbox);
    }

    /// Bytes came from the client, or it has ended. Whether there is such a tunnel.
    pub(super) fn take_from_client(&mut self, body: Body<'_>, open: &mut Open<'_>) -> bool {
        let Some(tunnel) = self.tunnels.get_mut(&open.address()) else { return false };
        let Some(FarEnd { link, secured, .. }) = &mut tunnel.far_end else { return true };
        let upstreams = open.outbox().upstreams();
        let bytes = match (body, secured) {
            (Body::Piece(piece), None) => piece.to_vec(),
            (Body::End, None) => Vec::new(),
            (Body::Piece(piece), Some(session)) => {
                let mut sealed = Vec::new();
                session.send(piece, &mut sealed);
                sealed
            }
            (Body::End, Some(session)) => {
                let mut sealed = Vec::new();
                session.close(&mut sealed);
                sealed
            }
        };
        if !bytes.is_empty() {
            upstreams.send(*link, Piece::Bytes(bytes));
        }
        if body == Body::End {
            upstreams.end(*link);
        }
        let has_room = upstreams.has_room(*link);
        if !has_room {
            open.hold();
        }
        true
    }

    /// A tunnel has begun, or its client has room again. Whether there is such a tunnel.
    pub(super) fn ready_tunnel(&mut self, open: &mut Open<'_>) -> bool {
        let address = open.address();
        let Some(mut tunnel) = self.tunnels.remove(&address) else { return false };
        self.pour_tunnel(&mut tunnel, open);
        open.release_request();
        self.keep_tunnel(address, tunnel);
        true
    }

    /// Sends what is held, and takes more from the server if there is little.
    fn pour_tunnel(&self, tunnel: &mut Tunnel, open: &mut Open<'_>) {
        let Some(held) = &mut tunnel.held else { return };
        self.pour_answer(held, tunnel.far_end.as_ref().map(|far_end| far_end.link), open);
    }

    /// The client of a tunnel has left, or the tunnel has ended.
    pub(super) fn leave_tunnel(&mut self, address: Address) {
        let Some(mut tunnel) = self.tunnels.remove(&address) else { return };
        self.shared.hold(tunnel.told_bytes, 0);
        self.end_beside(&mut tunnel.is_beside);
        let Some(FarEnd { server, placed_at_ms, owner, .. }) = tunnel.far_end else { return };
        self.link_shares.leave(owner);
        // The engine closes the link with the exchange.
        self.links.forget_given();
        if placed_at_ms.is_some() {
            self.give_back(&server, GivenBack::Unanswered);
        }
    }
}

/// Sends bytes of the server to the client, or keeps them behind those that wait.
fn pass(held: &mut Option<Box<RelayedAnswer>>, bytes: &[u8], open: &mut Open<'_>) {
    match held {
        None if open.has_room() => _ = open.push_copied(bytes),
        held if !bytes.is_empty() => held.get_or_insert_default().pass(bytes, open),
        _ => {}
    }
}
