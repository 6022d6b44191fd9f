//! Requests that are answered once: polls and publications.
//!
//! It must never number an update: what is published is handed to the writer, and the request waits.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_live::mercure::is_reserved;
use staunch_live::{TopicName, Update, Value};
use staunch_protocol::{Method, Request, Status};
use xxhash_rust::xxh3::Xxh3;

use super::super::counts::count;
use super::super::document::Document;
use super::super::feed::Feed;
use super::super::mail::{BodyOutcome, LiveMail, NotTaken, ReplyForm};
use super::super::permit::{Rights, refuse_all, refuse_invalid};
use super::super::publish::{
    BodyKind, MERCURE_TYPE, ReadBody, TYPES, body_bytes_max, body_line, read_body, read_change,
    version_of_tag,
};
use super::super::queue::{Publisher, Publishing};
use super::super::reply::{decode_name, not_taken, refuse, sharing, text};
use super::super::route::Endpoint;
use super::super::seat::Seat;
use super::super::tokens::Verdict;
use super::super::turns::LineClient;
use super::{Asker, LiveWorker};
use crate::content::negotiate::{Encoding, Preference};

/// Codings of polled values, the better one first.
const ORDER: [Encoding; 2] = [Encoding::Zstd, Encoding::Gzip];

impl LiveWorker {
    /// Answers a request for `/live/NAME`.
    pub(super) fn poll(
        &mut self,
        rights: &Rights,
        path: &[u8],
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        // A publisher that was answered finds its update, also at a worker that has not read its mail yet.
        if self.is_behind() {
            self.behind.push(answer.address());
            return answer.later();
        }
        count(&self.counts().polls);
        let name = decode_name(path);
        let topic = match self.documents.topic(&name) {
            Some(topic) => topic,
            None => match TopicName::from_bytes(&name) {
                Ok(topic) => topic,
                Err(fault) => return refuse(Status::BAD_REQUEST, &fault.to_string(), lines, answer),
            },
        };
        // Before anything is looked up, so that it tells neither whether there is something nor when.
        if self.shared.is_private(&topic) && !rights.may_read(&topic) {
            return rights.refuse_reading(&topic, lines, answer);
        }
        if let Some(answered) = self.waits_for(rights, &topic, request, &answer) {
            return answered.answer(lines, answer);
        }
        self.answer_value(rights, topic, lines, request, answer)
    }

    /// The last update of a topic, if that may be read.
    pub(super) fn readable(&self, topic: &TopicName, rights: &Rights) -> Option<&Arc<Update>> {
        self.view.last(topic).filter(|update| rights.may_read_update(update))
    }

    fn answer_value(
        &mut self,
        rights: &Rights,
        topic: TopicName,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let present = |update: &&Arc<Update>| update.value != Value::Gone;
        let Some(update) = self.readable(&topic, rights).filter(present).cloned() else {
            self.documents.forget(&topic);
            return rights.refuse_absent(lines, answer);
        };
        let version = staunch_live::Version { number: update.number, ..self.view.version() };
        if update.private {
            // The answer is for this reader alone: no cache keeps it, and no other reader is answered from
            // it.
            let mut document = Document::new(version, &update, topic, "private, no-store");
            let prepared = document.find(None, |_| false);
            return answer.block(Status::OK, &prepared.block, prepared.fields_bytes);
        }
        if self.documents.find(&topic).is_none_or(|own| own.number != update.number) {
            let cache_control = self.shared.cache_control(&topic);
            self.documents.keep(Document::new(version, &update, topic.clone(), cache_control));
        }
        let preference = Preference::read(request.values(b"accept-encoding"), &ORDER);
        let place = preference.choose(|_| true);
        let preferred = ORDER.into_iter().find(|encoding| encoding.place() == place);
        let Some(document) = self.documents.find(&topic) else {
            return refuse(Status::INTERNAL_SERVER_ERROR, "the value was lost", lines, answer);
        };
        let is_known = is_known(document, request);
        let client = LineClient::of(answer.client(request), answer.address());
        let prepared = document.find(preferred, |wish| self.shared.queue.wish(client, wish));
        if is_known {
            let cache_control = self.shared.cache_control(&topic);
            let own = format!(
                "ETag: {}\r\nCache-Control: {cache_control}\r\nVary: Accept-Encoding\r\n",
                prepared.tag
            );
            return answer.bytes(Status::NOT_MODIFIED, &[lines, own.as_bytes()].concat(), b"");
        }
        if lines.is_empty() {
            return answer.block(Status::OK, &prepared.block, prepared.fields_bytes);
        }
        let (fields, rest) = prepared.block.split_at(prepared.fields_bytes);
        answer.bytes(Status::OK, &[lines, fields].concat(), &rest[2..])
    }

