//! What hub and clients of the simulation both know. It must never hold what only one of them knows.

use crate::name::TopicName;
use crate::version::Epoch;

pub(super) const EPOCH: Epoch = Epoch(0xe);
/// Topics by the kind that their first letter names; those with `p` are read by grant.
pub(super) const TOPICS: &[&str] = &["v.a", "v.b", "l.a", "l.b", "j.a", "v.p", "j.p"];

pub(super) fn name(text: &str) -> TopicName {
    TopicName::new(text).unwrap()
}
