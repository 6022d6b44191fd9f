//! What comes from other nodes: load, updates, questions, pages.
//!
//! It must never believe a length, a version or a clock, nor apply an update that is not newer.

use super::limits::{ANSWERED_BYTES_PER_SECOND_MAX, ANSWERS_PER_SECOND_MAX, REPORT_BYTES_MAX};
use super::nodes::Novelty;
use super::question::{Page, PageQuestion, page};
use super::record::{self, TopicRecord};
use super::report::NodeReport;
use super::telling::STREAM;
use super::wire::Input;
use super::{Fabric, Held, Now, Outgoing, Stamp};
use crate::header::Kind;
use crate::kinds::transact::{Asked, Concluded};
use crate::kinds::{Sender, publish, realtime};

/// A message that came.
#[derive(Debug, Clone, Copy)]
pub struct HeardMessage<'a> {
    /// The sender: its address and its port.
    pub from: Sender,
    /// DATA, REQUEST, REPLY or ACK.
    pub kind: Kind,
    /// The id that its sender gave the message.
    pub message_id: u16,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// An update of another node, which is newer than what is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldUpdate<'a> {
    /// The site's number.
    pub site: usize,
    /// Its place among all updates of its topics.
    pub stamp: Stamp,
    /// Those of its topics for which it is newer.
    pub topics: Vec<&'a str>,
    /// Whether the topics have no value any more.
    pub is_gone: bool,
    /// The value.
    pub body: &'a [u8],
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// The update will be held; [`Fabric::updated`] follows.
    Taken,
    /// There is no room at present: it is asked for again.
    Full,
    /// The update has no meaning here.
    Refused,
}

/// What records brought.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// The first update that was not known.
    pub(super) novelty: Option<Novelty>,
    /// Something that finds no room; what stands behind it was not looked at.
    pub(super) no_room: bool,
}

impl<H: Held> Fabric<H> {
    /// A message came to the fabric's port. `apply` is given what is newer than what is held.
    pub fn heard(
        &mut self,
        heard: &HeardMessage<'_>,
        now: Now,
        apply: &mut dyn FnMut(&ToldUpdate<'_>) -> Became,
    ) {
        let (address, port) = heard.from;
        if address == self.address || port != self.port {
            self.counts.foreign += 1;
            return;
        }
        match heard.kind {
            Kind::Data => self.take_data(address, heard.payload, now, apply),
            Kind::Request => self.answer(heard, now),
            Kind::Reply => self.take_page(heard, now, apply),
            Kind::Ack => self.service.acknowledged(heard.from, heard.message_id),
            _ => self.counts.foreign += 1,
        }
        self.ask_on(now);
    }

    fn take_data(
        &mut self,
        address: u16,
        payload: &[u8],
        now: Now,
        apply: &mut dyn FnMut(&ToldUpdate<'_>) -> Became,
    ) {
        let Some(payload) = self.in_time(address, payload, now) else { return };
        match publish::read(payload) {
            Some((epoch, STREAM, version, records)) => {
                let Some(node) = self.nodes.hear(address, now.ms) else {
                    self.counts.nodes_full += 1;
                    return;
                };
                node.note(epoch, version, false);
                self.counts.messages_heard += 1;
                let brought = self.take_records(Input(records), now, apply);
                if brought.no_room
                    && let Some(node) = self.nodes.get_mut(address)
                {
                    node.is_wanted = true;
                }
            }
            Some(_) => self.counts.malformed += 1,
            None => self.take_report(address, payload, now),
        }
    }

    /// A message without a deadline, or the value of one that was not held up for longer. One that was is
    /// dropped: the next message of its stream, or a report, tells that it is missing, as if it were lost.
    fn in_time<'a>(&mut self, address: u16, payload: &'a [u8], now: Now) -> Option<&'a [u8]> {
        let Some((budget_us, stamp_us, value)) = realtime::read(payload) else { return Some(payload) };
        self.counts.realtime_heard += 1;
        let Some(node) = self.nodes.hear(address, now.ms) else {
            self.counts.nodes_full += 1;
            return None;
        };
        let now_us = now.ms.saturating_mul(1_000);
        let epoch = publish::read(value).map_or(0, |(epoch, ..)| epoch);
        let is_late = node.held_us(epoch, realtime::took_us(stamp_us, now_us), now_us) > u64::from(budget_us);
        self.counts.late += u64::from(is_late);
        (!is_late).then_some(value)
    }

    fn take_report(&mut self, address: u16, payload: &[u8], now: Now) {
        if payload.len() > REPORT_BYTES_MAX {
            self.counts.malformed += 1;
            return;
        }
        let Some(node) = self.nodes.hear(address, now.ms) else {
            self.counts.nodes_full += 1;
            return;
        };
        let from = (address, self.port);
        if !self.collector.take(from, payload, now.ms) {
            return;
        }
        let value = self.collector.value(from).map_or(&[][..], |value| &value.bytes);
        let Some(report) = NodeReport::read(value) else {
            self.counts.malformed += 1;
            return;
        };
        node.note(report.stream.0, report.stream.1, true);
        let differs = |told: &super::report::SiteDigest| {
            let own = self.sites.iter().find(|site| site.digest == told.site);
            own.is_some_and(|own| own.table.digest() != told.digest)
        };
        node.compare(report.sites.iter().any(differs));
        node.report = Some(report);
    }

