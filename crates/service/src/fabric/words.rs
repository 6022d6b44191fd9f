//! Updates of live data in the words of the fabric: what stands in a record's body.
//!
//! It must never believe a body: other nodes may have written anything.

use std::sync::Arc;

use staunch_dostp::fabric::limits::TOPICS_PER_RECORD_MAX;
use staunch_dostp::fabric::{Held, Stamp, ToldUpdate};
use staunch_live::limits::{ID_BYTES_MAX, TOPICS_PER_PUBLICATION_MAX};
use staunch_live::{Content, Publication, TopicName, Update, Value};

const PRIVATE: u8 = 1;
const HAS_ID: u8 = 2;
const HAS_KIND: u8 = 4;
const HAS_RETRY: u8 = 8;
const IS_LOG: u8 = 16;

const _: () = assert!(TOPICS_PER_PUBLICATION_MAX <= TOPICS_PER_RECORD_MAX);

/// An update that the hub holds.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) update: Arc<Update>,
    pub(super) is_log: bool,
}

impl Held for Handle {
    fn topics(&self) -> Vec<&str> {
        self.update.topics().map(TopicName::as_str).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let update = &self.update;
        let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
        out.push(
            mark(update.private, PRIVATE)
                | mark(update.id.is_some(), HAS_ID)
                | mark(update.kind.is_some(), HAS_KIND)
                | mark(update.retry_ms.is_some(), HAS_RETRY)
                | mark(self.is_log, IS_LOG),
        );
        out.push(match update.value {
            Value::Json(_) => 0,
            Value::Text(_) => 1,
            Value::Binary(_) => 2,
            Value::Gone => 3,
        });
        for text in [&update.id, &update.kind].into_iter().flatten() {
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        update.retry_ms.iter().for_each(|ms| out.extend_from_slice(&ms.to_be_bytes()));
        out.extend_from_slice(update.value.bytes());
    }

    fn length(&self) -> usize {
        let Update { id, kind, retry_ms, value, .. } = &*self.update;
        let texts = [id, kind].into_iter().flatten().map(|text| 2 + text.len()).sum::<usize>();
        2 + texts + retry_ms.map_or(0, |_| 4) + value.bytes().len()
    }
}

/// The stamp in the words of live data.
pub(super) fn stamp_of(stamp: Stamp) -> staunch_live::UpdateStamp {
    let Stamp { ms, node, sequence } = stamp;
    staunch_live::UpdateStamp { ms, node, sequence }
}

/// The stamp in the words of the fabric.
pub(super) fn stamp_in(stamp: staunch_live::UpdateStamp) -> Stamp {
    let staunch_live::UpdateStamp { ms, node, sequence } = stamp;
    Stamp { ms, node, sequence }
}

/// What another node told, as a publication; `None` if it has no meaning.
pub(super) fn publication(told: &ToldUpdate<'_>) -> Option<Publication> {
    let topics = told.topics.iter().map(|name| TopicName::new(name).ok()).collect::<Option<Vec<_>>>()?;
    let first = topics.first()?.clone();
    let publication =
        Publication { topics, stamp: Some(stamp_of(told.stamp)), ..Publication::new(first, Value::Gone) };
    let (&[marks, tag], mut rest) = told.body.split_first_chunk::<2>()?;
    let mut text = |is_there: bool| -> Option<Option<Box<str>>> {
        if !is_there {
            return Some(None);
        }
        let (length, behind) = rest.split_first_chunk()?;
        let (text, behind) = behind.split_at_checked(u16::from_be_bytes(*length).into())?;
        rest = behind;
        // What is longer has no meaning, and is not to wait for the hub to say so.
        let text = Some(text).filter(|text| text.len() <= ID_BYTES_MAX)?;
        Some(Some(std::str::from_utf8(text).ok()?.into()))
    };
    let (id, kind) = (text(marks & HAS_ID != 0)?, text(marks & HAS_KIND != 0)?);
    let retry_ms = if marks & HAS_RETRY == 0 {
        None
    } else {
        let (ms, behind) = rest.split_first_chunk()?;
        rest = behind;
        Some(u32::from_be_bytes(*ms))
    };
    let content = match tag {
        0 => {
            serde_json::from_slice::<serde::de::IgnoredAny>(rest).ok()?;
            Content::Whole(Value::Json(rest.into()))
        }
        1 => Content::Whole(Value::Text(std::str::from_utf8(rest).ok()?.as_bytes().into())),
        2 => Content::Whole(Value::Binary(rest.into())),
        3 => Content::Gone,
        _ => return None,
    };
    let (private, begins_log) = (marks & PRIVATE != 0, marks & IS_LOG != 0);
    Some(Publication { content, id, kind, retry_ms, private, begins_log, ..publication })
}

#[cfg(test)]
mod tests {
    use staunch_live::{Epoch, FollowedValue, Following, Hub, HubSettings};

    use super::*;

    const STAMP: Stamp = Stamp { ms: 5, node: 6, sequence: 7 };

    fn told(body: &[u8]) -> ToldUpdate<'_> {
        ToldUpdate { site: 0, stamp: STAMP, topics: vec!["a", "b"], is_gone: false, body }
    }

    /// What is told of a publication once it was numbered.
    fn written(publication: Publication) -> Vec<u8> {
        let mut hub = Hub::new(HubSettings { node: Some(1), ..HubSettings::default() }, Epoch(1));
        hub.publish(publication, 0).unwrap();
        let mut body = Vec::new();
        Following::new().take(&hub.introduction(), &mut |followed| {
            if let FollowedValue::Updated { update, is_log } = followed {
                let handle = Handle { update: Arc::clone(update), is_log };
                handle.write(&mut body);
                assert_eq!(body.len(), handle.length());
            }
        });
        body
    }

    #[test]
    fn an_update_is_published_elsewhere_as_it_was_here() {
        let name = |name| TopicName::new(name).unwrap();
        let simple = Publication::new(name("a"), Value::Json(b"{\"x\":1}"[..].into()));
        let simple = Publication { topics: vec![name("a"), name("b")], ..simple };
        let full = Publication {
            id: Some("urn:1".into()),
            kind: Some("goal".into()),
            retry_ms: Some(9),
            private: true,
            begins_log: true,
            ..simple.clone()
        };
        let binary =
            Publication { content: Content::Whole(Value::Binary(b"\xff"[..].into())), ..full.clone() };
        let empty = Publication { content: Content::Whole(Value::of_bytes(b"")), ..simple.clone() };
        for publication_here in [simple, full, binary, empty] {
            let body = written(publication_here.clone());
            let elsewhere = publication(&told(&body)).unwrap();
            assert_eq!(elsewhere, Publication { stamp: Some(stamp_of(STAMP)), ..publication_here });
        }
        let gone = Publication { content: Content::Gone, ..Publication::new(name("a"), Value::Gone) };
        assert_eq!(publication(&told(&written(gone))).unwrap().content, Content::Gone);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for body in
            [&b""[..], b"\0", b"\0\x00{", b"\0\x01\xff", b"\0\x04", b"\x02\x01\x00\x05ab", b"\x08\x01\0"]
        {
            assert_eq!(publication(&told(body)), None, "{body:?}");
        }
        let long = [&b"\x02\x01\x01\x01"[..], &[b'a'; 257], b"value"].concat();
        assert_eq!(publication(&told(&long)), None);
        assert!(publication(&told(&[b"\x02\x01\x01\x00", &long[5..]].concat())).is_some());
        let named = ToldUpdate { topics: vec!["$status"], ..told(b"\0\x01a") };
        assert_eq!(publication(&named), None);
    }
}
