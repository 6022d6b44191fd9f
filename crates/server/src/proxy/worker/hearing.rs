//! Links are heard: an answer comes, or it will not.
//!
//! A request must never be tried twice that a server may have worked on, unless that harms nobody.

use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{
    Address, GivenBack, Open, Outbox, Upstream, UpstreamDeadline, UpstreamEvent, UpstreamLoss,
};
use staunch_protocol::http1::relay::RelayFault;

use super::ProxyWorker;
use crate::proxy::application::ServerName;
use crate::proxy::exchange::{Failure, ForwardStage, Forwarded};
use crate::proxy::relaying::{Relayed, relay};
use crate::proxy::trouble::Trouble;
use crate::proxy::wire::LinkReader;

/// An answer after the last bytes, or the end, of its link.
type Taken = Result<Relayed, RelayFault>;

/// More of a request's body may be sent.
fn go_on(open: Option<&mut Open<'_>>, address: Address, outbox: &Outbox) {
    match open {
        Some(open) => open.go_on(),
        None => outbox.wake(address),
    }
}

impl ProxyWorker {
    /// Something has happened on a link.
    pub(crate) fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        self.now_ms = outbox.now_ms();
        let Some(link) = self.links.get_mut(upstream) else {
            if let Some(open) = open {
                self.hear_tunnel(upstream, &event, open, outbox);
            }
            return;
        };
        let Some(address) = link.exchange else { return self.hear_at_rest(upstream, event, outbox) };
        match event {
            UpstreamEvent::Connected => {
                link.note_connected();
                link.server.get().counts.links_opened.fetch_add(1, Relaxed);
            }
            UpstreamEvent::Room => go_on(open, address, outbox),
            UpstreamEvent::Received(bytes) => self.receive(upstream, bytes, address, open, outbox),
            UpstreamEvent::Ended => self.hear_end(upstream, address, open, outbox),
            UpstreamEvent::Lost(loss) => {
                self.lose(upstream, address, Trouble::Lost(loss), open, outbox);
            }
        }
    }

    /// A server sends no more: by TLS that counts only if it has said so itself.
    fn hear_end(
        &mut self,
        upstream: Upstream,
        address: Address,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        let Some(link) = self.links.get_mut(upstream) else { return };
        let is_cut = link.lacks_close_notify();
        self.hear(upstream, address, open, outbox, |reader, forwarded, _| match reader.end() {
            Ok(_) if is_cut => Err(RelayFault::EndedInBody),
            Ok(_) => {
                forwarded.answer.has_ended = true;
                Ok(Relayed::Ended { keeps: false })
            }
            Err(fault) => Err(fault),
        });
    }

    /// A server that closes, or speaks unasked, loses its link. What TLS itself says, such as the tickets of
    /// a session, is no speech, but keeps no link beyond its time.
    fn hear_at_rest(&mut self, upstream: Upstream, event: UpstreamEvent<'_>, outbox: &Outbox) {
        if let UpstreamEvent::Received(bytes) = event
            && let Some(link) = self.links.get_mut(upstream)
            && let Some((plain, Ok(()))) = link.opened(upstream, bytes, outbox)
            && plain.is_empty()
            && !link.is_spent()
            && link.rests_for_ms(self.now_ms) < u64::from(self.shared.config.idle_ms)
        {
            return;
        }
        self.links.close(upstream, outbox);
    }

    /// Bytes came for an exchange.
    fn receive(
        &mut self,
        upstream: Upstream,
        bytes: &[u8],
        address: Address,
        mut open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        let Some(link) = self.links.get_mut(upstream) else { return };
        let had_keys = link.has_keys();
        let Some((plain, result)) = link.opened(upstream, bytes, outbox) else {
            return self.hear(upstream, address, open, outbox, |reader, forwarded, open| {
                relay(reader, bytes, forwarded, open)
            });
        };
        if !had_keys && link.has_keys() {
            go_on(open.as_deref_mut(), address, outbox);
        }
        if plain.is_empty() && result.is_ok() && self.is_late(upstream, address) {
            // Each record of TLS, with data or without, would begin the deadline anew.
            let late = UpstreamLoss::TimedOut(UpstreamDeadline::Receive);
            return self.lose(upstream, address, Trouble::Lost(late), open, outbox);
        }
        if !plain.is_empty() {
            self.hear(upstream, address, open.as_deref_mut(), outbox, |reader, forwarded, open| {
                relay(reader, &plain, forwarded, open)
            });
        }
        let Some(link) = self.links.get_mut(upstream) else { return };
        let serves = link.exchange == Some(address);
        if !plain.is_empty() {
            link.note_heard(self.now_ms);
        }
        match result {
            // The data before the fault was the whole answer.
            Err(_) if !serves => drop(self.links.close(upstream, outbox)),
            Err(fault) => self.lose(upstream, address, Trouble::Secured(fault), open, outbox),
            Ok(()) if serves && link.has_close_notify() => self.hear_end(upstream, address, open, outbox),
            Ok(()) => {}
        }
    }

    /// Whether an answer is late of which no data came by TLS.
    fn is_late(&mut self, upstream: Upstream, address: Address) -> bool {
        let answer_ms = u64::from(self.shared.config.answer_ms);
        let Some(link) = self.links.get_mut(upstream) else { return false };
        let is_silent = link.silent_ms(self.now_ms) > answer_ms;
        let awaited = |forwarded: &Forwarded| forwarded.body.has_ended && forwarded.answer.head.is_none();
        let is_awaited = self.exchanges.get(&address).is_some_and(|forwarded| awaited(forwarded));
        is_silent && (is_awaited || !link.has_keys())
    }

    /// Takes what came of an answer, and does what follows.
    pub(super) fn hear(
        &mut self,
        upstream: Upstream,
        address: Address,
        mut open: Option<&mut Open<'_>>,
        outbox: &Outbox,
        take: impl FnOnce(&mut LinkReader, &mut Forwarded, Option<&mut Open<'_>>) -> Taken,
    ) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        let Some(link) = self.links.get_mut(upstream) else { return };
        let taken = take(&mut link.reader, &mut forwarded, open.as_deref_mut());
        if forwarded.answer.head.is_some() {
            forwarded.journey.note_header(self.now_ms);
        }
        match (taken, forwarded.check_handshake()) {
            (Ok(Relayed::More), Ok(())) if forwarded.is_stream() => {
                outbox.upstreams().serve(upstream, Some(address), self.shared.config.in_stream());
                self.free_place_beside(&mut forwarded, true);
            }
            (Ok(Relayed::More), Ok(())) => {}
            (Ok(Relayed::More), Err(_)) => self.settle(&mut forwarded, false, outbox),
            (Ok(Relayed::Ended { keeps }), _) => self.settle(&mut forwarded, keeps, outbox),
            (Err(fault), _) => self.fail(&mut forwarded, upstream, Trouble::Fault(fault), address, outbox),
        }
        self.follow(forwarded, address, open, outbox);
    }

    /// A link is lost that serves an exchange.
    pub(super) fn lose(
        &mut self,
        upstream: Upstream,
        address: Address,
        trouble: Trouble,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else {
            self.links.forget(upstream);
            return;
        };
        self.fail(&mut forwarded, upstream, trouble, address, outbox);
        self.follow(forwarded, address, open, outbox);
    }

    /// Bytes that came are passed on, or their client's exchange is woken for them.
    pub(super) fn follow(
        &mut self,
        mut forwarded: Box<Forwarded>,
        address: Address,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        match open {
            Some(open) => self.pour(&mut forwarded, open),
            None if forwarded.answer.head.is_some()
                || forwarded.failure.is_some()
                || !forwarded.answer.interim.is_empty()
                || matches!(forwarded.stage, ForwardStage::Placed(..)) =>
            {
                outbox.wake(address);
            }
            None => {}
        }
        self.keep(address, forwarded);
    }

    /// The answer of a server is complete, or nothing of it is for its client: its place and its link are for
    /// others.
    pub(super) fn settle(&mut self, forwarded: &mut Forwarded, keeps: bool, outbox: &Outbox) {
        forwarded.journey.note_end(self.now_ms);
        self.free_place(forwarded, true);
        self.end_beside(&mut forwarded.is_beside);
        let ForwardStage::AtWork(server, link, _) = self.put(forwarded, ForwardStage::Apart) else { return };
        self.tell_errors(&server, link);
        let counts = &server.get().counts;
        counts.answers.fetch_add(1, Relaxed);
        let is_error = forwarded.answer.head.as_ref().is_some_and(|head| head.status.code() >= 500);
        counts.errors.fetch_add(u64::from(is_error), Relaxed);
        self.note_health(&server, false);
        if keeps && forwarded.body.has_ended {
            self.links.rest(link, &self.shared.config, outbox);
        } else {
            self.links.close(link, outbox);
        }
        if let Err(fault) = forwarded.check_handshake() {
            // The server is well, and is asked no second time.
            self.tell_operator(&server, Trouble::Fault(fault));
            forwarded.answer.forget();
            forwarded.failure = Some(Failure::BadAnswer);
        }
    }

    /// A server will not answer: the request is tried once more, or there is no answer.
    pub(super) fn fail(
        &mut self,
        forwarded: &mut Forwarded,
        upstream: Upstream,
        trouble: Trouble,
        address: Address,
        outbox: &Outbox,
    ) {
        forwarded.journey.note_end(self.now_ms);
        self.end_beside(&mut forwarded.is_beside);
        let ForwardStage::AtWork(server, _, since_ms) = self.put(forwarded, ForwardStage::Apart) else {
            return;
        };
        self.tell_errors(&server, upstream);
        let link = self.links.close(upstream, outbox);
        let (has_begun, may_have_sent, was_used) = link.map_or((true, true, false), |link| {
            (link.reader.has_begun(), link.may_have_sent(), link.is_used)
        });
        // Behind the end of an answer its reader awaits none.
        let has_begun = has_begun || forwarded.answer.head.is_some();
        trouble.count(server.get(), has_begun);
        if !trouble.is_end() || !was_used {
            self.tell_operator(&server, trouble);
        }
        // A server may close a link at rest whenever it likes.
        let is_old_end = was_used && !has_begun && trouble.is_end();
        let is_failure = !(trouble.is_full() || is_old_end);
        self.note_health(&server, is_failure);
        if since_ms.is_some() {
            self.give_back(&server, GivenBack::Unanswered);
        }
        if forwarded.answer.is_open {
            forwarded.answer.is_cut = true;
            return;
        }
        let may_repeat = !has_begun
            && !forwarded.has_retried
            && !forwarded.body.is_streamed
            && (forwarded.is_idempotent || !may_have_sent)
            && !trouble.is_slow();
        forwarded.answer.forget();
        if may_repeat && (!may_have_sent || forwarded.application.may_retry()) {
            return self.retry(forwarded, &server, address);
        }
        forwarded.failure = Some(trouble.failure());
    }

    /// Tries a request once more: on another server if there is one. Not where it would have to wait.
    pub(super) fn retry(&mut self, forwarded: &mut Forwarded, failed: &ServerName, address: Address) {
        forwarded.has_retried = true;
        forwarded.application.retries.fetch_add(1, Relaxed);
        failed.get().counts.retried.fetch_add(1, Relaxed);
        self.want_place(forwarded, Some(failed), address);
        if let ForwardStage::InLine(server) = &forwarded.stage {
            // If it has a place by now, the news of it finds nobody, and gives it back.
            server.get().places.leave(address);
            forwarded.journey.leave_line(self.now_ms);
            forwarded.failure = Some(Failure::Unreachable);
            self.put(forwarded, ForwardStage::Apart);
        }
        if matches!(
            forwarded.failure,
            Some(Failure::Crowded { .. } | Failure::GaveWay { .. } | Failure::Excess { .. })
        ) {
            forwarded.failure = Some(Failure::Unreachable);
        }
    }

    pub(super) fn note_health(&self, server: &ServerName, is_failure: bool) {
        if server.get().note(is_failure, self.now_ms) {
            let (application, address) = (&server.application.name, &server.get().address);
            (self.shared.notice)(&format!(
                "proxy: {address} of {application} fails: requests go elsewhere for a while, if they can"
            ));
            server.get().places.begin_anew();
        }
    }

    /// Tells the operator what an application said of its errors while it answered.
    pub(super) fn tell_errors(&self, server: &ServerName, upstream: Upstream) {
        let said = self.links.get(upstream).map_or(&b""[..], |link| link.reader.errors());
        if let Some(line) = server.get().error_lines.line(said, self.now_ms) {
            (self.shared.notice)(&format!("proxy: {}: {line}", server.get().address));
        }
    }

    pub(super) fn tell_operator(&self, server: &ServerName, trouble: Trouble) {
        if server.get().claims_notice(self.now_ms) {
            (self.shared.notice)(&format!("proxy: {}: {trouble}", server.get().address));
        }
    }
}
