//! Values of topics as polls get them: prepared once for each version, sent to everybody from there.
//!
//! It owns the prepared answers of one worker and their bound: one document a topic, however its name is
//! written. It must never compress: the writer's thread does, when a value was asked for twice.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use staunch_live::{TopicName, Update, Value, Version};

use super::mail::CodedValue;
use super::queue::CodingWish;
use super::value_coding::ValueCoding;
use crate::content::negotiate::Encoding;
use crate::limits::{DOCUMENT_CODED_BYTES_MIN, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX};

/// Fields, blank line and body of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) block: Arc<[u8]>,
    /// Length of the field lines.
    pub(crate) fields_bytes: usize,
    pub(crate) tag: String,
}

impl Prepared {
    fn body_bytes(&self) -> usize {
        self.block.len() - self.fields_bytes
    }

    fn held_bytes(&self) -> usize {
        self.block.len() + self.tag.len() + size_of::<(ValueCoding, Self)>()
    }
}

/// The answer that was chosen.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) prepared: &'a Prepared,
    /// Bytes by which a difference is shorter than the whole value; `None` of a whole value.
    pub(crate) saved_bytes: Option<usize>,
    /// Whether the difference that was asked for is being made.
    pub(crate) is_coming: bool,
    /// Field lines that a 304 has as well.
    pub(crate) common: &'a str,
}

/// A topic's value in every coding that exists of it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    /// Field lines that all its answers have in common, those of a 304 among them.
    common: String,
    version: Version,
    value: Value,
    plain: Prepared,
    coded: Vec<(ValueCoding, Prepared)>,
    /// At most one of each coding, and of each of the topic's last versions; and whether it was made, or was
    /// found not to be worth it.
    wished: Vec<(ValueCoding, bool)>,
    is_asked_again: bool,
}

impl Document {
    /// Prepares the value of an update. Where `offer` is a value of Use-As-Dictionary, later values of the
    /// topic are told as differences to this one.
    pub(crate) fn new(
        version: Version,
        update: &Update,
        topic: TopicName,
        cache_control: &str,
        offer: Option<&str>,
    ) -> Self {
        let common = match offer {
            None => format!("Cache-Control: {cache_control}\r\nVary: Accept-Encoding\r\n"),
            Some(offer) => format!(
                "Cache-Control: {cache_control}\r\nVary: Accept-Encoding, Available-Dictionary\r\n\
                 Use-As-Dictionary: {offer}\r\n"
            ),
        };
        let value = update.value.clone();
        let plain = prepare(version, &value, None, value.bytes(), &common);
        Self {
            topic,
            number: version.number,
            common,
            version,
            value,
            plain,
            coded: Vec::new(),
            wished: Vec::new(),
            is_asked_again: false,
        }
    }

    /// The answer in this coding, if there is one, else as it is; to who has the value of update `from`, as
    /// the difference to that, if it is there and shorter. What is worth making is wished for by `wish`,
    /// which says whether it will be made.
    pub(crate) fn find(
        &mut self,
        preferred: Option<Encoding>,
        from: Option<u64>,
        wish: impl FnOnce(CodingWish) -> bool,
    ) -> Chosen<'_> {
        let find = |coding| self.coded.iter().position(|(own, _)| *own == coding);
        let (whole, difference) = (preferred.map(ValueCoding::Whole), from.map(ValueCoding::Difference));
        let (of_whole, of_difference) = (whole.and_then(find), difference.and_then(find));
        let is_new = |coding: &ValueCoding| !self.wished.iter().any(|(own, _)| own == coding);
        let wished = match difference.filter(|coding| of_difference.is_none() && is_new(coding)) {
            Some(difference) => Some(difference),
            None => whole.filter(|coding| of_difference.is_none() && of_whole.is_none() && is_new(coding)),
        };
        if let Some(coding) = wished.filter(|coding| self.is_worth_making(*coding))
            && wish(CodingWish { topic: self.topic.clone(), number: self.number, coding })
        {
            self.wished.push((coding, false));
        }
        let is_coming = difference.is_some_and(|coding| self.wished.contains(&(coding, false)));
        let common = &*self.common;
        let otherwise = of_whole.map_or(&self.plain, |place| &self.coded[place].1);
        let difference = of_difference.map(|place| &self.coded[place].1);
        match difference.filter(|difference| difference.body_bytes() < otherwise.body_bytes()) {
            Some(prepared) => {
                let saved_bytes = otherwise.body_bytes() - prepared.body_bytes();
                Chosen { prepared, saved_bytes: Some(saved_bytes), is_coming, common }
            }
            None => Chosen { prepared: otherwise, saved_bytes: None, is_coming, common },
        }
    }

    /// Whether the value is long, and was asked for before; a difference always is.
    fn is_worth_making(&mut self, coding: ValueCoding) -> bool {
        match coding {
            ValueCoding::Difference(_) => true,
            ValueCoding::Whole(_) => {
                self.value.bytes().len() >= DOCUMENT_CODED_BYTES_MIN
                    && std::mem::replace(&mut self.is_asked_again, true)
            }
        }
    }

    fn prepare(&self, coding: ValueCoding, body: &[u8]) -> Prepared {
        prepare(self.version, &self.value, Some(coding), body, &self.common)
    }

    fn held_bytes(&self) -> usize {
        let coded = self.coded.iter().map(|(_, prepared)| prepared.held_bytes()).sum::<usize>();
        self.plain.held_bytes() + coded + size_of::<Self>()
    }
}

