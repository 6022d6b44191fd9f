//! An update as bytes.
//!
//! It owns their layout: a byte of format, a byte of marks, then texts and values behind their lengths
//! (little endian). It must never trust a length.

use crate::name::TopicName;
use crate::stamp::UpdateStamp;
use crate::update::{Bytes, Update, Value};

/// The layout written here.
const LAYOUT: u8 = 1;
const PRIVATE: u8 = 1;
const HAS_ID: u8 = 2;
const HAS_KIND: u8 = 4;
const HAS_RETRY: u8 = 8;
const HAS_PATCH: u8 = 16;
const HAS_STAMP: u8 = 32;

/// An update that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptUpdate {
    pub(crate) number: u64,
    pub(crate) topics: Vec<TopicName>,
    pub(crate) value: Value,
    pub(crate) patch: Option<Bytes>,
    pub(crate) id: Option<Box<str>>,
    pub(crate) kind: Option<Box<str>>,
    pub(crate) retry_ms: Option<u32>,
    pub(crate) private: bool,
    pub(crate) stamp: Option<UpdateStamp>,
}

/// The update as bytes.
pub(crate) fn write(update: &Update) -> Vec<u8> {
    let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
    let marks = mark(update.private, PRIVATE)
        | mark(update.id.is_some(), HAS_ID)
        | mark(update.kind.is_some(), HAS_KIND)
        | mark(update.retry_ms.is_some(), HAS_RETRY)
        | mark(update.patch.is_some(), HAS_PATCH)
        | mark(update.stamp.is_some(), HAS_STAMP);
    let tag = match update.value {
        Value::Json(_) => 0,
        Value::Text(_) => 1,
        Value::Binary(_) => 2,
        Value::Gone => 3,
    };
    let mut record = vec![LAYOUT, marks, tag];
    let mut append = |bytes: &[u8]| {
        record.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        record.extend_from_slice(bytes);
    };
    append(update.value.bytes());
    update.id.iter().for_each(|id| append(id.as_bytes()));
    update.kind.iter().for_each(|kind| append(kind.as_bytes()));
    update.retry_ms.iter().for_each(|retry| append(&retry.to_le_bytes()));
    update.patch.iter().for_each(|patch| append(patch));
    update.stamp.iter().for_each(|stamp| append(&stamp.to_bytes()));
    update.topics().for_each(|topic| append(topic.as_str().as_bytes()));
    record
}

/// The update of a record; `None` if it is damaged.
pub(crate) fn read(number: u64, record: &[u8]) -> Option<KeptUpdate> {
    let (&[layout, marks, tag], mut rest) = record.split_first_chunk::<3>()?;
    if layout != LAYOUT {
        return None;
    }
    let mut take = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (bytes, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(bytes)
    };
    let value: Bytes = take()?.into();
    let value = match tag {
        0 => Value::Json(value),
        1 => Value::Text(value),
        2 => Value::Binary(value),
        3 => Value::Gone,
        _ => return None,
    };
    let text = |bytes: &[u8]| Some(Box::<str>::from(std::str::from_utf8(bytes).ok()?));
    let id = if marks & HAS_ID != 0 { Some(text(take()?)?) } else { None };
    let kind = if marks & HAS_KIND != 0 { Some(text(take()?)?) } else { None };
    let retry_ms =
        if marks & HAS_RETRY != 0 { Some(u32::from_le_bytes(take()?.try_into().ok()?)) } else { None };
    let patch = if marks & HAS_PATCH != 0 { Some(take()?.into()) } else { None };
    let stamp = if marks & HAS_STAMP != 0 { Some(UpdateStamp::of_bytes(take()?)?) } else { None };
    let mut topics = Vec::new();
    while let Some(name) = take() {
        let name = std::str::from_utf8(name).ok()?;
        topics.push(TopicName::new(name).or_else(|_| TopicName::of_server(name)).ok()?);
    }
    let private = marks & PRIVATE != 0;
    let whole = rest.is_empty() && !topics.is_empty();
    let kept = KeptUpdate { number, topics, value, patch, id, kind, retry_ms, private, stamp };
    whole.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::TopicId;

    #[test]
    fn a_record_reads_as_it_was_written_and_no_part_of_it_does() {
        let name = |text| (TopicId(0), TopicName::new(text).unwrap());
        let update = Update {
            number: 7,
            topics: [name("a"), name("b")].into(),
            value: Value::Json(b"{}"[..].into()),
            patch: Some(b"{}"[..].into()),
            id: Some("i".into()),
            kind: Some("k".into()),
            retry_ms: Some(3),
            private: true,
            stamp: Some(UpdateStamp { ms: 1, node: 2, sequence: 3 }),
            is_foreign: true,
            hash: None,
        };
        let record = write(&update);
        let kept = read(7, &record).unwrap();
        assert_eq!((kept.value, kept.patch, kept.id), (update.value, update.patch, update.id));
        assert_eq!((kept.kind, kept.retry_ms, kept.private), (update.kind, update.retry_ms, true));
        assert_eq!(kept.stamp, update.stamp);
        assert_eq!(kept.topics.len(), 2);
        let cuts = (0..record.len()).filter(|cut| read(7, &record[..*cut]).is_some());
        // Between two topics a record may end; the store's own checks see that it was cut.
        assert_eq!(cuts.count(), 1);
    }
}
