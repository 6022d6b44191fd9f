//! The other nodes: what is known of each, and how far asking it for values is.
//!
//! It owns when a node is asked. It must never ask more than one thing of a node at a time, nor again before
//! its rest is over.

use std::collections::{BTreeMap, VecDeque};

use super::limits::{
    DIFFERING_MAX, FORGOTTEN_MS, NODES_MAX, OVERTAKEN_MAX, SILENT_MS, VAIN_MS_MAX, VAIN_TIMES, WAIT_MS_MAX,
    WAIT_MS_MIN,
};
use super::report::NodeReport;
use super::stamp::Stamp;
use crate::kinds::realtime::Quickest;

/// An update that was not known, by one of its topics.
#[derive(Debug)]
pub(super) struct Novelty {
    pub(super) site: usize,
    pub(super) topic: String,
    pub(super) stamp: Stamp,
}

/// Asking a node for all that differs.
#[derive(Debug)]
pub(super) struct Pull {
    /// Sites that are still to be asked for, the present one first.
    pub(super) sites: VecDeque<usize>,
    /// Behind which topic the next page begins.
    pub(super) cursor: String,
    /// The number of the transaction that is under way; `None` while it could not begin.
    pub(super) number: Option<u64>,
    /// Pages that came.
    pub(super) pages: u32,
    pub(super) begun_ms: u64,
    /// The first update that came and was not known.
    pub(super) novelty: Option<Novelty>,
}

/// The state of another node, as its frames told it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) heard_ms: u64,
    /// The start of its stream of publications, and the last version that was heard of.
    stream: Option<(u32, u64)>,
    /// The start of which realtime messages came, and the quickest of them.
    quickest: Option<(u32, Quickest)>,
    pub(super) report: Option<NodeReport>,
    /// Whether it is to be asked for its values.
    pub(super) is_wanted: bool,
    /// Its last reports that differed from what is held here, in a row.
    differing: u8,
    pub(super) pull: Option<Pull>,
    /// What was new when it was asked before: by now it is held here, or it cannot be.
    pub(super) novelty: Option<Novelty>,
    /// Whether it could not be.
    pub(super) is_vain: bool,
    wait_ms: u64,
    pub(super) rest_until_ms: u64,
}

impl Node {
    fn new(now_ms: u64) -> Self {
        Self {
            heard_ms: now_ms,
            stream: None,
            quickest: None,
            report: None,
            is_wanted: false,
            differing: 0,
            pull: None,
            novelty: None,
            is_vain: false,
            wait_ms: WAIT_MS_MIN,
            rest_until_ms: 0,
        }
    }