fn prepare(
    version: Version,
    value: &Value,
    coding: Option<ValueCoding>,
    body: &[u8],
    common: &str,
) -> Prepared {
    let content_type = match value {
        Value::Json(_) => "application/json",
        Value::Text(_) | Value::Gone => "text/plain; charset=utf-8",
        Value::Binary(_) => "application/octet-stream",
    };
    let tag = match coding {
        Some(ValueCoding::Whole(encoding)) => format!("\"{version}-{}\"", encoding.name()),
        Some(ValueCoding::Difference(from)) => format!("\"{version}-dcz{from}\""),
        None => format!("\"{version}\""),
    };
    let mut fields = format!(
        "Content-Type: {content_type}\r\nContent-Length: {}\r\nETag: {tag}\r\n\
         {common}X-Content-Type-Options: nosniff\r\n",
        body.len()
    );
    if let Some(coding) = coding {
        fields.push_str(&format!("Content-Encoding: {}\r\n", coding.name()));
    }
    let block = [fields.as_bytes(), b"\r\n", body].concat().into();
    Prepared { block, fields_bytes: fields.len(), tag }
}

/// The documents of one worker.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    by_topic: HashMap<TopicName, Document>,
    bytes: usize,
}

impl Documents {
    /// The topic of this name, if its document is there: then the name need not be made anew.
    pub(crate) fn topic(&self, name: &[u8]) -> Option<TopicName> {
        let (topic, _) = self.by_topic.get_key_value(std::str::from_utf8(name).ok()?)?;
        Some(topic.clone())
    }

    /// The document of a topic, if it is there.
    pub(crate) fn find(&mut self, topic: &TopicName) -> Option<&mut Document> {
        self.by_topic.get_mut(topic)
    }

    /// Keeps a document. All are let go when there are too many: those that are asked for come back at once.
    pub(crate) fn keep(&mut self, document: Document) {
        self.forget(&document.topic);
        if self.by_topic.len() >= DOCUMENTS_MAX || self.bytes + document.held_bytes() > DOCUMENTS_BYTES_MAX {
            self.by_topic = HashMap::new();
            self.bytes = 0;
        }
        self.bytes += document.held_bytes();
        self.by_topic.insert(document.topic.clone(), document);
    }

    /// Lets the document of a topic go.
    pub(crate) fn forget(&mut self, topic: &TopicName) {
        if let Some(document) = self.by_topic.remove(topic) {
            self.bytes = self.bytes.saturating_sub(document.held_bytes());
        }
    }

