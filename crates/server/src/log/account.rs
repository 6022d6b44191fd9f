//! The account that a worker keeps for the access log, of each answer.
//!
//! The account must cost a request nothing but one look while there is no log, and never make one wait. Order
//! of calls for each request: [`LogAccount::wanted`]; if anything is, [`Before::of`], the answer, and
//! [`LogAccount::note`]. For one that was passed on, what is told of that goes to [`Before::tell_passed`]
//! between the answer and the note, if [`wants_passed`].

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_engine::{Answer, Answered, ClientIdentity, Finished, Refused};
use staunch_protocol::{Request, Version};

use super::access::AccessLog;
use super::feeder::Feeder;
use super::fields::{self, AUTHORIZATION, HOST, IDENTITY, PASSED};
use super::record::{Record, ShownCertificate};

/// The account of one worker.
pub(crate) struct LogAccount {
    log: Arc<AccessLog>,
    worker: u16,
    /// Made with the first line.
    feeder: Option<Feeder>,
}

/// What has to be asked of a request's pen before it is used up.
pub(crate) struct Before<'a> {
    unix_ms: u64,
    waited_ms: u32,
    client: Option<IpAddr>,
    identity: Option<&'a ClientIdentity>,
    guarded: &'a Cell<bool>,
    /// The way of a request that was passed on; empty if it was not.
    passed: Vec<u8>,
}

/// Whether a log that wants this wants to know the way of requests that are passed on.
#[inline]
pub(crate) fn wants_passed(wanted: u32) -> bool {
    wanted & PASSED != 0
}

impl LogAccount {
    /// The account of one worker.
    pub(crate) fn new(log: Arc<AccessLog>, worker: u16) -> Self {
        Self { log, worker, feeder: None }
    }

    /// The fields that the log wants of each request, as bits; 0: there is no log.
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        self.log.wanted()
    }

    fn feed(&mut self, record: &Record<'_>) {
        self.feeder.get_or_insert_with(|| self.log.feeder(self.worker)).feed(record);
    }

    /// Notes what a request was answered, if its answer is complete.
    #[inline(never)]
    pub(crate) fn note(
        &mut self,
        wanted: u32,
        request: &Request<'_>,
        before: &Before<'_>,
        answered: &Answered,
    ) {
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
        record.passed = &before.passed;
        if let Some(identity) = before.identity {
            record.certificate = Some(shown(identity));
        }
        self.feed(&record);
    }

    /// An answer that went on is accounted for when it has ended. Of one that has given back its request
    /// before there was a log, the record says nothing of what was asked.
    #[cold]
    pub(crate) fn note_finished(&mut self, finished: &Finished<'_>, passed: &[u8]) {
        let wanted = self.wanted();
        if wanted == 0 {
            return;
        }
        let wanted_of_head = wanted & !AUTHORIZATION;
        let pieces =
            finished.request.map_or(Record::default(), |request| of_request(wanted_of_head, request));
        self.feed(&Record {
            unix_ms: finished.unix_ms,
            client: finished.peer,
            status: finished.status.code(),
            body_bytes: finished.body_bytes,
            certificate: wanted_of(finished.identity, wanted),
            passed,
            ..pieces
        });
    }

    /// An answer that no handler gave is accounted for too.
    #[cold]
    pub(crate) fn note_refused(&mut self, refused: &Refused<'_>, passed: &[u8]) {
        let wanted = self.wanted();
        if wanted == 0 {
            return;
        }
        let wanted = wanted & !AUTHORIZATION;
        let pieces = refused.request.map_or(Record::default(), |request| of_request(wanted, request));
        self.feed(&Record {
            unix_ms: refused.unix_ms,
            client: refused.peer,
            status: refused.status.code(),
            body_bytes: refused.body_bytes,
            certificate: refused.request.and(wanted_of(refused.identity, wanted)),
            passed,
            ..pieces
        });
    }
}

impl<'a> Before<'a> {
    /// Asks a pen for what the log wants.
    #[inline]
    pub(crate) fn of(wanted: u32, request: &Request<'_>, answer: &Answer<'a>) -> Self {
        Self {
            unix_ms: answer.unix_ms(),
            waited_ms: answer.waited_ms(),
            client: answer.client(request),
            identity: if wanted & IDENTITY != 0 { answer.identity() } else { None },
            guarded: answer.guarded(),
            passed: Vec::new(),
        }
    }

    /// The request was passed on, and this is told of it.
    pub(crate) fn tell_passed(&mut self, passed: Vec<u8>) {
        self.passed = passed;
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
