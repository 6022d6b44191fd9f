//! Shares of clients: counted where a request moves on, and the refusal of a client that has its share.
//!
//! A request must never move from a link or a line, or to one, but by [`ProxyWorker::put`], which counts.

use super::ProxyWorker;
use crate::proxy::exchange::{ForwardStage, Forwarded};

impl ProxyWorker {
    /// Moves a request on, and counts what its client holds by that. Gives where it stood.
    pub(super) fn put(&mut self, forwarded: &mut Forwarded, stage: ForwardStage) -> ForwardStage {
        let (before, standing) = (std::mem::replace(&mut forwarded.stage, stage), forwarded.standing);
        match &before {
            ForwardStage::InLine(server) => server.application.line(standing).leave(forwarded.owner),
            ForwardStage::AtWork(..) => self.link_shares.leave(forwarded.owner),
            ForwardStage::Apart | ForwardStage::Placed(..) => {}
        }
        match &forwarded.stage {
            ForwardStage::InLine(server) => server.application.line(standing).enter(forwarded.owner),
            ForwardStage::AtWork(..) => self.link_shares.enter(forwarded.owner),
            ForwardStage::Apart | ForwardStage::Placed(..) => {}
        }
        before
    }

    /// How many links of this worker a client holds, if those are its share.
    pub(super) fn share_of_links(&self, forwarded: &Forwarded) -> Option<u32> {
        let owner = forwarded.owner?;
        let are_several = self.shared.clients_seen.are_several(self.now_ms);
        let excess = self.link_shares.excess(owner, are_several)?;
        if self.shared.excess_counts.count_links(self.now_ms) {
            self.tell_excess(forwarded, &format!("{excess} connections to servers in one worker"));
        }
        Some(excess.held)
    }

    /// How many places in the line of its application a client holds, if those are its share.
    pub(super) fn share_of_line(&self, forwarded: &Forwarded) -> Option<u32> {
        let owner = forwarded.owner?;
        let are_several = self.shared.clients_seen.are_several(self.now_ms);
        let application = &forwarded.application;
        let line = application.line(forwarded.standing);
        let excess = line.excess(owner, are_several, self.now_ms)?;
        if self.shared.excess_counts.count_line(self.now_ms) {
            self.tell_excess(forwarded, &format!("{excess} places in the line of {}", application.name));
        }
        Some(excess.held)
    }

    fn tell_excess(&self, forwarded: &Forwarded, has: &str) {
        let Some(client) = forwarded.asker.client else { return };
        (self.shared.notice)(&format!(
            "proxy: {client} has {has}, which is its share: further requests get 429. If it is a proxy of \
             yours, name it in trusted_proxies"
        ));
    }
}

/// A client whose requests go before others at as many places as it may waits with further ones as all do,
/// while others are there: those of high class, and those of a known client, are counted apart.
pub(super) fn share_precedence(forwarded: &mut Forwarded, are_several: bool) {
    let Some(owner) = forwarded.owner else { return };
    forwarded.precedence = None;
    while forwarded.precedence.is_none() && forwarded.standing.has_precedence() {
        let (application, standing) = (&forwarded.application, forwarded.standing);
        let most = if are_several { application.precedence_max() } else { u32::MAX };
        forwarded.precedence = application.precedence(standing).take(owner, most);
        if forwarded.precedence.is_none() {
            forwarded.standing = standing.without_precedence();
        }
    }
    forwarded.journey.standing = forwarded.standing;
}
