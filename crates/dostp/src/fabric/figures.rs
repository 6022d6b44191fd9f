//! Figures of a fabric for metrics and pages: counts of its messages and updates, and the nodes it knows.

use super::report::NodeLoad;
use super::{Fabric, Held, Now};

/// Everything counts from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FabricCounts {
    /// Messages with updates that were told to all.
    pub messages_told: u64,
    /// Messages with updates that came.
    pub messages_heard: u64,
    /// Messages that had a deadline.
    pub realtime_told: u64,
    /// Messages with a deadline that came.
    pub realtime_heard: u64,
    /// Messages that came too late.
    pub late: u64,
    /// Updates of this node that were told.
    pub records_told: u64,
    /// Updates of other nodes that were taken.
    pub taken: u64,
    /// Updates that were known already, or older.
    pub known: u64,
    /// Updates that found no room, and are asked for again.
    pub no_room: u64,
    /// Updates without a meaning here.
    pub refused: u64,
    /// Updates whose stamps are too far ahead.
    pub ahead: u64,
    /// Updates of sites that are not here.
    pub unknown_site: u64,
    /// Updates of this node that are too long to be told.
    pub too_long: u64,
    /// Topics that were not noted because there are too many.
    pub full: u64,
    /// Messages that are none of this format.
    pub malformed: u64,
    /// Messages of another port, or of this node itself.
    pub foreign: u64,
    /// Messages of nodes beyond those that may be known.
    pub nodes_full: u64,
    /// Questions asked.
    pub asked: u64,
    /// Pages that came as answers.
    pub pages_heard: u64,
    /// Questions that nobody answered.
    pub unanswered: u64,
    /// Questions of others that were answered.
    pub answered: u64,
    /// Questions of others beyond those that are answered in a second.
    pub unanswered_here: u64,
}

/// A node as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricNode {
    /// The address of the node.
    pub address: u16,
    /// How busy it is, if it has said so.
    pub load: Option<NodeLoad>,
    /// How many topics of its sites have a value.
    pub topics: u64,
    /// For how long nothing was heard of it.
    pub silent_ms: u64,
    /// Whether that is longer than usual.
    pub is_silent: bool,
    /// Whether it is being asked for values, or is to be.
    pub is_behind: bool,
}

impl<H: Held> Fabric<H> {
    /// What was counted.
    pub fn counts(&self) -> &FabricCounts {
        &self.counts
    }

    /// Nodes that are known, by address.
    pub fn nodes(&self, now: Now) -> Vec<FabricNode> {
        let node = |(address, node): (u16, &super::nodes::Node)| FabricNode {
            address,
            load: node.report.as_ref().map(|report| report.load.clone()),
            topics: node
                .report
                .iter()
                .flat_map(|report| &report.sites)
                .map(|site| u64::from(site.topics))
                .sum(),
            silent_ms: now.ms.saturating_sub(node.heard_ms),
            is_silent: node.is_silent(now.ms),
            is_behind: node.is_wanted || node.pull.is_some(),
        };
        self.nodes.iter().map(node).collect()
    }

    /// Topics with a value, and ends of topics that are remembered, of all sites.
    pub fn topics(&self) -> (usize, usize) {
        let held = self.sites.iter().map(|site| site.table.held()).sum();
        (held, self.sites.iter().map(|site| site.table.marks()).sum())
    }

    /// The digest of a site's values: equal on nodes that hold the same.
    pub fn digest(&self, site: usize) -> Option<u64> {
        self.sites.get(site).map(|site| site.table.digest())
    }
}
