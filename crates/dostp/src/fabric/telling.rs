//! What this node tells: its updates, and its load.

use super::limits::GATHERED_BYTES;
use super::record::TopicRecord;
use super::report::{NodeLoad, NodeReport, SiteDigest};
use super::{Fabric, Held, Now, Outgoing, Site, Stamp};
use crate::header::Kind;
use crate::kinds::realtime;

/// The topic of `publish` under which updates are told: each node has one stream.
pub(super) const STREAM: u64 = 0;

/// Places of what is gathered: without a deadline, and with one.
const ORDINARY: usize = 0;
const REALTIME: usize = 1;

/// An update that was numbered.
#[derive(Debug)]
pub struct Updated<H> {
    /// The stamp of the update, by which servers order what they all publish.
    pub stamp: Stamp,
    /// Whether it was published at this node.
    pub is_own: bool,
    /// Whether its topics have no value any more.
    pub is_gone: bool,
    /// Whether it is told in a message with a deadline.
    pub is_realtime: bool,
    /// What leads to its value.
    pub handle: H,
}

impl<H: Held + Clone> Fabric<H> {
    /// A site's topics have a value, or none any more. What was published at this node is told to the others
    /// by the next [`Fabric::flush`].
    pub fn updated(&mut self, site: usize, update: &Updated<H>, now: Now) {
        let Updated { stamp, is_own, is_gone, is_realtime, handle } = update;
        let Some(Site { name, table, .. }) = self.sites.get_mut(site) else { return };
        let topics = handle.topics();
        if !TopicRecord::fits(name, &topics, handle.length()) {
            // The others do not hear of it, neither now nor by asking, so it is not among what is compared.
            self.counts.too_long += 1;
            topics.iter().for_each(|topic| table.end(topic, *stamp, None, now.ms));
            return;
        }
        for topic in &topics {
            if *is_gone {
                table.end(topic, *stamp, Some(handle.clone()), now.ms);
            } else if !table.hold(topic, *stamp, handle.clone()) {
                self.counts.full += 1;
            }
        }
        if *is_own {
            let (mut body, mut record) = (Vec::new(), Vec::new());
            handle.write(&mut body);
            let (stamp, is_gone) = (*stamp, *is_gone);
            TopicRecord { site: name, stamp, topics, is_gone, body: &body }.write(&mut record);
            self.counts.records_told += 1;
            self.gather(&record, usize::from(*is_realtime), now);
        }
    }
}

impl<H: Held> Fabric<H> {
    /// A topic was forgotten here, because its time was over.
    pub fn forgotten(&mut self, site: usize, topic: &str, now: Now) {
        let Some(Site { table, .. }) = self.sites.get_mut(site) else { return };
        // That it was deleted before is told on, to those who have not heard of it.
        if let Some(stamp) = table.stamp(topic).filter(|_| !table.is_gone(topic)) {
            table.end(topic, stamp, None, now.ms);
        }
    }

    /// What is known of a site's values is void: all of them follow anew.
    pub fn begin_anew(&mut self, site: usize) {
        if let Some(site) = self.sites.get_mut(site) {
            site.table.clear();
        }
    }

    /// How busy this node is, for the next report.
    pub fn set_load(&mut self, load: NodeLoad) {
        self.load = load;
    }

    /// How busy this node was.
    pub fn load(&self) -> &NodeLoad {
        &self.load
    }

    /// Tells the updates that were gathered, real-time topics first.
    pub fn flush(&mut self, now: Now) {
        self.tell_gathered(REALTIME, now);
        self.tell_gathered(ORDINARY, now);
    }

    fn gather(&mut self, record: &[u8], place: usize, now: Now) {
        let gathered = &self.gathered[place];
        if !gathered.is_empty() && gathered.len() + record.len() > GATHERED_BYTES {
            self.tell_gathered(place, now);
        }
        self.gathered[place].extend_from_slice(record);
    }

    fn tell_gathered(&mut self, place: usize, now: Now) {
        if self.gathered[place].is_empty() {
            return;
        }
        let payload = self.publisher.publish(STREAM, &self.gathered[place]);
        self.version += 1;
        self.gathered[place].clear();
        self.counts.messages_told += 1;
        if place == REALTIME {
            let now_us = now.ms.saturating_mul(1_000);
            self.counts.realtime_told += 1;
            self.tell_all(realtime::stamp(&payload, self.deadline_us, now_us), true);
        } else {
            self.tell_all(payload, false);
        }
    }

    pub(super) fn tell_load(&mut self, now: Now) {
        self.flush(now);
        let digest = |site: &Site<H>| SiteDigest {
            site: site.digest,
            digest: site.table.digest(),
            topics: site.table.held() as u32,
        };
        let sites = self.sites.iter().map(digest).collect();
        let report =
            NodeReport { stream: (self.publisher.epoch(), self.version), load: self.load.clone(), sites };
        let payload = self.reporter.report(&report.write());
        self.tell_all(payload, false);
    }

    fn tell_all(&mut self, payload: Vec<u8>, priority: bool) {
        self.outgoing.push_back(Outgoing { to: None, kind: Kind::Data, message_id: None, priority, payload });
    }
}
