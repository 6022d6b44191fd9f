//! A worker's part of the proxy: what the engine asks about exchanges and links.
//!
//! It must never wait, nor lose a place: whatever becomes of a request, its place is given back once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use staunch_engine::{
    Address, Answer, Answered, Body, GivenBack, Open, Outbox, Piece, PlaceAnswer, PlaceNews, Reading,
    Upstream, UpstreamDeadline, UpstreamEvent, UpstreamLoss,
};
use staunch_protocol::http1::BodyOut;
use staunch_protocol::http1::relay::RelayFault;
use staunch_protocol::{BodyIn, Request, Status};

use super::application::{Application, ServerName};
use super::exchange::{Asker, Failure, Forwarded, Stage};
use super::links::Links;
use super::mail::ProxyMail;
use super::relaying::{Relayed, relay};
use super::shared::ProxyShared;
use crate::limits::{PROXY_ANSWER_BYTES_KEPT, PROXY_ANSWER_BYTES_MIN};
use crate::owner::OwnerPart;
use crate::problem::Problem;

/// What the rules of a site say of a request that is passed on.
pub(crate) struct ProxyErrand<'a> {
    /// The application, as it was configured.
    pub(crate) application: &'a str,
    /// Field lines for the answer.
    pub(crate) lines: Vec<u8>,
    /// Whether the client has shown credentials here.
    pub(crate) is_guarded: bool,
}

/// A worker's part of the proxy.
pub(crate) struct ProxyWorker {
    shared: Arc<ProxyShared>,
    applications: HashMap<Box<str>, Arc<Application>>,
    exchanges: HashMap<Address, Box<Forwarded>>,
    links: Links,
    /// Chance, for the choice of servers (xorshift64*).
    chance: u64,
    /// News of places, before they are told.
    news: Vec<PlaceNews>,
    /// When the worker's turn began that asked last.
    now_ms: u64,
}

impl ProxyWorker {
    pub(crate) fn new(shared: &Arc<ProxyShared>, worker: u16) -> Self {
        Self {
            shared: Arc::clone(shared),
            applications: HashMap::new(),
            exchanges: HashMap::new(),
            links: Links::default(),
            chance: 0x9e37_79b9_7f4a_7c15 ^ (u64::from(worker) + 1),
            news: Vec::new(),
            now_ms: 0,
        }
    }

    /// Links of this worker at a time.
    pub(crate) fn links_max(&self) -> u32 {
        self.shared.config.links_max
    }

    /// A request is to be passed on.
    pub(crate) fn handle(
        &mut self,
        errand: ProxyErrand<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        self.now_ms = answer.outbox().now_ms();
        self.shared.now_ms.store(self.now_ms, Relaxed);
        let Some(application) = self.application(errand.application) else {
            return self.answer_failure(Failure::Unreachable, &errand.lines, request, answer);
        };
        let (peer, client) = (answer.peer(), answer.client(request));
        let asker = Asker { client, is_secured: answer.is_secured(), is_trusted: peer != client };
        let mut forwarded = Forwarded::new(application, request, asker, errand.lines);
        forwarded.is_guarded = errand.is_guarded;
        let (address, owner) = (answer.address(), OwnerPart::Proxy.into());
        if !forwarded.body.has_ended {
            self.exchanges.insert(address, forwarded);
            return answer.read(request).owned_by(owner);
        }
        self.want_place(&mut forwarded, None, address);
        self.advance(forwarded, request, answer).owned_by(owner)
    }

    /// A request that waits was woken.
    pub(crate) fn woken(&mut self, request: &Request<'_>, mut answer: Answer<'_>) -> Answered {
        self.now_ms = answer.outbox().now_ms();
        let Some(mut forwarded) = self.exchanges.remove(&answer.address()) else {
            return self.answer_failure(Failure::Unreachable, b"", request, answer);
        };
        for fields in std::mem::take(&mut forwarded.answer.interim) {
            answer.interim(request, Status::EARLY_HINTS, &fields);
        }
        self.advance(forwarded, request, answer)
    }

    /// Answers a request if it can be, begins to have it worked on if it has a place, or waits on.
    fn advance(
        &mut self,
        mut forwarded: Box<Forwarded>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let address = answer.address();
        if forwarded.is_guarded {
            answer.guard();
        }
        self.begin_if_placed(&mut forwarded, request, address, answer.outbox());
        if let Some(failure) = forwarded.failure {
            let lines = std::mem::take(&mut forwarded.lines);
            self.leave(*forwarded, address);
            return self.answer_failure(failure, &lines, request, answer);
        }
        if forwarded.answer.head.is_some() {
            return self.answer(forwarded, request, answer);
        }
        let held_bytes = self.keep(address, forwarded);
        answer.later_holding(held_bytes)
    }

