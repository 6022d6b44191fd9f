//! A tunnel: an exchange of which both ends speak another protocol by now, such as WebSocket.
//!
//! A tunnel owns what is needed for bytes both ways, and nothing of the request: there may be as many as
//! links, and most of them are idle. It must never look at what it passes on.

use staunch_engine::{Body, Open, Outbox, Piece, Upstream};
use staunch_tls::{OutgoingFault, OutgoingSession};

use super::application::ServerName;
use super::exchange::RelayedAnswer;
use super::journey::Journey;
use super::shares::ShareOwner;

/// An exchange whose ends speak another protocol.
pub(super) struct Tunnel {
    /// The server, until it has ended or is lost.
    pub(super) far_end: Option<FarEnd>,
    /// Bytes of the server that its client has not taken yet, and whether the server has ended.
    pub(super) held: Option<Box<RelayedAnswer>>,
    /// Whether the tunnel is there beside the places of its server, as all are for which there is room.
    pub(super) is_beside: bool,
    /// Bytes held, as they were counted last.
    pub(super) told_bytes: usize,
    pub(super) journey: Journey,
}

/// The server of a tunnel.
pub(super) struct FarEnd {
    pub(super) server: ServerName,
    pub(super) link: Upstream,
    /// The session of TLS, if that is spoken.
    pub(super) secured: Option<Box<OutgoingSession>>,
    /// Since when the tunnel has a place, if it has one.
    pub(super) placed_at_ms: Option<u64>,
    /// The client in whose share the link is.
    pub(super) owner: Option<ShareOwner>,
}

/// The state of a server after bytes of it.
pub(super) enum FarState {
    GoesOn,
    Ended,
    Broken(OutgoingFault),
}

impl Tunnel {
    /// Whether a link is the tunnel's.
    pub(super) fn has(&self, link: Upstream) -> bool {
        self.far_end.as_ref().is_some_and(|far_end| far_end.link == link)
    }

    /// Bytes came from the server.
    pub(super) fn hear_server(&mut self, bytes: &[u8], open: &mut Open<'_>, outbox: &Outbox) -> FarState {
        let Some(FarEnd { link, secured, .. }) = &mut self.far_end else { return FarState::GoesOn };
        let Some(session) = secured else {
            self.pass(bytes, open);
            return FarState::GoesOn;
        };
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let received = session.receive(bytes, &mut plain, &mut reply);
        let has_ended = session.has_ended();
        if !reply.is_empty() {
            outbox.upstreams().send(*link, Piece::Bytes(reply));
        }
        self.pass(&plain, open);
        match received {
            Err(fault) => FarState::Broken(fault),
            Ok(()) if has_ended => FarState::Ended,
            Ok(()) => FarState::GoesOn,
        }
    }

    /// Bytes came from the client, or it has ended.
    pub(super) fn hear_client(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        let Some(FarEnd { link, secured, .. }) = &mut self.far_end else { return };
        let upstreams = open.outbox().upstreams();
        let mut bytes = Vec::new();
        match (body, secured) {
            (Body::Piece(piece), None) => bytes.extend_from_slice(piece),
            (Body::End, None) => {}
            (Body::Piece(piece), Some(session)) => session.send(piece, &mut bytes),
            (Body::End, Some(session)) => session.close(&mut bytes),
        }
        if !bytes.is_empty() {
            upstreams.send(*link, Piece::Bytes(bytes));
        }
        if body == Body::End {
            upstreams.end(*link);
        }
        if !upstreams.has_room(*link) {
            open.hold();
        }
    }

    /// Sends what is held, and takes more from the server if that is at most `kept_max` bytes.
    pub(super) fn pour(&mut self, kept_max: usize, open: &mut Open<'_>) {
        if let Some(held) = &mut self.held {
            held.flow(self.far_end.as_ref().map(|far_end| far_end.link), kept_max, open);
        }
    }

    /// Sends bytes of the server to the client, or keeps them behind those that wait.
    fn pass(&mut self, bytes: &[u8], open: &mut Open<'_>) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.held {
            None if open.has_room() => _ = open.push_copied(bytes),
            held => held.get_or_insert_default().pass(bytes, open),
        }
    }

    /// Drops the memory for bytes that wait, if there are none. Gives how many there are.
    pub(super) fn settle(&mut self) -> usize {
        self.held.take_if(|held| !held.holds_anything());
        self.held.as_ref().map_or(0, |held| held.kept_bytes())
    }
}
