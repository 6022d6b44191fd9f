//! A site's live data as other nodes reach it: what they are told, and what they publish.
//!
//! It must never give their publications another way than the queue of all.

use std::sync::Arc;

use staunch_live::Publication;

use super::follower::{Letters, LiveFollowed};
use super::queue::{Publisher, Publishing};
use super::shared::LiveShared;
use super::turns::LineClient;

/// There is no room for a publication at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPublished;

impl LiveShared {
    /// Letters of this site go there as well, behind what it holds already.
    pub(super) fn follow(&self, letters: &Arc<Letters>) {
        letters.put(self.number, LiveFollowed::Introduction(self.number, self.introduction.clone()));
        self.follower.lead_to(letters);
    }

    /// Has the writer tell everything anew.
    pub(super) fn introduce_again(&self) {
        self.queue.want_introduction();
    }

    /// Publishes what another node told, by the queue of all publications.
    ///
    /// # Errors
    /// The queue is full.
    pub fn publish_foreign(&self, publication: Publication) -> Result<(), NotPublished> {
        let (to, client) = (Publisher::Node, LineClient::Node);
        let lines = vec![(0, publication)];
        let publishing = Publishing { lines, fault: None, key: None, to, client };
        self.queue.publish(publishing).map_err(|_| NotPublished)
    }
}