    /// Takes records to their end; stops where there is no room.
    pub(super) fn take_records(
        &mut self,
        mut input: Input<'_>,
        now: Now,
        apply: &mut dyn FnMut(&ToldUpdate<'_>) -> Became,
    ) -> Brought {
        let mut brought = Brought::default();
        while !input.0.is_empty() {
            let Some(record) = record::next(&mut input) else {
                self.counts.malformed += 1;
                break;
            };
            match self.take_record(&record, now, apply) {
                Some((Became::Full, _)) => return Brought { no_room: true, ..brought },
                Some((Became::Taken, novelty)) if brought.novelty.is_none() => {
                    let (site, topic) = novelty;
                    let (topic, stamp) = (topic.to_owned(), record.stamp);
                    brought.novelty = Some(Novelty { site, topic, stamp });
                }
                Some(_) | None => {}
            }
        }
        brought
    }

    /// Takes a record, if it is newer than what is held. What became of it, with its site and its first topic
    /// for which it is newer.
    fn take_record<'a>(
        &mut self,
        record: &TopicRecord<'a>,
        now: Now,
        apply: &mut dyn FnMut(&ToldUpdate<'_>) -> Became,
    ) -> Option<(Became, (usize, &'a str))> {
        let Some(site) = self.sites.iter().position(|site| site.name == record.site) else {
            self.counts.unknown_site += 1;
            return None;
        };
        if record.stamp.is_ahead(now.wall_ms) {
            self.refuse_ahead(record.stamp, now);
            return None;
        }
        let table = &self.sites[site].table;
        // What a clock was wrong for, an own one that was set since, stands in nobody's way.
        let is_newer = |held: Stamp| held < record.stamp || held.is_ahead(now.wall_ms);
        let mut topics: Vec<&'a str> = Vec::new();
        for topic in &record.topics {
            if table.stamp(topic).is_none_or(is_newer) && !topics.contains(topic) {
                topics.push(topic);
            }
        }
        let Some(&first) = topics.first() else {
            self.counts.known += 1;
            return None;
        };
        let TopicRecord { stamp, is_gone, body, .. } = *record;
        let became = apply(&ToldUpdate { site, stamp, topics, is_gone, body });
        match became {
            Became::Taken => self.counts.taken += 1,
            Became::Full => self.counts.no_room += 1,
            Became::Refused => self.counts.refused += 1,
        }
        Some((became, (site, first)))
    }

    fn answer(&mut self, heard: &HeardMessage<'_>, now: Now) {
        if !self.answered_bytes.is_left(now.ms, ANSWERED_BYTES_PER_SECOND_MAX)
            || !self.answers.takes(now.ms, ANSWERS_PER_SECOND_MAX)
        {
            // The question is not answered now: the node that asked asks again.
            self.counts.unanswered_here += 1;
            return;
        }
        let now_us = now.ms.saturating_mul(1_000);
        let reply = match self.service.take(heard.from, heard.payload, now_us) {
            Asked::Nothing => return,
            Asked::Again(reply) => reply,
            Asked::Work { number, request } => {
                let Some(question) = PageQuestion::read(request) else {
                    self.counts.malformed += 1;
                    return;
                };
                let site = self.sites.iter().find(|site| site.name == question.site);
                // Of a site that is not here there is nothing to tell.
                let bytes = site.map_or_else(|| vec![1, 0, 0], |site| page(&question, &site.table));
                self.counts.answered += 1;
                self.service.answer(heard.from, number, &bytes, now_us)
            }
        };
        self.answered_bytes.add(reply.len());
        self.outgoing.push_back(Outgoing {
            to: Some(heard.from.0),
            kind: Kind::Reply,
            message_id: Some(heard.message_id),
            priority: false,
            payload: reply,
        });
    }

    fn take_page(
        &mut self,
        heard: &HeardMessage<'_>,
        now: Now,
        apply: &mut dyn FnMut(&ToldUpdate<'_>) -> Became,
    ) {
        let concluded = self.caller.take(heard.from, heard.payload, now.ms.saturating_mul(1_000));
        // A lost ACK is sent again when the next REPLY comes.
        self.outgoing.push_back(Outgoing {
            to: Some(heard.from.0),
            kind: Kind::Ack,
            message_id: Some(heard.message_id),
            priority: false,
            payload: Vec::new(),
        });
        let Some((number, Concluded::Reply(bytes))) = concluded else { return };
        let Some(address) = self.nodes.of_transaction(number) else { return };
        let Some(page) = Page::read(&bytes) else {
            self.counts.malformed += 1;
            self.fail(address, now);
            return;
        };
        self.counts.pages_heard += 1;
        let brought = self.take_records(page.records, now, apply);
        let pull = self.nodes.get_mut(address).and_then(|node| node.pull.as_mut());
        if let Some(pull) = pull.filter(|pull| pull.novelty.is_none()) {
            pull.novelty = brought.novelty;
        }
        if brought.no_room {
            self.fail(address, now);
        } else {
            self.turn_page(address, page.next, now);
        }
    }
}
