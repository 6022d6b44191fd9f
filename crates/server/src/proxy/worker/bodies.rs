//! Bodies of requests: kept until a place is there, or sent as they come.
//!
//! A body must never be sent to a server that the request has no place at.

use staunch_engine::{Address, Body, Open, Outbox, Piece, Upstream};
use staunch_protocol::http1::BodyOut;
use staunch_protocol::{BodyIn, Request};

use super::ProxyWorker;
use crate::proxy::exchange::{ForwardStage, Forwarded};

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
            return send_piece(link, forwarded.body.is_chunked, piece.to_vec(), outbox);
        }
        forwarded.body.kept.extend_from_slice(piece);
        let is_long = forwarded.body.kept.len() > self.shared.config.body_bytes_kept;
        let is_undecided = forwarded.failure.is_none() && forwarded.answer.head.is_none();
        let is_apart = is_undecided && matches!(forwarded.stage, ForwardStage::Apart);
        if is_apart && (is_long || !self.shared.has_room()) {
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
            ForwardStage::AtWork(_, link, _) => end_body(link, forwarded.body.is_chunked, outbox),
            ForwardStage::Apart if forwarded.failure.is_none() && forwarded.answer.head.is_none() => {
                self.judge(forwarded, request);
                self.want_place(forwarded, None, address);
            }
            ForwardStage::Apart | ForwardStage::InLine(_) | ForwardStage::Placed(..) => {}
        }
    }

    /// Some of the body has come of a request whose answer has begun.
    pub(crate) fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        let Some(forwarded) = self.exchanges.get_mut(&open.address()) else { return };
        forwarded.body.has_ended |= body == Body::End;
        let ForwardStage::AtWork(_, link, _) = forwarded.stage else { return };
        let outbox = open.outbox();
        match body {
            Body::Piece(piece) => send_piece(link, forwarded.body.is_chunked, piece.to_vec(), outbox),
            Body::End if forwarded.is_tunnel => outbox.upstreams().end(link),
            Body::End => end_body(link, forwarded.body.is_chunked, outbox),
        }
        if !outbox.upstreams().has_room(link) {
            open.hold();
        }
    }
}

/// Sends a request as far as it is there.
pub(super) fn send_request(forwarded: &mut Forwarded, link: Upstream, content: BodyIn, outbox: &Outbox) {
    let upstreams = outbox.upstreams();
    upstreams.send(link, Piece::Bytes(forwarded.head.clone()));
    if content == BodyIn::None {
        return;
    }
    let body = match forwarded.body.is_streamed {
        true => std::mem::take(&mut forwarded.body.kept),
        false => forwarded.body.kept.clone(),
    };
    send_piece(link, forwarded.body.is_chunked, body, outbox);
    if forwarded.body.has_ended {
        end_body(link, forwarded.body.is_chunked, outbox);
    }
}

/// Sends a piece of a request's body.
fn send_piece(link: Upstream, is_chunked: bool, piece: Vec<u8>, outbox: &Outbox) {
    let upstreams = outbox.upstreams();
    if piece.is_empty() {
        return;
    }
    if !is_chunked {
        upstreams.send(link, Piece::Bytes(piece));
        return;
    }
    let (mut framing, mut frame) = (BodyOut::Chunked, Vec::new());
    framing.begin_piece(piece.len() as u64, &mut frame);
    frame.extend_from_slice(&piece);
    framing.end_piece(&mut frame);
    upstreams.send(link, Piece::Bytes(frame));
}

/// Sends what stands behind a request's body.
fn end_body(link: Upstream, is_chunked: bool, outbox: &Outbox) {
    if is_chunked {
        let mut frame = Vec::new();
        BodyOut::Chunked.end(&mut frame);
        outbox.upstreams().send(link, Piece::Bytes(frame));
    }
}