    /// Answers a request that publishes, or has its body read first.
    pub(super) fn publish(
        &mut self,
        rights: &Rights,
        endpoint: Endpoint<'_>,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        if !rights.may_publish_something() {
            return self.refuse_publisher(rights, lines, answer);
        }
        match endpoint {
            Endpoint::Topic(_) => self.change(endpoint, request, answer),
            _ => self.take_publications(rights, endpoint, lines, request, answer),
        }
    }

    /// Answers a request that may publish nothing.
    fn refuse_publisher(&self, rights: &Rights, lines: &[u8], answer: Answer<'_>) -> Answered {
        match self.shared.may_publish() {
            true => rights.refuse_publishing(lines, answer),
            false => refuse_all(lines, answer),
        }
    }

    /// Has the body of a request for `/publish` or for Mercure's hub read.
    fn take_publications(
        &mut self,
        rights: &Rights,
        endpoint: Endpoint<'_>,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let kind = match (endpoint, BodyKind::of(request)) {
            (Endpoint::Mercure, Some(BodyKind::Form)) => BodyKind::Form,
            (Endpoint::Mercure, _) => {
                return refuse(Status::UNSUPPORTED_MEDIA_TYPE, MERCURE_TYPE, lines, answer);
            }
            (_, Some(kind)) => kind,
            (_, None) => return refuse(Status::UNSUPPORTED_MEDIA_TYPE, TYPES, lines, answer),
        };
        let value_bytes_max = self.shared.config.value_bytes_max;
        if kind != BodyKind::Lines {
            return answer.collect(request, body_bytes_max(value_bytes_max));
        }
        if is_quiet(request) {
            return answer.collect(request, staunch_live::limits::BATCH_BYTES_MAX);
        }
        let address = answer.address();
        let client = LineClient::of(answer.client(request), address);
        let feed = Box::new(Feed::new(value_bytes_max, rights.clone(), client));
        let number = self.seats.promise(address);
        self.seats.put(number, Seat::Feed(address.generation, feed));
        let own =
            b"Content-Type: application/x-ndjson\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
        let fields = [lines, own].concat();
        answer.open(request, Status::OK, &fields, None, true)
    }

    /// Answers a request that changes a topic, or has its body read first.
    fn change(&mut self, endpoint: Endpoint<'_>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if request.method == Method::Delete {
            return self.take_body(endpoint, b"", request, answer);
        }
        answer.collect(request, self.shared.config.value_bytes_max)
    }

    /// See [`staunch_engine::Handler::collected`].
    pub(crate) fn collected(&mut self, body: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match Endpoint::of(request.path) {
            Some(endpoint) => self.take_body(endpoint, body, request, answer),
            None => refuse(Status::INTERNAL_SERVER_ERROR, "the endpoint was lost", b"", answer),
        }
    }

    /// Hands what a body publishes to the writer.
    fn take_body(
        &mut self,
        endpoint: Endpoint<'_>,
        body: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let lines = sharing(&self.shared.config.origins, request);
        // Rights were looked at before the body came, and what a token granted is remembered. Meanwhile a
        // token may have ended, or a reload may have given the host to this site.
        let Asker::Known(rights) = self.asker(request, &answer) else {
            return refuse_invalid(&lines, answer);
        };
        if !rights.may_publish_something() {
            return self.refuse_publisher(&rights, &lines, answer);
        }
        let mut read = match (endpoint, BodyKind::of(request)) {
            (Endpoint::Topic(name), _) => match read_change(name, request, body) {
                Ok(publication) => {
                    let mut read = ReadBody::default();
                    read.take(0, Ok(publication));
                    read
                }
                Err(refused) => return not_taken(&refused, &lines, answer),
            },
            (_, Some(kind)) => read_body(kind, body, self.shared.config.value_bytes_max),
            (_, None) => return refuse(Status::UNSUPPORTED_MEDIA_TYPE, TYPES, &lines, answer),
        };
        let is_mercure = endpoint == Endpoint::Mercure;
        if is_mercure {
            if read.lines.iter().any(|(_, publication)| publication.topics.iter().any(is_reserved)) {
                let sentence = "`topic`: below /.well-known/mercure the hub alone speaks";
                return refuse(Status::BAD_REQUEST, sentence, &lines, answer);
            }
            read.lines.iter_mut().for_each(|(_, publication)| publication.begins_log = true);
        }
        rights.restrict(&mut read);
        let key = request.values(b"idempotency-key").next();
        let key = key.map(|key| (String::from_utf8_lossy(key).into_owned(), digest(request, body)));
        let form = if is_mercure { ReplyForm::Mercure } else { ReplyForm::Own };
        let to = Publisher::Request(answer.address(), form);
        let client = LineClient::of(answer.client(request), answer.address());
        let publishing = Publishing { lines: read.lines, fault: read.fault, key, to, client };
        match self.shared.queue.publish(publishing) {
            Ok(()) => answer.later(),
            Err(_) => {
                let lines = [&lines[..], b"Retry-After: 1\r\n"].concat();
                let sentence = "too many updates wait to be published";
                refuse(Status::SERVICE_UNAVAILABLE, sentence, &lines, answer)
            }
        }
    }

    /// See [`staunch_engine::Handler::resume`].
    pub(crate) fn resume(&mut self, mail: LiveMail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let lines = sharing(&self.shared.config.origins, request);
        let mail = match mail {
            LiveMail::Published(outcome, ReplyForm::Own) => {
                return answer_published(&outcome, &lines, answer);
            }
            LiveMail::Published(outcome, ReplyForm::Mercure) => {
                return answer_mercure(&outcome, &lines, answer);
            }
            mail => mail,
        };
        match (mail, Endpoint::of(request.path)) {
            (LiveMail::Checked(_, verdict), Some(endpoint)) => {
                let rights = match verdict {
                    Verdict::Good(granted) => Rights::Granted(granted),
                    Verdict::Bad | Verdict::Over => Rights::Invalid,
                };
                self.handle_with(&rights, endpoint, request, answer)
            }
            (LiveMail::WaitedLong, Some(Endpoint::Value(_))) => self.answer_unchanged(&lines, answer),
            (LiveMail::Again, Some(endpoint)) => self.handle(endpoint, request, answer),
            _ => refuse(Status::INTERNAL_SERVER_ERROR, "an answer was lost", &lines, answer),
        }
    }
}