    /// Some of a request's body has come, or the request was woken.
    pub(crate) fn reading(
        &mut self,
        body: Option<Body<'_>>,
        request: &Request<'_>,
        mut reading: Reading<'_>,
    ) -> Answered {
        self.now_ms = reading.outbox().now_ms();
        let address = reading.address();
        let Some(mut forwarded) = self.exchanges.remove(&address) else {
            return self.answer_failure(Failure::Unreachable, b"", request, reading.answer());
        };
        for fields in std::mem::take(&mut forwarded.answer.interim) {
            reading.interim(request, Status::EARLY_HINTS, &fields);
        }
        match body {
            Some(Body::Piece(piece)) => self.take_body(&mut forwarded, piece, address, reading.outbox()),
            Some(Body::End) => self.end_body(&mut forwarded, address, reading.outbox()),
            None => {}
        }
        self.begin_if_placed(&mut forwarded, request, address, reading.outbox());
        if forwarded.failure.is_some() || forwarded.answer.head.is_some() || forwarded.body.has_ended {
            return self.advance(forwarded, request, reading.answer());
        }
        let goes_on = match &forwarded.stage {
            Stage::Apart => true,
            Stage::AtWork(_, link, _) => reading.outbox().upstreams().has_room(*link),
            Stage::InLine(_) | Stage::Placed(..) => false,
        };
        self.keep(address, forwarded);
        if goes_on { reading.go_on() } else { reading.hold() }
    }

    /// Keeps or sends a piece of a request's body.
    fn take_body(&mut self, forwarded: &mut Forwarded, piece: &[u8], address: Address, outbox: &Outbox) {
        if let Stage::AtWork(_, link, _) = forwarded.stage {
            return send_piece(link, forwarded.body.is_chunked, piece.to_vec(), outbox);
        }
        forwarded.body.kept.extend_from_slice(piece);
        let is_long = forwarded.body.kept.len() > self.shared.config.body_bytes_kept;
        if matches!(forwarded.stage, Stage::Apart) && (is_long || !self.shared.has_room()) {
            forwarded.body.is_streamed = true;
            self.want_place(forwarded, None, address);
        }
    }

    /// The body of a request is there.
    fn end_body(&mut self, forwarded: &mut Forwarded, address: Address, outbox: &Outbox) {
        forwarded.body.has_ended = true;
        match forwarded.stage {
            Stage::AtWork(_, link, _) => end_body(link, forwarded.body.is_chunked, outbox),
            Stage::Apart if forwarded.failure.is_none() => self.want_place(forwarded, None, address),
            Stage::Apart | Stage::InLine(_) | Stage::Placed(..) => {}
        }
    }

    /// Some of the body has come of a request whose answer has begun.
    pub(crate) fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        let Some(forwarded) = self.exchanges.get_mut(&open.address()) else { return };
        forwarded.body.has_ended |= body == Body::End;
        let Stage::AtWork(_, link, _) = forwarded.stage else { return };
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

    /// An answer has begun, or has room again.
    pub(crate) fn ready(&mut self, open: &mut Open<'_>) {
        let Some(mut forwarded) = self.exchanges.remove(&open.address()) else { return };
        self.pour(&mut forwarded, open);
        self.keep(open.address(), forwarded);
    }

    /// Sends what is kept, and takes more from the server if there is little.
    fn pour(&mut self, forwarded: &mut Forwarded, open: &mut Open<'_>) {
        forwarded.answer.pour(open);
        let kept_bytes = forwarded.answer.kept_bytes();
        open.note_held(kept_bytes);
        let Stage::AtWork(_, link, _) = forwarded.stage else { return };
        let kept_max = if self.shared.has_room() { PROXY_ANSWER_BYTES_KEPT } else { PROXY_ANSWER_BYTES_MIN };
        let is_full = kept_bytes > kept_max;
        if is_full && !forwarded.answer.is_held {
            forwarded.answer.is_held = true;
            open.outbox().upstreams().hold(link);
            self.free_place(forwarded);
        } else if forwarded.answer.is_held && kept_bytes <= kept_max / 2 {
            forwarded.answer.is_held = false;
            open.outbox().upstreams().go_on(link);
        }
    }

