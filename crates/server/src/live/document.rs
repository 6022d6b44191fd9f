//! Values of topics as polls get them: prepared once for each version, sent to everybody from there.
//!
//! It owns the prepared answers of one worker and their bound. It must never compress: the writer's thread
//! does, when a value was asked for twice.

use std::collections::hash_map::Entry;
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

    /// The answer in the first of these codings that there is; what is lacking may be wished for.
    pub(crate) fn find(&mut self, preferred: Option<Encoding>) -> (&Prepared, Option<CodingWish>) {
        let Some(encoding) = preferred else { return (&self.plain, None) };
        if let Some(place) = self.coded.iter().position(|(own, _)| *own == encoding) {
            return (&self.coded[place].1, None);
        }
        let is_worthwhile = self.value.bytes().len() >= DOCUMENT_CODED_BYTES_MIN
            && std::mem::replace(&mut self.is_asked_again, true)
            && !self.wished.contains(&encoding);
        let wish = is_worthwhile.then(|| {
            self.wished.push(encoding);
            let (topic, value) = (self.topic.clone(), self.value.clone());
            CodingWish { topic, number: self.number, encoding, value }
        });
        (&self.plain, wish)
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

/// The documents of one worker, by the path as it was sent behind the endpoint's.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    by_path: HashMap<Box<[u8]>, Document>,
    bytes: usize,
}

impl Documents {
    /// The document of a path, if it is there.
    pub(crate) fn find(&mut self, path: &[u8]) -> Option<&mut Document> {
        self.by_path.get_mut(path)
    }

    /// Keeps a document. All are let go when there are too many: those that are asked for come back at once.
    pub(crate) fn keep(&mut self, path: &[u8], document: Document) -> &mut Document {
        if self.by_path.len() >= DOCUMENTS_MAX || self.bytes + document.held_bytes() > DOCUMENTS_BYTES_MAX {
            self.by_path = HashMap::new();
            self.bytes = 0;
        }
        self.bytes += document.held_bytes();
        match self.by_path.entry(path.into()) {
            Entry::Occupied(entry) => {
                let place = entry.into_mut();
                self.bytes = self.bytes.saturating_sub(place.held_bytes());
                *place = document;
                place
            }
            Entry::Vacant(entry) => entry.insert(document),
        }
    }

    /// Lets the document of a path go.
    pub(crate) fn forget(&mut self, path: &[u8]) {
        if let Some(document) = self.by_path.remove(path) {
            self.bytes = self.bytes.saturating_sub(document.held_bytes());
        }
    }

    /// A coding was made that was wished for.
    pub(crate) fn take(&mut self, coded: &CodedValue) {
        let Some(body) = &coded.body else { return };
        let is_meant = |document: &&mut Document| {
            document.number == coded.number
                && document.topic == coded.topic
                && !document.coded.iter().any(|(own, _)| *own == coded.encoding)
        };
        for document in self.by_path.values_mut().filter(is_meant) {
            document.add(coded.encoding, body);
            self.bytes += body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use staunch_live::{Content, Epoch, Hub, HubSettings, Publication};

    use super::*;

    fn document(bytes: usize) -> Document {
        let name = TopicName::new("a").unwrap();
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
        let (mut documents, mut long) = (Documents::default(), document(DOCUMENT_CODED_BYTES_MIN));
        assert!(long.find(Some(Encoding::Gzip)).1.is_none(), "asked once");
        let (plain, wish) = long.find(Some(Encoding::Gzip));
        assert_eq!(plain.tag, "\"e-1\"");
        let wish = wish.unwrap();
        assert!(long.find(Some(Encoding::Gzip)).1.is_none(), "wished for already");
        let kept = documents.keep(b"a", long);
        assert!(kept.is_version(Version { epoch: Epoch(0xe), number: 1 }));
        let body: Arc<[u8]> = b"coded"[..].into();
        let CodingWish { topic, number, encoding, .. } = wish;
        documents.take(&CodedValue { topic, number, encoding, body: Some(body) });
        let document = documents.find(b"a").unwrap();
        let coded = document.find(Some(Encoding::Gzip)).0;
        assert_eq!(coded.tag, "\"e-1-gzip\"");
        assert!(coded.block.ends_with(b"Content-Encoding: gzip\r\n\r\ncoded"));
        assert!(coded.block[coded.fields_bytes..].starts_with(b"\r\n"));
    }

    #[test]
    fn short_values_are_never_coded() {
        let mut short = document(10);
        assert!((0..3).all(|_| short.find(Some(Encoding::Zstd)).1.is_none()));
    }

    #[test]
    fn documents_are_bounded() {
        let mut documents = Documents::default();
        for number in 0..=DOCUMENTS_MAX {
            documents.keep(number.to_string().as_bytes(), document(10));
        }
        assert_eq!(documents.by_path.len(), 1);
        documents.forget(DOCUMENTS_MAX.to_string().as_bytes());
        assert_eq!(documents.bytes, 0);
    }
}
