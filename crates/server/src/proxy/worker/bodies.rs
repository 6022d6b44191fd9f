//! Bodies of requests: kept until a place is there, or sent as they come.
//!
//! A body must never be sent to a server that the request has no place at.

use staunch_engine::{Address, Body, Open, Outbox, Upstream};
use staunch_protocol::{BodyIn, Request};

use super::ProxyWorker;
use crate::proxy::exchange::{Failure, ForwardStage, Forwarded};
use crate::proxy::links::Links;
use crate::proxy::wire::Framing;

impl ProxyWorker {
    /// Keeps or sends a piece of a request's body.
    pub(super) fn take_body(
        &mut self,
        forwarded: &mut Forwarded,
        piece: &[u8],
        request: &Request<'_>,
        address: Address,
        outbox: &Outbox,
    ) {
        if let ForwardStage::AtWork(_, link, _) = forwarded.stage {
            return send_piece(&mut self.links, link, forwarded.body.framing, piece.to_vec(), outbox);
        }
        forwarded.body.kept.extend_from_slice(piece);
        let is_long = forwarded.body.kept.len() > self.shared.config.body_bytes_kept;
        let is_undecided = forwarded.failure.is_none() && forwarded.answer.head.is_none();
        let is_apart = is_undecided && matches!(forwarded.stage, ForwardStage::Apart);
        if is_apart && (is_long || !self.shared.has_room()) {
            if !is_long && forwarded.call.is_some() && request.content == BodyIn::Open {
                // By FastCGI its length has to be known, and there is no room to wait for it.
                forwarded.failure = Some(Failure::NoLink);
                return;
            }
            forwarded.body.is_streamed = true;
            self.judge(forwarded, request);
            self.want_place(forwarded, None, address);
        }
    }

    /// The body of a request is there.
    pub(super) fn end_body(
        &mut self,
        forwarded: &mut Forwarded,
        request: &Request<'_>,
        address: Address,
        outbox: &Outbox,
    ) {
        forwarded.body.has_ended = true;
        match forwarded.stage {
            ForwardStage::AtWork(_, link, _) => {
                end_body(&mut self.links, link, forwarded.body.framing, outbox)
            }
            ForwardStage::Apart if forwarded.failure.is_none() && forwarded.answer.head.is_none() => {
                self.judge(forwarded, request);
                self.want_place(forwarded, None, address);
            }
            ForwardStage::Apart | ForwardStage::InLine(_) | ForwardStage::Placed(..) => {}
        }
    }

    /// Some of the body has come of a request whose answer has begun.
    pub(crate) fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        if let Some(tunnel) = self.tunnels.get_mut(&open.address()) {
            return tunnel.hear_client(body, open);
        }
        let Some(forwarded) = self.exchanges.get_mut(&open.address()) else { return };
        forwarded.body.has_ended |= body == Body::End;
        let ForwardStage::AtWork(_, link, _) = forwarded.stage else { return };
        let outbox = open.outbox();
        match body {
            Body::Piece(piece) => {
                send_piece(&mut self.links, link, forwarded.body.framing, piece.to_vec(), outbox);
            }
            Body::End => end_body(&mut self.links, link, forwarded.body.framing, outbox),
        }
        if !self.links.has_room(link, outbox) {
            open.hold();
        }
    }
}

/// Sends a request as far as it is there.
pub(super) fn send_request(
    links: &mut Links,
    forwarded: &mut Forwarded,
    link: Upstream,
    content: BodyIn,
    outbox: &Outbox,
) {
    links.send(link, forwarded.head.clone(), outbox);
    if content != BodyIn::None {
        let body = match forwarded.body.is_streamed {
            true => std::mem::take(&mut forwarded.body.kept),
            false => forwarded.body.kept.clone(),
        };
        send_piece(links, link, forwarded.body.framing, body, outbox);
    }
    if forwarded.body.has_ended {
        end_body(links, link, forwarded.body.framing, outbox);
    }
}

/// Sends a piece of a request's body.
fn send_piece(links: &mut Links, link: Upstream, framing: Framing, piece: Vec<u8>, outbox: &Outbox) {
    if !piece.is_empty() {
        links.send(link, framing.piece(piece), outbox);
    }
}

/// Sends what stands behind a request's body.
fn end_body(links: &mut Links, link: Upstream, framing: Framing, outbox: &Outbox) {
    links.send(link, framing.end(), outbox);
}
