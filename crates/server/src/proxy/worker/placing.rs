//! Places: asked for, used, given back.
//!
//! A place must never be lost: whatever becomes of a request, its place is given back once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, GivenBack, Outbox, PlaceAnswer, PlaceNews};
use staunch_protocol::Request;

use super::ProxyWorker;
use super::bodies::send_request;
use super::sharing::share_precedence;
use crate::proxy::application::ServerName;
use crate::proxy::exchange::{Failure, ForwardStage, Forwarded};
use crate::proxy::mail::ProxyMail;

impl ProxyWorker {
    /// News of a request that stood in line, which may have left meanwhile.
    pub(crate) fn mail(&mut self, mail: ProxyMail, outbox: &Outbox) {
        self.now_ms = outbox.now_ms();
        let ProxyMail { server, news } = mail;
        let address = news.address;
        let is_in_line =
            |one: &Forwarded| matches!(&one.stage, ForwardStage::InLine(wanted) if wanted.is(&server));
        let is_awaited = self.exchanges.get(&address).is_some_and(|one| is_in_line(one));
        match (is_awaited, news.has_place) {
            (true, false) if server.get().is_gone() => self.ask_elsewhere(address),
            (true, has_place) => self.leave_line(address, server, has_place),
            (false, true) => return self.give_back(&server, GivenBack::Unanswered),
            (false, false) => return,
        }
        outbox.wake(address);
    }