    /// Whether nothing was heard of it for a while.
    pub(super) fn is_silent(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.heard_ms) > SILENT_MS
    }

    /// The time that a realtime message of this start was held up. A host started again has another clock.
    pub(super) fn held_us(&mut self, epoch: u32, took_us: i64, now_us: u64) -> u64 {
        if self.quickest.is_none_or(|(known, _)| known != epoch) {
            self.quickest = None;
        }
        let (_, quickest) = self.quickest.get_or_insert_with(|| (epoch, Quickest::new(took_us, now_us)));
        quickest.held_us(took_us, now_us)
    }

    /// A message of its stream bears this version, or a report names it. What follows in order needs no
    /// question, and neither does what was overtaken on its way; everything else does: a gap, another start,
    /// a version that makes no sense. The stream goes on from there, so that no forged version holds it up.
    pub(super) fn note(&mut self, epoch: u32, version: u64, is_report: bool) {
        let follows = |last: u64| {
            let is_next = !is_report && last.checked_add(1) == Some(version);
            is_next || (version <= last && last - version <= OVERTAKEN_MAX)
        };
        match self.stream {
            Some((known, last)) if known == epoch && follows(last) => {
                self.stream = Some((epoch, last.max(version)));
            }
            _ => {
                self.stream = Some((epoch, version));
                self.is_wanted = true;
            }
        }
    }

    /// A report came, and tells whether the node holds what is held here.
    pub(super) fn compare(&mut self, differs: bool) {
        if !differs {
            (self.is_wanted, self.differing, self.wait_ms) = (false, 0, WAIT_MS_MIN);
            (self.novelty, self.is_vain, self.rest_until_ms) = (None, false, 0);
            return;
        }
        self.differing = self.differing.saturating_add(1);
        self.is_wanted |= self.differing >= DIFFERING_MAX;
    }

    /// All was told. What brought nothing new is not repeated soon.
    pub(super) fn finish(&mut self, now_ms: u64) {
        self.differing = 0;
        let took_ms = self.pull.as_ref().map_or(0, |pull| now_ms.saturating_sub(pull.begun_ms));
        if !self.rest(now_ms) {
            let vain_ms = took_ms.saturating_mul(VAIN_TIMES).min(VAIN_MS_MAX);
            self.rest_until_ms = self.rest_until_ms.max(now_ms.saturating_add(vain_ms));
        }
    }

    /// Notes that the node did not answer, or that what it tells finds no room: it is asked again later.
    pub(super) fn fail(&mut self, now_ms: u64) {
        self.is_wanted = true;
        self.rest(now_ms);
    }

    /// Ends asking. Whether it was worth it, as far as can be told before what came is held.
    fn rest(&mut self, now_ms: u64) -> bool {
        self.novelty = self.pull.take().and_then(|pull| pull.novelty);
        let was_worth_it = self.novelty.is_some() && !self.is_vain;
        if was_worth_it {
            self.wait_ms = WAIT_MS_MIN;
        }
        self.rest_until_ms = now_ms.saturating_add(self.wait_ms);
        self.wait_ms = (2 * self.wait_ms).min(WAIT_MS_MAX);
        was_worth_it
    }

    /// Whether it is to be asked now.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.is_wanted && self.pull.is_none() && self.rest_until_ms <= now_ms && !self.is_silent(now_ms)
    }
}

/// All of them, by address.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    known: BTreeMap<u16, Node>,
    /// The one that was asked last.
    asked: u16,
}

impl Nodes {
    pub(super) fn get_mut(&mut self, address: u16) -> Option<&mut Node> {
        self.known.get_mut(&address)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Node)> {
        self.known.iter().map(|(address, node)| (*address, node))
    }

    /// The node that was heard; `None` if there are too many, and all of them speak.
    pub(super) fn hear(&mut self, address: u16, now_ms: u64) -> Option<&mut Node> {
        if !self.known.contains_key(&address) && self.known.len() >= NODES_MAX {
            let longest = self.known.iter().min_by_key(|(_, node)| node.heard_ms);
            let silent = longest.filter(|(_, node)| node.is_silent(now_ms)).map(|(address, _)| *address)?;
            self.known.remove(&silent);
        }
        let node = self.known.entry(address).or_insert_with(|| Node::new(now_ms));
        node.heard_ms = now_ms;
        Some(node)
    }

    /// Forgets who was silent for long.
    pub(super) fn tidy(&mut self, now_ms: u64) {
        self.known.retain(|_, node| now_ms.saturating_sub(node.heard_ms) <= FORGOTTEN_MS);
    }

    /// Nodes that are being asked.
    pub(super) fn asking(&self) -> usize {
        self.known.values().filter(|node| node.pull.is_some()).count()
    }

    /// The next one to be asked: each in its turn.
    pub(super) fn next_due(&mut self, now_ms: u64) -> Option<u16> {
        let due = |(address, node): (&u16, &Node)| node.is_due(now_ms).then_some(*address);
        let behind = self.asked.saturating_add(1);
        let next = self.known.range(behind..).find_map(due);
        let next = next.or_else(|| self.known.range(..behind).find_map(due))?;
        self.asked = next;
        Some(next)
    }

    /// The node for which this transaction is under way.
    pub(super) fn of_transaction(&mut self, number: u64) -> Option<u16> {
        let is_it = |node: &Node| node.pull.as_ref().is_some_and(|pull| pull.number == Some(number));
        self.known.iter().find(|(_, node)| is_it(node)).map(|(address, _)| *address)
    }

