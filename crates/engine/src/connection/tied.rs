//! An answer that goes on hears of the upstream that serves it.
//!
//! It must never be on the way of an exchange without an upstream.

use super::turn::Turn;
use super::{Connection, Phase};
use crate::exchange::open::Open;
use crate::exchange::outlet::Outlet;
use crate::handler::Handler;
use crate::upstream::{Upstream, UpstreamEvent};

impl Connection {
    /// Something has happened on the upstream: the handler is told, and what it has said of the answer is
    /// carried out.
    #[cold]
    pub(crate) fn hear<H: Handler>(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        turn: &mut Turn<'_, H>,
    ) {
        if self.phase == Phase::Http2 {
            return self.hear_http2(upstream, event, turn);
        }
        let mut outgoing = self.outgoing(turn.spare);
        if let Some(mut state) = self.under_way.open() {
            let was_held = state.held;
            let (sending, peer_ended, context) = (self.sending, self.has_ended(), &turn.context);
            let outlet = Outlet::Connection(&mut outgoing);
            let owner = self.under_way.owner().unwrap_or_default();
            let mut open = Open { state: &mut state, outlet, context, owner, sending, peer_ended };
            turn.handler.upstream(upstream, event, Some(&mut open), context.outbox);
            self.under_way.set_open(state);
            if was_held && !state.held {
                self.session.begin_reading(turn.now_ms);
            }
        }
        self.put_outgoing(outgoing, turn.spare);
        self.converse(&[], turn);
    }
}
