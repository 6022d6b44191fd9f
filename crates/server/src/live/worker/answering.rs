//! Requests that publish.
//!
//! It must never number an update: what is published is handed to the writer, and the request waits.

use staunch_engine::{Answer, Answered};
use staunch_live::mercure::is_reserved;
use staunch_protocol::{Method, Request, Status};
use xxhash_rust::xxh3::Xxh3;

use super::super::feed::Feed;
use super::super::mail::{BodyOutcome, LiveMail, NotTaken, ReplyForm};
use super::super::permit::{Rights, refuse_all, refuse_invalid};
use super::super::publish::{
    BodyKind, MERCURE_TYPE, ReadBody, TYPES, body_bytes_max, body_line, read_body, read_change,
};
use super::super::queue::{Publisher, Publishing};
use super::super::reply::{not_taken, refuse, sharing, text};
use super::super::route::Endpoint;
use super::super::seat::Seat;
use super::super::tokens::Verdict;
use super::super::turns::LineClient;
use super::{Asker, LiveWorker};

impl LiveWorker {
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
            (LiveMail::Differed, Some(Endpoint::Value(name))) => {
                self.answer_differed(name, &lines, request, answer)
            }
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

/// Whether a batch is answered once, at its end.
fn is_quiet(request: &Request<'_>) -> bool {
    let mut pairs = request.query.unwrap_or_default().split(|byte| *byte == b'&');
    pairs.any(|pair| pair == b"quiet" || pair.starts_with(b"quiet="))
}