    /// Nodes whose next question could not begin.
    pub(super) fn held_up(&self) -> Vec<u16> {
        let is_held_up = |node: &Node| node.pull.as_ref().is_some_and(|pull| pull.number.is_none());
        self.known.iter().filter(|(_, node)| is_held_up(node)).map(|(address, _)| *address).collect()
    }

    /// When the next rest ends of a node that is to be asked.
    pub(super) fn due_ms(&self, now_ms: u64) -> Option<u64> {
        let waiting = |node: &&Node| node.is_wanted && node.pull.is_none() && !node.is_silent(now_ms);
        self.known.values().filter(waiting).map(|node| node.rest_until_ms).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        let mut node = Node::new(0);
        node.note(1, 5, false);
        node.is_wanted = false;
        node
    }

    #[test]
    fn what_does_not_follow_is_asked_for() {
        let mut first = Node::new(0);
        first.note(1, 0, true);
        assert!(first.is_wanted, "a node that is heard for the first time");
        for (epoch, version, is_report, is_wanted) in [
            (1, 6, false, false),
            (1, 5, true, false),
            (1, 3, false, false),
            (1, 7, false, true),
            (1, 6, true, true),
            (2, 1, false, true),
            (1, 0, false, false),
            (1, u64::MAX, false, true),
        ] {
            let mut node = node();
            node.note(epoch, version, is_report);
            assert_eq!(node.is_wanted, is_wanted, "{epoch} {version} {is_report}");
        }
    }

    #[test]
    fn an_absurd_version_neither_overflows_nor_holds_the_stream_up() {
        let mut node = node();
        node.note(1, u64::MAX, false);
        node.note(1, u64::MAX, false);
        node.is_wanted = false;
        node.note(1, 6, false);
        assert!(node.is_wanted);
        node.is_wanted = false;
        node.note(1, 7, false);
        assert!(!node.is_wanted);
    }

    #[test]
    fn who_does_not_answer_is_asked_less_and_less() {
        let mut node = node();
        let mut now_ms = 0;
        let mut rests = Vec::new();
        for _ in 0..9 {
            node.fail(now_ms);
            rests.push(node.rest_until_ms - now_ms);
            now_ms = node.rest_until_ms;
        }
        assert_eq!(rests, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        node.compare(false);
        node.fail(now_ms);
        assert_eq!(node.rest_until_ms - now_ms, 100);
    }

    #[test]
    fn asking_in_vain_takes_a_tenth_of_the_time_at_most() {
        let novelty =
            || Novelty { site: 0, topic: "a".to_owned(), stamp: Stamp { ms: 1, node: 1, sequence: 1 } };
        let pull = |begun_ms, novelty| Pull {
            sites: VecDeque::new(),
            cursor: String::new(),
            number: None,
            pages: 1,
            begun_ms,
            novelty,
        };
        let mut node = node();
        let mut rest_ms = |is_vain, novelty| {
            node.is_vain = is_vain;
            node.pull = Some(pull(1_000, novelty));
            node.finish(3_000);
            node.rest_until_ms - 3_000
        };
        assert_eq!((rest_ms(false, Some(novelty())), rest_ms(false, None)), (100, 20_000));
        // The update came before, and is still not held.
        assert_eq!(rest_ms(true, Some(novelty())), 20_000);
        node.compare(false);
        assert!(node.rest_until_ms == 0 && !node.is_vain && node.novelty.is_none());
    }

    #[test]
    fn nodes_are_bounded_and_who_is_silent_makes_room() {
        let mut nodes = Nodes::default();
        assert!((0..NODES_MAX as u16).all(|address| nodes.hear(address, 0).is_some()));
        assert!(nodes.hear(999, SILENT_MS).is_none() && nodes.hear(7, SILENT_MS).is_some());
        assert!(nodes.hear(999, SILENT_MS + 1).is_some() && nodes.get_mut(7).is_some());
        nodes.tidy(SILENT_MS + FORGOTTEN_MS);
        assert_eq!(nodes.iter().map(|(address, _)| address).collect::<Vec<_>>(), [7, 999]);
    }
}