    /// A request has a place now, or its client's patience is over.
    fn leave_line(&mut self, address: Address, server: ServerName, has_place: bool) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        forwarded.journey.leave_line(self.now_ms);
        if has_place {
            self.put(&mut forwarded, ForwardStage::Placed(server, self.now_ms));
        } else {
            self.put(&mut forwarded, ForwardStage::Apart);
            forwarded.failure = Some(forwarded.crowded(1));
        }
        self.exchanges.insert(address, forwarded);
    }

    /// The server has vanished in whose line a request stood: it asks one of those that are there now.
    fn ask_elsewhere(&mut self, address: Address) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        self.put(&mut forwarded, ForwardStage::Apart);
        self.want_place(&mut forwarded, None, address);
        if !matches!(forwarded.stage, ForwardStage::InLine(_)) {
            forwarded.journey.leave_line(self.now_ms);
        }
        self.keep(address, forwarded);
    }

    /// A server needs its place for an exchange no more. `has_begun`: it has answered, or has begun to.
    pub(super) fn free_place(&mut self, forwarded: &mut Forwarded, has_begun: bool) {
        let ForwardStage::AtWork(server, _, since_ms) = &mut forwarded.stage else { return };
        let (server, Some(since_ms)) = (server.clone(), since_ms.take()) else { return };
        if !has_begun {
            return self.give_back(&server, GivenBack::Beside);
        }
        self.give_back_answered(&server, since_ms);
    }

    /// A server has answered, or has begun to, whose place was taken then: it is given back.
    pub(super) fn give_back_answered(&mut self, server: &ServerName, since_ms: u64) {
        let in_work_ms = self.now_ms.saturating_sub(since_ms);
        server.get().counts.in_work_ms.fetch_add(in_work_ms, Relaxed);
        let in_work_ms = u32::try_from(in_work_ms).unwrap_or(u32::MAX);
        self.give_back(server, GivenBack::Answered { in_work_ms });
    }

    /// Asks for a place at a server.
    pub(super) fn want_place(
        &mut self,
        forwarded: &mut Forwarded,
        but: Option<&ServerName>,
        address: Address,
    ) {
        if forwarded.failure.is_some() {
            return;
        }
        self.renew(forwarded);
        if forwarded.application.servers.is_empty() {
            // None of its names leads anywhere.
            forwarded.failure = Some(Failure::Unreachable);
            return;
        }
        if let Some(held) = self.share_of_links(forwarded).or_else(|| self.share_of_line(forwarded)) {
            forwarded.failure = Some(Failure::Excess { held });
            return;
        }
        share_precedence(forwarded, self.shared.clients_seen.are_several(self.now_ms));
        let (standing, now_ms) = (forwarded.standing, self.now_ms);
        let application = Arc::clone(&forwarded.application);
        let but_index = but.and_then(|but| application.index_of(but.get()));
        let of_client = forwarded.stay.as_ref();
        let of_client =
            of_client.and_then(|stay| application.choose_for(stay.key, standing, but_index, now_ms));
        let index = of_client.unwrap_or_else(|| application.choose(self.draw(), but_index, now_ms));
        let server = ServerName { application, index };
        let mut news = std::mem::take(&mut self.news);
        let answer = server.get().places.ask(address, standing, now_ms, &mut news);
        self.tell(&server, news);
        match answer {
            PlaceAnswer::Taken => _ = self.put(forwarded, ForwardStage::Placed(server, now_ms)),
            // Told by nobody, if it vanished before the request stood there.
            PlaceAnswer::Waits if server.get().is_gone() && server.get().places.leave(address) => {
                self.want_place(forwarded, but, address);
            }
            PlaceAnswer::Waits => {
                self.put(forwarded, ForwardStage::InLine(server));
                forwarded.journey.enter_line(now_ms);
                self.shared.look_after_lines();
            }
            PlaceAnswer::Refused { spread_s } => {
                server.application.line(standing).note_full(now_ms);
                let spread_s = 1 + (self.draw() % u64::from(spread_s)) as u32;
                forwarded.failure = Some(forwarded.crowded(spread_s));
            }
        }
    }

    /// Servers may have come or vanished since the request began.
    fn renew(&mut self, forwarded: &mut Forwarded) {
        if let Some(application) = self.application(&forwarded.application.name) {
            forwarded.application = application;
        }
    }

    /// A request with a place goes to its server.
    pub(super) fn begin_if_placed(
        &mut self,
        forwarded: &mut Forwarded,
        request: &Request<'_>,
        address: Address,
        outbox: &Outbox,
    ) {
        if !matches!(forwarded.stage, ForwardStage::Placed(..)) {
            return;
        }
        let ForwardStage::Placed(server, since_ms) = self.put(forwarded, ForwardStage::Apart) else {
            return;
        };
        if let Some(held) = self.share_of_links(forwarded) {
            // The client stood in line with more requests than it had links left.
            forwarded.failure = Some(Failure::Excess { held });
            return self.give_back(&server, GivenBack::Beside);
        }
        if forwarded.asks_upgrade && self.beside >= self.shared.config.beside_max() {
            // A WebSocket would hold its place for as long as its client likes.
            forwarded.failure = Some(Failure::NoLink);
            return self.give_back(&server, GivenBack::Beside);
        }
        let shared = Arc::clone(&self.shared);
        let link = self.links.open(&server, address, forwarded, &shared, self.unix_s, outbox);
        let Some(link) = link else {
            forwarded.failure = Some(Failure::NoLink);
            return self.give_back(&server, GivenBack::Unanswered);
        };
        if let Some(link) = self.links.get_mut(link) {
            link.reader.begin(forwarded.is_head, forwarded.asks_upgrade);
        }
        forwarded.journey.ask(&server, since_ms);
        self.put(forwarded, ForwardStage::AtWork(server, link, Some(since_ms)));
        send_request(&mut self.links, forwarded, link, request.content, outbox);
        if !forwarded.body.has_ended {
            // A client whose body is slow must not keep others from being worked on.
            self.free_place_beside(forwarded, false);
        }
    }

    /// Work goes on beside the places, for as long as its client likes, as far as there are links for it. The
    /// time until now counts as that of an answer if one `has_begun`.
    pub(super) fn free_place_beside(&mut self, forwarded: &mut Forwarded, has_begun: bool) {
        let has_place = matches!(forwarded.stage, ForwardStage::AtWork(_, _, Some(_)));
        if has_place && self.beside < self.shared.config.beside_max() {
            self.beside += 1;
            (forwarded.is_beside, forwarded.precedence) = (true, None);
            self.free_place(forwarded, has_begun);
        }
    }

    /// Work beside the places has ended.
    pub(super) fn end_beside(&mut self, is_beside: &mut bool) {
        self.beside -= u32::from(std::mem::take(is_beside));
    }

    /// Gives back the place of a request, or leaves the line, and forgets its link.
    pub(super) fn abandon(&mut self, forwarded: &mut Forwarded, address: Address) {
        self.end_beside(&mut forwarded.is_beside);
        match self.put(forwarded, ForwardStage::Apart) {
            ForwardStage::Apart => {}
            ForwardStage::InLine(server) => _ = server.get().places.leave(address),
            ForwardStage::Placed(server, _) => self.give_back(&server, GivenBack::Unanswered),
            ForwardStage::AtWork(server, link, since_ms) => {
                // The engine closes it with the exchange.
                self.links.forget(link);
                if since_ms.is_some() {
                    self.give_back(&server, GivenBack::Unanswered);
                }
            }
        }
    }

    pub(super) fn give_back(&mut self, server: &ServerName, how: GivenBack) {
        let mut news = std::mem::take(&mut self.news);
        server.get().places.give_back(how, self.now_ms, &mut news);
        self.tell(server, news);
    }

    pub(super) fn tell(&mut self, server: &ServerName, mut news: Vec<PlaceNews>) {
        news.drain(..).for_each(|one| self.shared.tell(server, one));
        self.news = news;
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