/// Tells a publisher what became of its body.
fn answer_published(outcome: &BodyOutcome, lines: &[u8], answer: Answer<'_>) -> Answered {
    match &outcome.fault {
        Some((line, refused)) if outcome.has_lines && !refused.names_line => {
            let sentence = format!("line {line}: {}", refused.sentence);
            not_taken(&NotTaken { sentence, ..refused.clone() }, lines, answer)
        }
        Some((_, refused)) => not_taken(refused, lines, answer),
        None => {
            let is_held_back = !outcome.has_lines && outcome.version.is_none();
            let status = if is_held_back { Status::ACCEPTED } else { Status::OK };
            let tag = outcome.version.filter(|_| !outcome.has_lines);
            let tag = tag.map(|version| format!("ETag: \"{version}\"\r\n")).unwrap_or_default();
            let lines = [lines, tag.as_bytes()].concat();
            text(status, "application/json", body_line(outcome).as_bytes(), &lines, answer)
        }
    }
}

/// Tells a publisher of Mercure the id of the update, which is its own if it gave one (draft-dunglas-mercure,
/// section 5).
fn answer_mercure(outcome: &BodyOutcome, lines: &[u8], answer: Answer<'_>) -> Answered {
    if outcome.has_lines || outcome.fault.is_some() {
        return answer_published(outcome, lines, answer);
    }
    let version = || outcome.version.map(|version| format!("#{version}"));
    let id = outcome.id.as_deref().map(str::to_owned).or_else(version).unwrap_or_default();
    text(Status::OK, "text/plain; charset=utf-8", id.as_bytes(), lines, answer)
}

/// A digest of all by which a request is known as one that came before: what it does to which topic.
fn digest(request: &Request<'_>, body: &[u8]) -> u128 {
    let method = [request.method as u8];
    let parts = [&method[..], request.path, request.query.unwrap_or_default(), body];
    let mut digest = Xxh3::new();
    for part in parts {
        digest.update(&(part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.digest128()
}

/// Whether the peer has the document already (RFC 9110, section 13.1.2).
fn is_known(document: &Document, request: &Request<'_>) -> bool {
    if !request.has_any(Request::IF_NONE_MATCH) {
        return false;
    }
    let texts = request.values(b"if-none-match").filter_map(|value| std::str::from_utf8(value).ok());
    texts
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || version_of_tag(tag).is_some_and(|version| document.is_version(version)))
}

/// Whether a batch is answered once, at its end.
fn is_quiet(request: &Request<'_>) -> bool {
    let mut pairs = request.query.unwrap_or_default().split(|byte| *byte == b'&');
    pairs.any(|pair| pair == b"quiet" || pair.starts_with(b"quiet="))
}
