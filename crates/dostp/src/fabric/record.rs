//! Records: an update as nodes tell it to each other.
//!
//! It owns their bytes. It must never look into a value: what is in it is a matter of those who publish.

use super::limits::{RECORD_BYTES_MAX, SITE_BYTES_MAX, TOPICS_PER_RECORD_MAX};
use super::stamp::Stamp;
use super::wire::{self, Input};

/// The mark of a record that ends its topics.
const GONE: u8 = 1;

/// Bytes of a record beside its length, the site's name, its topics and the value: the stamp, the marks, the
/// length of the name, and how many topics there are.
const HEAD_BYTES: usize = Stamp::BYTES + 3;

/// An update of one or more topics of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRecord<'a> {
    /// The site's name.
    pub site: &'a str,
    /// Its place among all updates of its topics.
    pub stamp: Stamp,
    /// Its topics: one at least.
    pub topics: Vec<&'a str>,
    /// Whether the topics have no value any more.
    pub is_gone: bool,
    /// The value, in the words of those who publish.
    pub body: &'a [u8],
}

impl TopicRecord<'_> {
    /// Whether a record of this site and these topics, with so many bytes of a value, may be told.
    pub(super) fn fits(site: &str, topics: &[&str], body_bytes: usize) -> bool {
        let names: usize = topics.iter().map(|topic| 2 + topic.len()).sum();
        site.len() <= SITE_BYTES_MAX
            && topics.len() <= TOPICS_PER_RECORD_MAX
            && HEAD_BYTES + site.len() + names + body_bytes <= RECORD_BYTES_MAX
    }

    /// Appends it behind its length. `false`, and nothing is appended, if it is longer than may be.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> bool {
        if !Self::fits(self.site, &self.topics, self.body.len()) {
            return false;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.stamp.write(out);
        out.push(if self.is_gone { GONE } else { 0 });
        wire::short_text(self.site, out);
        out.push(self.topics.len() as u8);
        self.topics.iter().for_each(|name| wire::topic(name, out));
        out.extend_from_slice(self.body);
        let length = out.len() - start - 4;
        out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
        true
    }
}

/// Takes the next record of a message. `None` at its end, and where the bytes are none.
pub(super) fn next<'a>(input: &mut Input<'a>) -> Option<TopicRecord<'a>> {
    let length = usize::try_from(input.u32()?).ok()?;
    if length > RECORD_BYTES_MAX {
        return None;
    }
    let mut inner = Input(input.take(length)?);
    let stamp = Stamp { ms: inner.u64()?, node: inner.u16()?, sequence: inner.u32()? };
    let marks = inner.u8()?;
    let site = inner.short_text()?;
    let count = usize::from(inner.u8()?);
    if count == 0 || count > TOPICS_PER_RECORD_MAX {
        return None;
    }
    let topics = (0..count).map(|_| inner.topic().filter(|name| !name.is_empty()));
    let topics = topics.collect::<Option<Vec<&str>>>()?;
    Some(TopicRecord { site, stamp, topics, is_gone: marks & GONE != 0, body: inner.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { ms: u64::MAX, node: 7, sequence: 9 };

    #[test]
    fn a_record_reads_as_it_was_written_and_no_part_of_it_does() {
        let record = TopicRecord {
            site: "a.example",
            stamp: STAMP,
            topics: vec!["a", "ä"],
            is_gone: false,
            body: b"1",
        };
        let mut bytes = Vec::new();
        assert!(
            record.write(&mut bytes) && TopicRecord { is_gone: true, ..record.clone() }.write(&mut bytes)
        );
        let mut input = Input(&bytes);
        assert_eq!(next(&mut input).as_ref(), Some(&record));
        assert!(next(&mut input).unwrap().is_gone && input.0.is_empty());
        for cut in 0..bytes.len() / 2 {
            assert_eq!(next(&mut Input(&bytes[..cut])), None, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_written() {
        let body = vec![0; RECORD_BYTES_MAX - HEAD_BYTES - 3];
        let record = TopicRecord { site: "", stamp: STAMP, topics: vec!["a"], is_gone: false, body: &body };
        let mut bytes = vec![1];
        assert!(record.write(&mut bytes) && next(&mut Input(&bytes[1..])).as_ref() == Some(&record));
        bytes.truncate(1);
        assert!(!TopicRecord { site: "a", ..record.clone() }.write(&mut bytes) && bytes == [1]);
        let topics = vec!["a"; TOPICS_PER_RECORD_MAX];
        let record = TopicRecord { topics, body: b"", ..record };
        assert!(record.write(&mut bytes) && next(&mut Input(&bytes[1..])).as_ref() == Some(&record));
        let record = TopicRecord { topics: vec!["a"; TOPICS_PER_RECORD_MAX + 1], ..record };
        bytes.truncate(1);
        assert!(!record.write(&mut bytes) && bytes == [1]);
    }
}