    /// News of a request that stood in line, which may have left meanwhile.
    pub(crate) fn mail(&mut self, mail: ProxyMail, outbox: &Outbox) {
        self.now_ms = outbox.now_ms();
        let ProxyMail { server, news } = mail;
        let address = news.address;
        let waiting = self.exchanges.get_mut(&address);
        let waiting = waiting.filter(|one| matches!(&one.stage, Stage::InLine(wanted) if wanted.is(&server)));
        match (waiting, news.has_place) {
            (Some(forwarded), true) => forwarded.stage = Stage::Placed(server, self.now_ms),
            (Some(forwarded), false) => {
                forwarded.stage = Stage::Apart;
                forwarded.failure = Some(Failure::Crowded { spread_s: 1 });
            }
            (None, true) => return self.give_back(&server, GivenBack::Unanswered),
            (None, false) => return,
        }
        outbox.wake(address);
    }

    /// The client of a request has left.
    pub(crate) fn left(&mut self, address: Address) {
        if let Some(forwarded) = self.exchanges.remove(&address) {
            self.leave(*forwarded, address);
        }
    }

    /// The client of a request that is not answered yet sends no more: nearly always it is gone, and nobody
    /// works for it any more.
    pub(crate) fn give_up(&mut self, address: Address, outbox: &Outbox) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        self.now_ms = outbox.now_ms();
        if let Stage::AtWork(_, link, _) = forwarded.stage {
            outbox.upstreams().close(link);
        }
        self.abandon(&mut forwarded, address);
        forwarded.failure = Some(Failure::ClientGone);
        outbox.wake(address);
        self.keep(address, forwarded);
    }

    /// Something has happened on a link.
    pub(crate) fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        self.now_ms = outbox.now_ms();
        let Some(link) = self.links.get_mut(upstream) else { return };
        let Some(address) = link.exchange else {
            // A server that closes, or speaks unasked, on a link at rest.
            return self.links.close(upstream, outbox);
        };
        match event {
            UpstreamEvent::Connected => {
                link.note_connected();
                link.server.get().counts.links_opened.fetch_add(1, Relaxed);
            }
            UpstreamEvent::Room => match open {
                Some(open) => open.go_on(),
                None => outbox.wake(address),
            },
            UpstreamEvent::Received(bytes) => {
                self.hear(upstream, address, open, outbox, |reader, forwarded, open| {
                    relay(reader, bytes, forwarded, open)
                });
            }
            UpstreamEvent::Ended => self.hear(upstream, address, open, outbox, |reader, forwarded, _| {
                reader.end().map(|_| {
                    forwarded.answer.has_ended = true;
                    Relayed::Ended { keeps: false }
                })
            }),
            UpstreamEvent::Lost(loss) => self.lose(upstream, address, loss, open, outbox),
        }
    }

    /// Takes what came of an answer, and does what follows.
    fn hear(
        &mut self,
        upstream: Upstream,
        address: Address,
        mut open: Option<&mut Open<'_>>,
        outbox: &Outbox,
        take: impl FnOnce(
            &mut staunch_protocol::http1::relay::RelayReader,
            &mut Forwarded,
            Option<&mut Open<'_>>,
        ) -> Result<Relayed, RelayFault>,
    ) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        let Some(link) = self.links.get_mut(upstream) else { return };
        match take(&mut link.reader, &mut forwarded, open.as_deref_mut()) {
            Ok(Relayed::More) if forwarded.is_stream() => {
                outbox.upstreams().serve(upstream, Some(address), self.shared.config.in_stream());
                self.free_place(&mut forwarded);
            }
            Ok(Relayed::More) => {}
            Ok(Relayed::Ended { keeps }) => self.settle(&mut forwarded, keeps, outbox),
            Err(fault) => self.fail(&mut forwarded, upstream, Trouble::Fault(fault), address, outbox),
        }
        self.follow(forwarded, address, open, outbox);
    }

    /// A link is lost that serves an exchange.
    fn lose(
        &mut self,
        upstream: Upstream,
        address: Address,
        loss: UpstreamLoss,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else {
            self.links.forget(upstream);
            return;
        };
        self.fail(&mut forwarded, upstream, Trouble::Lost(loss), address, outbox);
        self.follow(forwarded, address, open, outbox);
    }

    /// What came is passed on, or its client's exchange is woken for it.
    fn follow(
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
                || matches!(forwarded.stage, Stage::Placed(..)) =>
            {
                outbox.wake(address);
            }
            None => {}
        }
        self.keep(address, forwarded);
    }

    /// The answer of a server is complete: its place and its link are for others.
    fn settle(&mut self, forwarded: &mut Forwarded, keeps: bool, outbox: &Outbox) {
        self.free_place(forwarded);
        let Stage::AtWork(server, link, _) = std::mem::replace(&mut forwarded.stage, Stage::Apart) else {
            return;
        };
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
    }

    /// A server has done its work for an exchange: its place is for others.
    fn free_place(&mut self, forwarded: &mut Forwarded) {
        let Stage::AtWork(server, _, since_ms) = &mut forwarded.stage else { return };
        let (server, Some(since_ms)) = (server.clone(), since_ms.take()) else { return };
        let in_work_ms = self.now_ms.saturating_sub(since_ms);
        server.get().counts.in_work_ms.fetch_add(in_work_ms, Relaxed);
        let in_work_ms = u32::try_from(in_work_ms).unwrap_or(u32::MAX);
        self.give_back(&server, GivenBack::Answered { in_work_ms });
    }

    /// A server will not answer: the request is tried once more, or there is no answer.
    fn fail(
        &mut self,
        forwarded: &mut Forwarded,
        upstream: Upstream,
        trouble: Trouble,
        address: Address,
        outbox: &Outbox,
    ) {
        let Stage::AtWork(server, _, since_ms) = std::mem::replace(&mut forwarded.stage, Stage::Apart) else {
            return;
        };
        let link = self.links.forget(upstream);
        outbox.upstreams().close(upstream);
        let (has_begun, may_have_sent, was_used) = link.map_or((true, true, false), |link| {
            (link.reader.has_begun(), link.may_have_sent(), link.is_used)
        });
        trouble.count(server.get(), has_begun);
        if !trouble.is_end() || !was_used {
            self.tell_operator(&server, trouble);
        }
        // A server may close a link at rest whenever it likes.
        let is_failure = !(was_used && !has_begun && trouble.is_end());
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
        if may_repeat && forwarded.application.may_retry() {
            return self.retry(forwarded, &server, address);
        }
        forwarded.failure = Some(trouble.failure());
    }

    /// Tries a request once more: on another server if there is one. Not where it would have to wait.
    fn retry(&mut self, forwarded: &mut Forwarded, failed: &ServerName, address: Address) {
        forwarded.has_retried = true;
        forwarded.application.retries.fetch_add(1, Relaxed);
        failed.get().counts.retried.fetch_add(1, Relaxed);
        self.want_place(forwarded, Some(failed.index), address);
        if let Stage::InLine(server) = &forwarded.stage {
            // If it has a place by now, the news of it finds nobody, and gives it back.
            server.get().places.leave(address);
            (forwarded.stage, forwarded.failure) = (Stage::Apart, Some(Failure::Unreachable));
        }
        if matches!(forwarded.failure, Some(Failure::Crowded { .. })) {
            forwarded.failure = Some(Failure::Unreachable);
        }
    }

    /// Asks for a place at a server.
    fn want_place(&mut self, forwarded: &mut Forwarded, but: Option<usize>, address: Address) {
        let now_ms = self.now_ms;
        let application = Arc::clone(&forwarded.application);
        let index = application.choose(self.draw(), but, now_ms);
        let server = ServerName { application, index };
        let mut news = std::mem::take(&mut self.news);
        let answer = server.get().places.ask(address, now_ms, &mut news);
        self.tell(&server, news);
        match answer {
            PlaceAnswer::Taken => forwarded.stage = Stage::Placed(server, now_ms),
            PlaceAnswer::Waits => {
                forwarded.stage = Stage::InLine(server);
                self.shared.look_after_lines();
            }
            PlaceAnswer::Refused { spread_s } => {
                let spread_s = 1 + (self.draw() % u64::from(spread_s)) as u32;
                forwarded.failure = Some(Failure::Crowded { spread_s });
            }
        }
    }

    /// A request with a place goes to its server.
    fn begin_if_placed(
        &mut self,
        forwarded: &mut Forwarded,
        request: &Request<'_>,
        address: Address,
        outbox: &Outbox,
    ) {
        if !matches!(forwarded.stage, Stage::Placed(..)) {
            return;
        }
        let Stage::Placed(server, since_ms) = std::mem::replace(&mut forwarded.stage, Stage::Apart) else {
            return;
        };
        if let Err(refusal) = forwarded.write_head(request, &self.shared.pseudonym) {
            forwarded.failure = Some(Failure::Refused(refusal));
            return self.give_back(&server, GivenBack::Unanswered);
        }
        let config = &self.shared.config;
        let link = self.links.open(&server, address, forwarded.is_idempotent, config, outbox);
        let Some(link) = link else {
            forwarded.failure = Some(Failure::NoLink);
            return self.give_back(&server, GivenBack::Unanswered);
        };
        if let Some(link) = self.links.get_mut(link) {
            match forwarded.asks_upgrade {
                true => link.reader.begin_upgrade(),
                false => link.reader.begin(forwarded.is_head),
            }
        }
        forwarded.stage = Stage::AtWork(server, link, Some(since_ms));
        send_request(forwarded, link, request.content, outbox);
    }

    /// Answers by what the server has answered.
    fn answer(
        &mut self,
        mut forwarded: Box<Forwarded>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let address = answer.address();
        let Some(head) = forwarded.answer.head.take() else {
            self.keep(address, forwarded);
            return answer.later();
        };
        let mut fields = head.fields;
        fields.extend_from_slice(&forwarded.lines);
        let is_whole = forwarded.answer.has_ended && forwarded.answer.trailers.is_empty();
        if !is_whole {
            forwarded.answer.is_open = true;
            forwarded.head = Vec::new();
            forwarded.body.kept = Vec::new();
            let reads = !forwarded.body.has_ended;
            let length_bytes = head.length_bytes.filter(|_| head.has_body);
            forwarded.is_tunnel = head.status == Status::SWITCHING_PROTOCOLS;
            let is_tunnel = forwarded.is_tunnel;
            self.keep(address, forwarded);
            if is_tunnel {
                return answer.upgrade(&fields);
            }
            return answer.open(request, head.status, &fields, length_bytes, reads);
        }
        let body = forwarded.answer.take_kept();
        if head.has_body {
            let length = itoa::Buffer::new().format(body.len()).to_owned();
            fields.extend_from_slice(b"Content-Length: ");
            fields.extend_from_slice(length.as_bytes());
            fields.extend_from_slice(b"\r\n");
        }
        self.leave(*forwarded, address);
        answer.bytes(head.status, &fields, &body)
    }

    /// Answers for an application that has not.
    fn answer_failure(
        &self,
        failure: Failure,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let (problem, further) = match failure {
            Failure::Crowded { spread_s } => (Problem::Crowded, format!("Retry-After: {spread_s}\r\n")),
            Failure::NoLink => (Problem::Crowded, "Retry-After: 1\r\n".to_owned()),
            Failure::Unreachable => (Problem::Unreachable, String::new()),
            Failure::BadAnswer => (Problem::BadAnswer, String::new()),
            Failure::TimedOut => (Problem::NoAnswer, String::new()),
            Failure::ClientGone => return answer.bytes(client_gone(), b"Content-Length: 0\r\n", b""),
            Failure::Refused(refusal) => {
                let body = format!("{}: {}\n", refusal.status, refusal.reason);
                let fields =
                    format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n", body.len());
                return answer.bytes(refusal.status, fields.as_bytes(), body.as_bytes());
            }
        };
        let further = [lines, further.as_bytes()].concat();
        self.shared.problems.answer(problem, &further, request, answer)
    }

    /// An exchange is over for the proxy: what it has is given back.
    fn leave(&mut self, mut forwarded: Forwarded, address: Address) {
        self.shared.hold(forwarded.told_bytes, 0);
        forwarded.application.retries.fetch_sub(u32::from(forwarded.has_retried), Relaxed);
        self.abandon(&mut forwarded, address);
    }

    /// Gives back the place of a request, or leaves the line, and forgets its link.
    fn abandon(&mut self, forwarded: &mut Forwarded, address: Address) {
        match std::mem::replace(&mut forwarded.stage, Stage::Apart) {
            Stage::Apart => {}
            Stage::InLine(server) => _ = server.get().places.leave(address),
            Stage::Placed(server, _) => self.give_back(&server, GivenBack::Unanswered),
            Stage::AtWork(server, link, since_ms) => {
                // The engine closes it with the exchange.
                self.links.forget(link);
                if since_ms.is_some() {
                    self.give_back(&server, GivenBack::Unanswered);
                }
            }
        }
    }

    /// Keeps an exchange, and counts what it holds. Gives that in bytes.
    fn keep(&mut self, address: Address, mut forwarded: Box<Forwarded>) -> usize {
        let held_bytes = forwarded.held_bytes();
        self.shared.hold(std::mem::replace(&mut forwarded.told_bytes, held_bytes), held_bytes);
        self.exchanges.insert(address, forwarded);
        held_bytes
    }

    fn give_back(&mut self, server: &ServerName, how: GivenBack) {
        let mut news = std::mem::take(&mut self.news);
        server.get().places.give_back(how, self.now_ms, &mut news);
        self.tell(server, news);
    }

    fn tell(&mut self, server: &ServerName, mut news: Vec<PlaceNews>) {
        news.drain(..).for_each(|one| self.shared.tell(server, one));
        self.news = news;
    }

    fn note_health(&self, server: &ServerName, is_failure: bool) {
        if server.get().note(is_failure, self.now_ms) {
            let (application, address) = (&server.application.name, &server.get().address);
            (self.shared.notice)(&format!(
                "proxy: {address} of {application} fails: requests go elsewhere for a while, if they can"
            ));
            server.get().places.begin_anew();
        }
    }

    fn tell_operator(&self, server: &ServerName, trouble: Trouble) {
        if server.get().claims_notice(self.now_ms) {
            (self.shared.notice)(&format!("proxy: {}: {trouble}", server.get().address));
        }
    }

    fn application(&mut self, name: &str) -> Option<Arc<Application>> {
        if let Some(application) = self.applications.get(name) {
            return Some(Arc::clone(application));
        }
        let application = self.shared.application(name)?;
        self.applications.insert(name.into(), Arc::clone(&application));
        Some(application)
    }

    fn draw(&mut self) -> u64 {
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Errors of a system that has nothing left to connect with: ports or descriptors.
const NOTHING_TO_CONNECT: [i32; 3] =
    [Errno::ADDRNOTAVAIL.raw_os_error(), Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error()];

/// Why a server has not answered.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Lost(UpstreamLoss),
    Fault(RelayFault),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(formatter),
            Self::Lost(UpstreamLoss::Failed(errno)) => {
                std::io::Error::from_raw_os_error(*errno).fmt(formatter)
            }
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Connect)) => {
                formatter.write_str("no connection in time (proxy_connect_timeout)")
            }
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Send)) => {
                formatter.write_str("takes nothing of a request (send_timeout)")
            }
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Receive)) => {
                formatter.write_str("no answer in time (proxy_answer_timeout)")
            }
            Self::Lost(UpstreamLoss::Overrun) => formatter.write_str("takes its request too slowly"),
            Self::Lost(UpstreamLoss::NoMemory) => {
                formatter.write_str("no memory is left for its answer (memory_budget)")
            }
            Self::Lost(UpstreamLoss::Drained) => formatter.write_str("this server ends"),
        }
    }
}

