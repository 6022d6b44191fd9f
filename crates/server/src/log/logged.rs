//! A handler with a log around it.
//!
//! It must cost a request nothing but one look while there is no log, and never make one wait.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_engine::{
    Address, Answer, Answered, Body, ClientIdentity, Departure, Finished, Handler, Open, Outbox, Refused,
    Upstream, UpstreamEvent,
};
use staunch_protocol::{Request, Version};

use super::access::AccessLog;
use super::feeder::Feeder;
use super::fields::{self, AUTHORIZATION, HOST, IDENTITY};
use super::record::{Record, ShownCertificate};

/// A handler whose requests are logged.
pub struct Logged<H> {
    inner: H,
    log: Arc<AccessLog>,
    worker: u16,
    /// Made with the first line.
    feeder: Option<Feeder>,
}

/// What has to be asked of a request's pen before it is used up.
struct Before<'a> {
    unix_ms: u64,
    waited_ms: u32,
    client: Option<IpAddr>,
    identity: Option<&'a ClientIdentity>,
    guarded: &'a Cell<bool>,
}

impl<H> Logged<H> {
    /// The handler of one worker.
    pub fn new(inner: H, log: Arc<AccessLog>, worker: u16) -> Self {
        Self { inner, log, worker, feeder: None }
    }

    fn feed(&mut self, record: &Record<'_>) {
        self.feeder.get_or_insert_with(|| self.log.feeder(self.worker)).feed(record);
    }

    #[inline(never)]
    fn note(&mut self, wanted: u32, request: &Request<'_>, before: &Before<'_>, answered: &Answered) {
        if !answered.is_complete() {
            return;
        }
        // A name that nobody asked for proves nothing, and could be taken for somebody who was let in.
        let wanted = if before.guarded.get() { wanted } else { wanted & !AUTHORIZATION };
        let (status, body_bytes) = (answered.status().code(), answered.body_bytes());
        // Filled where it stands: a request that is logged pays for each copy of it.
        let mut record = of_request(wanted, request);
        record.unix_ms = before.unix_ms;
        record.waited_ms = before.waited_ms;
        record.client = before.client;
        record.status = status;
        record.body_bytes = body_bytes;
        if let Some(identity) = before.identity {
            record.certificate = Some(shown(identity));
        }
        self.feed(&record);
    }

    /// An answer that went on is accounted for when it has ended. Of one that has given back its request
    /// before there was a log, the record says nothing of what was asked.
    #[cold]
    fn note_finished(&mut self, wanted: u32, finished: &Finished<'_>) {
        let wanted_of_head = wanted & !AUTHORIZATION;
        let pieces =
            finished.request.map_or(Record::default(), |request| of_request(wanted_of_head, request));
        self.feed(&Record {
            unix_ms: finished.unix_ms,
            client: finished.peer,
            status: finished.status.code(),
            body_bytes: finished.body_bytes,
            certificate: wanted_of(finished.identity, wanted),
            ..pieces
        });
    }

    #[cold]
    fn note_refused(&mut self, wanted: u32, refused: &Refused<'_>) {
        let wanted = wanted & !AUTHORIZATION;
        let pieces = refused.request.map_or(Record::default(), |request| of_request(wanted, request));
        self.feed(&Record {
            unix_ms: refused.unix_ms,
            client: refused.peer,
            status: refused.status.code(),
            body_bytes: refused.body_bytes,
            certificate: refused.request.and(wanted_of(refused.identity, wanted)),
            ..pieces
        });
    }
}

impl<'a> Before<'a> {
    #[inline]
    fn of(wanted: u32, request: &Request<'_>, answer: &Answer<'a>) -> Self {
        Self {
            unix_ms: answer.unix_ms(),
            waited_ms: answer.waited_ms(),
            client: answer.client(request),
            identity: if wanted & IDENTITY != 0 { answer.identity() } else { None },
            guarded: answer.guarded(),
        }
    }
}

#[inline(always)]
fn of_request<'a>(wanted: u32, request: &Request<'a>) -> Record<'a> {
    let found = fields::find(request.head, wanted);
    Record {
        request_line: fields::request_line(request),
        is_http2: request.version == Version::Http2,
        host: if wanted & HOST != 0 { request.host } else { &[] },
        referer: found.referer,
        user_agent: found.user_agent,
        forwarded_for: found.forwarded_for,
        credentials: found.authorization,
        ..Record::default()
    }
}

fn wanted_of(identity: Option<&ClientIdentity>, wanted: u32) -> Option<ShownCertificate<'_>> {
    identity.filter(|_| wanted & IDENTITY != 0).map(shown)
}

#[cold]
fn shown(identity: &ClientIdentity) -> ShownCertificate<'_> {
    ShownCertificate { subject: identity.subject.as_bytes(), fingerprint: &identity.fingerprint }
}

impl<H: Handler> Handler for Logged<H> {
    type Mail = H::Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let wanted = self.log.wanted();
        if wanted == 0 {
            return self.inner.handle(request, answer);
        }
        let before = Before::of(wanted, request, &answer);
        let answered = self.inner.handle(request, answer);
        self.note(wanted, request, &before, &answered);
        answered
    }

    fn resume(&mut self, mail: H::Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let wanted = self.log.wanted();
        let before = Before::of(wanted, request, &answer);
        let answered = self.inner.resume(mail, request, answer);
        if wanted != 0 {
            self.note(wanted, request, &before, &answered);
        }
        answered
    }

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let wanted = self.log.wanted();
        let before = Before::of(wanted, request, &answer);
        let answered = self.inner.woken(request, answer);
        if wanted != 0 {
            self.note(wanted, request, &before, &answered);
        }
        answered
    }

    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let wanted = self.log.wanted();
        let before = Before::of(wanted, request, &answer);
        let answered = self.inner.collected(body, request, answer);
        if wanted != 0 {
            self.note(wanted, request, &before, &answered);
        }
        answered
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        self.inner.body(body, open);
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        self.inner.ready(open);
        if self.log.wanted() != 0 {
            open.keep_request();
        }
    }

    fn upstreams_max(&self) -> u32 {
        self.inner.upstreams_max()
    }

    fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        self.inner.upstream(upstream, event, open, outbox);
    }

    fn mail(&mut self, mail: Self::Mail, outbox: &Outbox) {
        self.inner.mail(mail, outbox);
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        let wanted = self.log.wanted();
        if wanted != 0 {
            self.note_finished(wanted, finished);
        }
        self.inner.finished(finished);
    }

    fn left(&mut self, address: Address, departure: Departure) {
        self.inner.left(address, departure);
    }

    fn refused(&mut self, refused: &Refused<'_>) {
        let wanted = self.log.wanted();
        if wanted != 0 {
            self.note_refused(wanted, refused);
        }
        self.inner.refused(refused);
    }
}
