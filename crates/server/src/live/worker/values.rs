//! Polls: the value of a topic, as often as somebody asks.
//!
//! A worker must never tell a difference of a private value, nor compress anything: the writer does.

use std::sync::Arc;

use staunch_dictionary::{offer, pattern_of_path};
use staunch_engine::{Answer, Answered};
use staunch_live::{TopicName, Update, Value, Version};
use staunch_protocol::{Request, Status};

use super::super::counts::count;
use super::super::document::Document;
use super::super::mail::{CodedValue, LiveMail};
use super::super::permit::Rights;
use super::super::publish::version_of_tag;
use super::super::reply::{allowed_origin, decode_name, refuse};
use super::super::route::Endpoint;
use super::super::turns::LineClient;
use super::super::value_coding::ValueCoding;
use super::LiveWorker;
use crate::content::negotiate::{Encoding, Preference};
use crate::dictionary::{DictionaryCounts, held_dictionary};
use crate::limits::AWAITED_DIFFERENCE_BYTES_MAX;

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
        let present = |update: &&Arc<Update>| update.value != Value::Gone;
        let Some(update) = self.readable(&topic, rights).filter(present).cloned() else {
            self.documents.forget(&topic);
            return rights.refuse_absent(lines, answer);
        };
        self.answer_value(&update, &topic, lines, request, answer, true)
    }

    /// Answers a poll for which a difference was made, or is not worth it: it waits no more. Meanwhile its
    /// topic may be gone or private; then it is asked again who asks.
    pub(super) fn answer_differed(
        &mut self,
        path: &[u8],
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let topic = TopicName::from_bytes(&decode_name(path)).ok();
        let update = topic.as_ref().and_then(|topic| self.view.last(topic));
        let told = update.filter(|update| !update.private && update.value != Value::Gone).cloned();
        match (topic, told) {
            (Some(topic), Some(update)) => self.answer_value(&update, &topic, lines, request, answer, false),
            _ => self.handle(Endpoint::Value(path), request, answer),
        }
    }

    /// A coding of a value was made, or is not worth it: polls that wait for it are answered.
    pub(super) fn take_coded(&mut self, coded: &CodedValue) {
        self.documents.take(coded);
        for address in self.differing.take(&coded.topic, coded.coding) {
            self.tell(address, LiveMail::Differed);
        }
    }

    /// The last update of a topic, if that may be read.
    pub(super) fn readable(&self, topic: &TopicName, rights: &Rights) -> Option<&Arc<Update>> {
        self.view.last(topic).filter(|update| rights.may_read_update(update))
    }

    /// Answers with a value that may be read. Where `waits`, a poll that has an earlier value waits for the
    /// difference to that while it is made.
    fn answer_value(
        &mut self,
        update: &Update,
        topic: &TopicName,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
        waits: bool,
    ) -> Answered {
        let version = Version { number: update.number, ..self.view.version() };
        if update.private {
            // The answer is for this reader alone: no cache keeps it, and no other reader is answered from
            // it.
            let mut document = Document::new(version, update, topic.clone(), "private, no-store", None);
            let prepared = document.find(None, None, |_| false).prepared;
            return answer.block(Status::OK, &prepared.block, prepared.fields_bytes);
        }
        let is_known = is_known(version, request);
        let held = if is_known { Held::Nothing } else { self.held(update, topic, lines, request, &answer) };
        let preference = Preference::read(request.values(b"accept-encoding"), &ORDER);
        let place = preference.choose(|_| true);
        let preferred = ORDER.into_iter().find(|encoding| encoding.place() == place);
        let client = LineClient::of(answer.client(request), answer.address());
        self.prepare(version, update, topic);
        let Some(document) = self.documents.find(topic) else {
            return refuse(Status::INTERNAL_SERVER_ERROR, "the value was lost", lines, answer);
        };
        let chosen = document.find(preferred, held.version(), |wish| self.shared.queue.wish(client, wish));
        if let Held::Version(from) = held
            && chosen.is_coming
            && waits
            && update.value.bytes().len() <= AWAITED_DIFFERENCE_BYTES_MAX
        {
            let coding = ValueCoding::Difference(from);
            let bytes = self.differing.add(topic.clone(), coding, answer.address());
            return answer.later_holding(bytes);
        }
        let counts = &self.shared.worker_counts[usize::from(self.index)].dictionary;
        held.count(counts);
        let prepared = chosen.prepared;
        if is_known {
            let own = format!("ETag: {}\r\n", prepared.tag);
            let fields = [lines, own.as_bytes(), chosen.common.as_bytes()].concat();
            return answer.bytes(Status::NOT_MODIFIED, &fields, b"");
        }
        chosen.saved_bytes.into_iter().for_each(|saved_bytes| counts.answer(saved_bytes));
        if lines.is_empty() {
            return answer.block(Status::OK, &prepared.block, prepared.fields_bytes);
        }
        let (fields, rest) = prepared.block.split_at(prepared.fields_bytes);
        answer.bytes(Status::OK, &[lines, fields].concat(), &rest[2..])
    }

    /// Has the document of a topic hold this update.
    fn prepare(&mut self, version: Version, update: &Update, topic: &TopicName) {
        if self.documents.find(topic).is_some_and(|own| own.number == update.number) {
            return;
        }
        let cache_control = self.shared.cache_control(topic);
        // A value without a hash is too short or too long for differences.
        let is_offered = update.hash.is_some() && self.shared.has_differences(topic);
        let offer = is_offered.then(|| offer_of(topic)).flatten();
        let document = Document::new(version, update, topic.clone(), cache_control, offer.as_deref());
        self.documents.keep(document);
    }

    /// The value that a client says it has, if the difference to that may be its answer.
    fn held(
        &self,
        update: &Update,
        topic: &TopicName,
        lines: &[u8],
        request: &Request<'_>,
        answer: &Answer<'_>,
    ) -> Held {
        if update.hash.is_none() {
            return Held::Nothing;
        }
        let hash = held_dictionary(request, answer.is_secured(), allowed_origin(lines));
        match hash.filter(|_| self.shared.has_differences(topic)) {
            Some(hash) => self.view.number_of_hash(topic, &hash).map_or(Held::Unknown, Held::Version),
            None => Held::Nothing,
        }
    }
}

/// The value of a topic that a client has.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Nothing that a difference could lead from.
    Nothing,
    /// Something that is not, or no more, known here.
    Unknown,
    /// The value of the update with this number.
    Version(u64),
}

impl Held {
    fn version(self) -> Option<u64> {
        match self {
            Self::Version(number) => Some(number),
            Self::Nothing | Self::Unknown => None,
        }
    }

    fn count(self, counts: &DictionaryCounts) {
        match self {
            Self::Nothing => {}
            Self::Unknown => counts.ask(false),
            Self::Version(_) => counts.ask(true),
        }
    }
}

/// The value of Use-As-Dictionary for a topic: its value is the dictionary of its later values alone.
fn offer_of(topic: &TopicName) -> Option<String> {
    let path = ["/live/", topic.as_str()].concat();
    offer(&pattern_of_path(path.as_bytes()), None).ok()
}

/// Whether the peer has the version already (RFC 9110, section 13.1.2).
fn is_known(version: Version, request: &Request<'_>) -> bool {
    if !request.has_any(Request::IF_NONE_MATCH) {
        return false;
    }
    let texts = request.values(b"if-none-match").filter_map(|value| std::str::from_utf8(value).ok());
    texts
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || version_of_tag(tag) == Some(version))
}