impl Trouble {
    /// Whether the server has only closed.
    fn is_end(self) -> bool {
        match self {
            Self::Fault(fault) => matches!(fault, RelayFault::NothingCame),
            Self::Lost(loss) => matches!(loss, UpstreamLoss::Failed(_)),
        }
    }

    /// Whether the server may still be at work on it.
    fn is_slow(self) -> bool {
        matches!(self, Self::Lost(UpstreamLoss::TimedOut(_)))
    }

    fn failure(self) -> Failure {
        match self {
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Connect)) => Failure::Unreachable,
            Self::Lost(UpstreamLoss::TimedOut(_)) => Failure::TimedOut,
            Self::Lost(UpstreamLoss::NoMemory) => Failure::NoLink,
            Self::Lost(UpstreamLoss::Failed(errno)) if NOTHING_TO_CONNECT.contains(&errno) => Failure::NoLink,
            Self::Lost(_) => Failure::Unreachable,
            Self::Fault(_) if self.is_end() => Failure::Unreachable,
            Self::Fault(_) => Failure::BadAnswer,
        }
    }

    fn count(self, server: &super::application::AppServer, has_begun: bool) {
        let counts = &server.counts;
        let count = match (self, self.failure()) {
            (_, Failure::TimedOut) => &counts.timed_out,
            (Self::Fault(RelayFault::EndedInHead | RelayFault::EndedInBody), _) => &counts.short,
            (_, Failure::BadAnswer) => &counts.broken,
            (Self::Lost(_), _) if has_begun => &counts.short,
            _ => &counts.unreachable,
        };
        count.fetch_add(1, Relaxed);
    }
}

/// What nginx writes into its log for a client that has left before its answer.
fn client_gone() -> Status {
    Status::from_code(499).unwrap_or(Status::REQUEST_TIMEOUT)
}

/// Sends a request as far as it is there.
fn send_request(forwarded: &mut Forwarded, link: Upstream, content: BodyIn, outbox: &Outbox) {
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
