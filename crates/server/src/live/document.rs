//! Values of topics as polls get them: prepared once for each version, sent to everybody from there.
//!
//! It owns the prepared answers of one worker and their bound: one document a topic, however its name is
//! written. It must never compress: the writer's thread does, when a value was asked for twice.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use staunch_live::{TopicName, Update, Value, Version};

use super::mail::CodedValue;
use super::queue::CodingWish;
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

/// A topic's value in every coding that exists of it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    cache_control: String,
    version: Version,
    value: Value,
    plain: Prepared,
    coded: Vec<(Encoding, Prepared)>,
    wished: Vec<Encoding>,
    is_asked_again: bool,
}

impl Document {
    /// Prepares the value of an update.
    pub(crate) fn new(version: Version, update: &Update, topic: TopicName, cache_control: &str) -> Self {
        let value = update.value.clone();
        let plain = prepare(version, &value, None, value.bytes(), cache_control);
        Self {
            topic,
            number: version.number,
            cache_control: cache_control.to_owned(),
            version,
            value,
            plain,
            coded: Vec::new(),
            wished: Vec::new(),
            is_asked_again: false,
        }
    }

    /// The answer in this coding, if there is one, else as it is. A coding that is worth making is wished for
    /// by `wish`, which says whether it will be made.
    pub(crate) fn find(
        &mut self,
        preferred: Option<Encoding>,
        wish: impl FnOnce(CodingWish) -> bool,
    ) -> &Prepared {
        let Some(encoding) = preferred else { return &self.plain };
        if let Some(place) = self.coded.iter().position(|(own, _)| *own == encoding) {
            return &self.coded[place].1;
        }
        let is_worthwhile = self.value.bytes().len() >= DOCUMENT_CODED_BYTES_MIN
            && std::mem::replace(&mut self.is_asked_again, true)
            && !self.wished.contains(&encoding);
        let wanted = CodingWish { topic: self.topic.clone(), number: self.number, encoding };
        if is_worthwhile && wish(wanted) {
            self.wished.push(encoding);
        }
        &self.plain
    }

    /// Whether an entity tag of a condition is one of this version, in whatever coding.
    pub(crate) fn is_version(&self, version: Version) -> bool {
        self.version == version
    }

    fn add(&mut self, encoding: Encoding, body: &[u8]) {
        let prepared = prepare(self.version, &self.value, Some(encoding), body, &self.cache_control);
        self.coded.push((encoding, prepared));
    }

    fn held_bytes(&self) -> usize {
        let coded = self.coded.iter().map(|(_, prepared)| prepared.block.len()).sum::<usize>();
        self.plain.block.len() + coded + size_of::<Self>()
    }
}

fn prepare(
    version: Version,
    value: &Value,
    encoding: Option<Encoding>,
    body: &[u8],
    cache_control: &str,
) -> Prepared {
    let content_type = match value {
        Value::Json(_) => "application/json",
        Value::Text(_) | Value::Gone => "text/plain; charset=utf-8",
        Value::Binary(_) => "application/octet-stream",
    };
    let tag = match encoding {
        Some(encoding) => format!("\"{version}-{}\"", encoding.name()),
        None => format!("\"{version}\""),
    };
    let mut fields = format!(
        "Content-Type: {content_type}\r\nContent-Length: {}\r\nETag: {tag}\r\n\
         Cache-Control: {cache_control}\r\nVary: Accept-Encoding\r\nX-Content-Type-Options: nosniff\r\n",
        body.len()
    );
    if let Some(encoding) = encoding {
        fields.push_str(&format!("Content-Encoding: {}\r\n", encoding.name()));
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

    /// A coding was made that was wished for.
    pub(crate) fn take(&mut self, coded: &CodedValue) {
        let (Some(body), Some(document)) = (&coded.body, self.by_topic.get_mut(&coded.topic)) else { return };
        let is_there = document.coded.iter().any(|(own, _)| *own == coded.encoding);
        if document.number == coded.number && !is_there {
            let before_bytes = document.held_bytes();
            document.add(coded.encoding, body);
            self.bytes += document.held_bytes() - before_bytes;
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
        Document::new(version, update, name, "no-cache")
    }

    #[test]
    fn what_is_asked_for_twice_is_coded_once() {
        let (mut documents, mut long) = (Documents::default(), document("a", DOCUMENT_CODED_BYTES_MIN));
        let mut wishes = Vec::new();
        let mut ask = |long: &mut Document, is_taken| {
            let tag = &long.find(Some(Encoding::Gzip), |wish| {
                wishes.push(wish);
                is_taken
            });
            (tag.tag.clone(), wishes.len())
        };
        let plain = "\"e-1\"".to_owned();
        assert_eq!(ask(&mut long, true), (plain.clone(), 0), "asked once");
        assert_eq!(ask(&mut long, false), (plain.clone(), 1), "there was no room for the wish");
        assert_eq!(ask(&mut long, true), (plain.clone(), 2));
        assert_eq!(ask(&mut long, true), (plain, 2), "wished for already");
        documents.keep(long);
        let CodingWish { topic, number, encoding } = wishes.remove(1);
        assert_eq!(documents.topic(b"a").as_ref(), Some(&topic));
        let body: Arc<[u8]> = b"coded"[..].into();
        documents.take(&CodedValue { topic: topic.clone(), number, encoding, body: Some(body) });
        let document = documents.find(&topic).unwrap();
        assert!(document.is_version(Version { epoch: Epoch(0xe), number: 1 }));
        let coded = document.find(Some(Encoding::Gzip), |_| panic!("it is there"));
        assert_eq!(coded.tag, "\"e-1-gzip\"");
        assert!(coded.block.ends_with(b"Content-Encoding: gzip\r\n\r\ncoded"));
        assert!(coded.block[coded.fields_bytes..].starts_with(b"\r\n"));
        documents.forget(&topic);
        assert_eq!(documents.bytes, 0);
    }

    #[test]
    fn short_values_are_never_coded() {
        let mut short = document("a", 10);
        (0..3).for_each(|_| drop(short.find(Some(Encoding::Zstd), |_| panic!("it is short")).tag.clone()));
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
