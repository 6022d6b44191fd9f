//! Tunnels of a worker: begun, heard and ended.
//!
//! Whatever becomes of a tunnel, its place, its link and the share of its client must be given back once.

use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, GivenBack, Open, Outbox, Upstream, UpstreamEvent};

use super::ProxyWorker;
use crate::proxy::exchange::{ForwardStage, Forwarded};
use crate::proxy::trouble::Trouble;
use crate::proxy::tunnel::{FarEnd, FarState, Tunnel};

impl ProxyWorker {
    /// A server has agreed to another protocol: its link and its place are the tunnel's from now on.
    pub(super) fn begin_tunnel(&mut self, address: Address, mut forwarded: Box<Forwarded>) {
        // The request was answered: nothing is tried once more. Its link stays in the share of its client.
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
        let held_bytes = tunnel.settle();
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
        match event {
            _ if !tunnel.has(upstream) => {}
            UpstreamEvent::Connected => {}
            UpstreamEvent::Room => open.go_on(),
            UpstreamEvent::Received(bytes) => match tunnel.hear_server(bytes, open, outbox) {
                FarState::GoesOn => {}
                FarState::Ended => self.end_far(&mut tunnel, None, outbox),
                FarState::Broken(fault) => self.end_far(&mut tunnel, Some(Trouble::Secured(fault)), outbox),
            },
            // By TLS too: a WebSocket says itself that it ends (RFC 6455, section 7).
            UpstreamEvent::Ended => self.end_far(&mut tunnel, None, outbox),
            UpstreamEvent::Lost(loss) => self.end_far(&mut tunnel, Some(Trouble::Lost(*loss)), outbox),
        }
        tunnel.pour(self.shared.answer_bytes_max(), open);
        self.keep_tunnel(address, tunnel);
    }

    /// The server has ended, or is lost.
    fn end_far(&mut self, tunnel: &mut Tunnel, trouble: Option<Trouble>, outbox: &Outbox) {
        let Some(far_end) = self.leave_far(tunnel) else { return };
        let FarEnd { server, link, mut secured, placed_at_ms, .. } = far_end;
        let held = tunnel.held.get_or_insert_default();
        (held.has_ended, held.is_cut) = (trouble.is_none(), trouble.is_some());
        // The server has answered; how a client and an application part says nothing of it.
        server.get().counts.answers.fetch_add(1, Relaxed);
        self.note_health(&server, false);
        if let Some(trouble) = trouble.filter(|trouble| !trouble.is_end()) {
            self.tell_operator(&server, trouble);
        }
        match placed_at_ms {
            Some(since_ms) if trouble.is_none() => self.give_back_answered(&server, since_ms),
            Some(_) => self.give_back(&server, GivenBack::Unanswered),
            None => {}
        }
        self.links.take_back(link, secured.as_deref_mut(), outbox);
    }

    /// A tunnel has its server no more; the caller gives back the place and the link.
    fn leave_far(&mut self, tunnel: &mut Tunnel) -> Option<FarEnd> {
        let far_end = tunnel.far_end.take()?;
        tunnel.journey.note_end(self.now_ms);
        self.end_beside(&mut tunnel.is_beside);
        self.link_shares.leave(far_end.owner);
        Some(far_end)
    }

    /// A tunnel has begun, or its client has room again. Whether there is such a tunnel.
    pub(super) fn ready_tunnel(&mut self, open: &mut Open<'_>) -> bool {
        let address = open.address();
        let Some(mut tunnel) = self.tunnels.remove(&address) else { return false };
        tunnel.pour(self.shared.answer_bytes_max(), open);
        open.release_request();
        self.keep_tunnel(address, tunnel);
        true
    }

    /// The client of a tunnel has left, or the tunnel has ended.
    pub(super) fn leave_tunnel(&mut self, address: Address) {
        let Some(mut tunnel) = self.tunnels.remove(&address) else { return };
        self.shared.hold(tunnel.told_bytes, 0);
        let Some(far_end) = self.leave_far(&mut tunnel) else { return };
        // The engine closes the link with the exchange.
        self.links.forget_given();
        if far_end.placed_at_ms.is_some() {
            self.give_back(&far_end.server, GivenBack::Unanswered);
        }
    }
}
