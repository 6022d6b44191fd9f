//! Questions for values, and pages of answers.
//!
//! It owns their bytes, and what stands in a page. A question says by digests what is known already, so that
//! only topics are told of whose buckets differ. It must never hold a page.

use super::limits::{BUCKETS, PAGE_BYTES, PAGE_TOPICS_MAX};
use super::record::TopicRecord;
use super::table::{Buckets, Entry, Table, TopicState, bucket};
use super::wire::{self, Input};
use super::{Held, Stamp};

/// The layout written here.
const LAYOUT: u8 = 1;

/// What a node wants to know of a site.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageQuestion<'a> {
    pub(super) site: &'a str,
    /// The topic behind which it goes on; empty at the begin.
    pub(super) cursor: &'a str,
    pub(super) buckets: Buckets,
}

impl<'a> PageQuestion<'a> {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = vec![LAYOUT];
        wire::short_text(self.site, &mut out);
        wire::topic(self.cursor, &mut out);
        self.buckets.iter().for_each(|digest| out.extend_from_slice(&digest.to_be_bytes()));
        out
    }

    /// Reads a question; `None` if the bytes are none.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input(bytes);
        if input.u8()? != LAYOUT {
            return None;
        }
        let (site, cursor) = (input.short_text()?, input.topic()?);
        let mut buckets = [0; BUCKETS];
        for digest in &mut buckets {
            *digest = input.u32()?;
        }
        Some(Self { site, cursor, buckets })
    }
}

/// A part of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    /// Behind which topic the next one goes on; `None` if this is the last.
    pub(super) next: Option<&'a str>,
    pub(super) records: Input<'a>,
}

impl<'a> Page<'a> {
    /// Reads a page; `None` if the bytes are none.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input(bytes);
        if input.u8()? != LAYOUT {
            return None;
        }
        let next = Some(input.topic()?).filter(|cursor| !cursor.is_empty());
        Some(Self { next, records: input })
    }
}

/// The page that answers a question about a site.
pub(super) fn page<H: Held>(question: &PageQuestion<'_>, table: &Table<H>) -> Vec<u8> {
    let (mut records, mut next) = (Vec::new(), None);
    // An update of several topics is told once a page.
    let mut told: Vec<Stamp> = Vec::new();
    for (place, (name, entry)) in table.behind(question.cursor).enumerate() {
        if place == PAGE_TOPICS_MAX || records.len() >= PAGE_BYTES {
            break;
        }
        next = Some(name);
        let at = bucket(name);
        if question.buckets[at] == table.buckets()[at] || told.contains(&entry.stamp) {
            continue;
        }
        write(question.site, entry, table, &mut records);
        if let TopicState::Held(handle) | TopicState::Gone(handle) = &entry.state
            && handle.topics().len() > 1
        {
            told.push(entry.stamp);
        }
    }
    let is_last = next.is_none_or(|name| table.behind(name).next().is_none());
    let mut out = vec![LAYOUT];
    wire::topic(next.filter(|_| !is_last).map_or("", |name| name), &mut out);
    out.append(&mut records);
    out
}

fn write<H: Held>(site: &str, entry: &Entry<H>, table: &Table<H>, out: &mut Vec<u8>) {
    let (TopicState::Held(handle) | TopicState::Gone(handle)) = &entry.state else { return };
    let (stamp, mut body) = (entry.stamp, Vec::new());
    handle.write(&mut body);
    let topics = handle.topics().into_iter().filter(|topic| table.is_told(topic, stamp)).collect();
    let is_gone = matches!(entry.state, TopicState::Gone(_));
    TopicRecord { site, stamp, topics, is_gone, body: &body }.write(out);
}