    /// A coding was made that was wished for, or found not to be worth it.
    pub(crate) fn take(&mut self, coded: &CodedValue) {
        let document = self.by_topic.get_mut(&coded.topic);
        let Some(document) = document.filter(|document| document.number == coded.number) else { return };
        let wished = document.wished.iter_mut().find(|(own, _)| *own == coded.coding);
        wished.into_iter().for_each(|(_, is_made)| *is_made = true);
        let is_there = document.coded.iter().any(|(own, _)| *own == coded.coding);
        if let Some(body) = coded.body.as_ref().filter(|_| !is_there) {
            let prepared = document.prepare(coded.coding, body);
            let added_bytes = prepared.held_bytes();
            if self.bytes + added_bytes <= DOCUMENTS_BYTES_MAX {
                document.coded.push((coded.coding, prepared));
                self.bytes += added_bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use staunch_live::{Content, Epoch, Hub, HubSettings, Publication};

    use super::*;

    fn document(name: &str, bytes: usize) -> Document {
        let name = TopicName::new(name).unwrap();
        let mut hub = Hub::new(HubSettings::default(), Epoch(0xe));
        let publication = Publication {
            content: Content::Whole(Value::Text(vec![b'x'; bytes].into())),
            ..Publication::new(name.clone(), Value::Gone)
        };
        hub.publish(publication, 0).unwrap();
        let (version, update) = hub.value(&name).unwrap();
        Document::new(version, update, name, "no-cache", None)
    }

    #[test]
    fn what_is_asked_for_twice_is_coded_once() {
        let (mut documents, mut long) = (Documents::default(), document("a", DOCUMENT_CODED_BYTES_MIN));
        let mut wishes = Vec::new();
        let mut ask = |long: &mut Document, is_taken| {
            let chosen = long.find(Some(Encoding::Gzip), None, |wish| {
                wishes.push(wish);
                is_taken
            });
            (chosen.prepared.tag.clone(), wishes.len())
        };
        let plain = "\"e-1\"".to_owned();
        assert_eq!(ask(&mut long, true), (plain.clone(), 0), "asked once");
        assert_eq!(ask(&mut long, false), (plain.clone(), 1), "there was no room for the wish");
        assert_eq!(ask(&mut long, true), (plain.clone(), 2));
        assert_eq!(ask(&mut long, true), (plain, 2), "wished for already");
        documents.keep(long);
        let CodingWish { topic, number, coding } = wishes.remove(1);
        assert_eq!(documents.topic(b"a").as_ref(), Some(&topic));
        let body: Arc<[u8]> = b"coded"[..].into();
        documents.take(&CodedValue { topic: topic.clone(), number, coding, body: Some(body) });
        let document = documents.find(&topic).unwrap();
        let coded = document.find(Some(Encoding::Gzip), None, |_| panic!("it is there")).prepared;
        assert_eq!(coded.tag, "\"e-1-gzip\"");
        assert!(coded.block.ends_with(b"Content-Encoding: gzip\r\n\r\ncoded"));
        assert!(coded.block[coded.fields_bytes..].starts_with(b"\r\n"));
        documents.forget(&topic);
        assert_eq!(documents.bytes, 0);
    }

    #[test]
    fn short_values_are_never_coded() {
        let mut short = document("a", 10);
        for _ in 0..3 {
            let chosen = short.find(Some(Encoding::Zstd), None, |_| panic!("it is short"));
            assert_eq!(chosen.prepared.tag, "\"e-1\"");
        }
    }

    #[test]
    fn a_difference_is_wished_for_at_once_and_answers_who_has_the_version_alone() {
        let (mut documents, mut document) = (Documents::default(), document("a", 2000));
        let mut wishes = Vec::new();
        let chosen = document.find(None, Some(7), |wish| {
            wishes.push(wish);
            true
        });
        assert_eq!((&*chosen.prepared.tag, chosen.saved_bytes), ("\"e-1\"", None), "not made yet");
        assert!(chosen.is_coming);
        let CodingWish { topic, number, coding } = wishes.remove(0);
        assert_eq!(coding, ValueCoding::Difference(7));
        let chosen = document.find(Some(Encoding::Zstd), Some(7), |_| panic!("wished for, and asked once"));
        assert_eq!(chosen.saved_bytes, None);
        documents.keep(document);
        let body: Option<Arc<[u8]>> = Some(b"difference"[..].into());
        documents.take(&CodedValue { topic: topic.clone(), number, coding, body });
        let document = documents.find(&topic).unwrap();
        let chosen = document.find(Some(Encoding::Zstd), Some(7), |_| panic!("it is there"));
        assert_eq!((&*chosen.prepared.tag, chosen.saved_bytes), ("\"e-1-dcz7\"", Some(1990)));
        assert!(chosen.prepared.block.ends_with(b"Content-Encoding: dcz\r\n\r\ndifference"));
        for from in [None, Some(6)] {
            let chosen = document.find(None, from, |wish| {
                assert_eq!(wish.coding, ValueCoding::Difference(6));
                false
            });
            assert_eq!((&*chosen.prepared.tag, chosen.saved_bytes), ("\"e-1\"", None), "{from:?}");
        }
        documents.forget(&topic);
        assert_eq!(documents.bytes, 0);
    }

    #[test]
    fn a_difference_that_is_not_worth_it_is_not_awaited() {
        let (mut documents, mut document) = (Documents::default(), document("a", 2000));
        assert!(!document.find(None, Some(7), |_| false).is_coming, "there was no room for the wish");
        assert!(document.find(None, Some(7), |_| true).is_coming);
        let (topic, number) = (document.topic.clone(), document.number);
        documents.keep(document);
        let coding = ValueCoding::Difference(7);
        documents.take(&CodedValue { topic: topic.clone(), number, coding, body: None });
        let document = documents.find(&topic).unwrap();
        let chosen = document.find(None, Some(7), |_| panic!("wished for already"));
        assert!(!chosen.is_coming && chosen.saved_bytes.is_none());
    }

    #[test]
    fn a_difference_longer_than_the_compressed_whole_is_not_sent() {
        let (mut documents, document) = (Documents::default(), document("a", 2000));
        let (topic, number) = (document.topic.clone(), document.number);
        documents.keep(document);
        let (short, long) = (ValueCoding::Whole(Encoding::Zstd), ValueCoding::Difference(7));
        for (coding, bytes) in [(short, 10), (long, 11)] {
            let body = Some(vec![0; bytes].into());
            documents.take(&CodedValue { topic: topic.clone(), number, coding, body });
        }
        let document = documents.find(&topic).unwrap();
        let chosen = document.find(Some(Encoding::Zstd), Some(7), |_| panic!("both are there"));
        assert_eq!((&*chosen.prepared.tag, chosen.saved_bytes), ("\"e-1-zstd\"", None));
    }

    #[test]
    fn documents_are_bounded() {
        let mut documents = Documents::default();
        for number in 0..=DOCUMENTS_MAX {
            documents.keep(document(&number.to_string(), 10));
        }
        assert_eq!(documents.by_topic.len(), 1);
        documents.keep(document(&DOCUMENTS_MAX.to_string(), 10));
        documents.forget(&TopicName::new(&DOCUMENTS_MAX.to_string()).unwrap());
        assert_eq!(documents.bytes, 0);
    }
}
