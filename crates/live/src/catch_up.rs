//! Everything between a reader's number and now, as slices that exist.
//!
//! It owns what each kind of topic owes a reader. It must never make a form: what is missing is asked of the
//! hub. Only gap marks are made here, for readers that were cut for too long.

use crate::form::{Form, Shape};
use crate::gap;
use crate::interest::Grants;
use crate::letter::UpdateKey;
use crate::limits::{DELIVERY_BYTES_MAX, SLICES_PER_DELIVERY_MAX};
use crate::ring::Entry;
use crate::topic::{Kind, TopicId};
use crate::update::Bytes;
use crate::view::topics::{Topics, ViewTopic};

/// What a reader is owed.
#[derive(Debug, Default)]
pub struct Batch {
    /// To be sent in this order; none if nothing concerns the reader.
    pub slices: Vec<Bytes>,
    /// The number from which a reader that gets none of them lacks all of them.
    pub from: u64,
    /// The number the reader has come to with these.
    pub number: u64,
    /// Updates of a log are lost: a mark among the slices says so.
    pub has_gap: bool,
    /// Where forms do not exist yet: the forms of all updates, so that they come with one letter and are
    /// there together. If there are any, nothing is to be sent.
    pub missing: Vec<(UpdateKey, Form)>,
}

/// An update that a topic owes.
struct Owed<'a> {
    number: u64,
    topic: TopicId,
    entry: &'a Entry,
    form: Form,
}

impl Owed<'_> {
    /// Bytes of what it tells, whether or not the form exists.
    fn content_bytes(&self) -> usize {
        match &self.entry.update.patch {
            Some(patch) if self.form.shape() == Shape::Patch => patch.len(),
            _ => self.entry.update.value.bytes().len(),
        }
    }
}

/// Updates and marks by their numbers: whatever a reader received last, it lacks nothing before that.
fn in_order(from: u64, number: u64, owed: Vec<Owed<'_>>, gaps: Vec<(u64, Bytes)>) -> Batch {
    let mut batch = Batch { from, number, has_gap: !gaps.is_empty(), ..Batch::default() };
    // Marks stand first: cut behind any of the updates, a reader was told of all that it lacks before that.
    batch.slices.extend(gaps.into_iter().map(|(_, mark)| mark));
    let forms: Vec<Option<&Bytes>> = owed.iter().map(|owed| owed.entry.form(owed.form)).collect();
    if forms.contains(&None) {
        let key = |owed: &Owed<'_>| UpdateKey { topic: owed.topic, number: owed.number };
        batch.missing = owed.iter().map(|owed| (key(owed), owed.form)).collect();
    }
    batch.slices.extend(forms.into_iter().flatten().cloned());
    batch
}

/// How many of these make one delivery: one at least.
fn delivered(owed: &[Owed<'_>]) -> usize {
    let mut bytes: usize = 0;
    let fits = |owed: &&Owed<'_>| {
        bytes = bytes.saturating_add(owed.content_bytes());
        bytes <= DELIVERY_BYTES_MAX
    };
    owed.iter().take(SLICES_PER_DELIVERY_MAX).take_while(fits).count().max(1)
}

/// From where, and in which form.
#[derive(Debug, Clone, Copy)]
pub struct CatchUp {
    /// The reader's number.
    pub from: u64,
    /// The view's number.
    pub to: u64,
    /// The reader's form.
    pub form: Form,
    /// The reader has nothing before its number: it gets whole values, and no mark for what it never asked.
    pub is_fresh: bool,
    /// Nothing of a log is owed.
    pub skips_logs: bool,
}

impl CatchUp {
    /// Collects what the topics owe.
    pub(crate) fn collect(
        self,
        grants: &Grants,
        topics: &Topics,
        moved: impl Iterator<Item = TopicId>,
    ) -> Batch {
        let mut owed: Vec<Owed<'_>> = Vec::new();
        let mut cut: Vec<&ViewTopic> = Vec::new();
        for id in moved {
            let Some(topic) = topics.get(id) else { continue };
            let is_skipped = self.skips_logs && topic.kind == Kind::Log;
            if topic.ring.last_number() <= self.from || is_skipped {
                continue;
            }
            if topic.kind == Kind::Log && topic.ring.dropped_to() > self.from && !self.is_fresh {
                cut.push(topic);
            }
            for (entry, form) in self.owes(grants, topic) {
                owed.push(Owed { number: entry.update.number, topic: id, entry, form });
            }
        }
        owed.sort_unstable_by_key(|owed| (owed.number, owed.topic));
        owed.dedup_by_key(|owed| owed.number);
        let delivered = delivered(&owed);
        let is_cut_short = owed.len() > delivered;
        owed.truncate(delivered);
        let last = owed.last().map_or(self.to, |owed| owed.number);
        let number = if is_cut_short { last } else { self.to.max(self.from) };
        let first = owed.first().map_or(number, |owed| owed.number - 1);
        let from = if self.is_fresh { first } else { self.from };
        let mut gaps: Vec<(u64, Bytes)> = cut.iter().filter_map(|topic| self.gap(topic, number)).collect();
        gaps.sort_unstable_by_key(|(number, _)| *number);
        in_order(from, number, owed, gaps)
    }

    /// The mark for what left a topic's ring behind the reader's number and up to `to`, and where it stands.
    fn gap(&self, topic: &ViewTopic, to: u64) -> Option<(u64, Bytes)> {
        let to = to.min(topic.ring.dropped_to());
        let missed = topic.ring.missed(self.from, to);
        if missed.count == 0 && !missed.at_least {
            return None;
        }
        Some((to, gap::mark(self.form, &topic.name, missed)?))
    }

    /// What one topic owes, oldest first.
    fn owes<'a>(&self, grants: &Grants, topic: &'a ViewTopic) -> Vec<(&'a Entry, Form)> {
        let whole = self.form.whole();
        let readable = |entry: &&Entry| grants.may_read(&entry.update);
        let last = || topic.ring.last().filter(readable).map(|entry| (entry, whole));
        match topic.kind {
            Kind::Value => last().into_iter().collect(),
            Kind::Log => topic.ring.after(self.from).filter(readable).map(|entry| (entry, whole)).collect(),
            Kind::Json => match self.patches(topic) {
                Some(patches) => patches.into_iter().filter(|(entry, _)| readable(entry)).collect(),
                None => last().into_iter().collect(),
            },
        }
    }

    /// The differences that lead from the reader's value to the last one, if they are all there and shorter.
    fn patches<'a>(&self, topic: &'a ViewTopic) -> Option<Vec<(&'a Entry, Form)>> {
        if self.form.shape() != Shape::Patch || self.is_fresh || topic.ring.dropped_to() > self.from {
            return None;
        }
        let whole_bytes = topic.ring.last()?.update.value.bytes().len();
        let mut patch_bytes = 0;
        let mut patches = Vec::new();
        for entry in topic.ring.after(self.from) {
            patch_bytes += entry.update.patch.as_ref()?.len();
            if patch_bytes > whole_bytes {
                return None;
            }
            patches.push((entry, self.form));
        }
        Some(patches)
    }
}
