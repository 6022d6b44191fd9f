//! Stamps of updates, where several nodes publish to the same topics.
//!
//! It must never let an update of another node replace a newer one.

use super::Hub;
use super::publication::{Publication, PublishFault};
use crate::name::TopicName;
use crate::stamp::UpdateStamp;
use crate::update::Update;

impl Hub {
    /// Tells the time of day, in milliseconds since 1970, for the stamps of what is published next.
    pub fn set_wall_ms(&mut self, wall_ms: u64) {
        self.wall_ms = wall_ms;
    }

    /// Leaves out the topics of another node's update that have newer ones. One that is further ahead than
    /// clocks may be is not newer: nobody could publish to its topic until then.
    pub(super) fn leave_newer(&self, publication: &mut Publication) -> Result<(), PublishFault> {
        let Some(stamp) = publication.stamp else { return Ok(()) };
        let counts = |held: &UpdateStamp| !held.is_ahead(self.wall_ms);
        publication.topics.retain(|topic| {
            let held_back = self.held_back.stamp(topic).filter(counts);
            self.last_stamp(topic).filter(counts).max(held_back).is_none_or(|last| last < stamp)
        });
        if publication.topics.is_empty() { Err(PublishFault::Outdated) } else { Ok(()) }
    }

    /// The stamp of an update that is published here.
    pub(super) fn stamp_of_own(&self, topics: &[TopicName], number: u64) -> Option<UpdateStamp> {
        let node = self.settings.node?;
        let counts = |held: &UpdateStamp| !held.is_ahead(self.wall_ms);
        let last = topics.iter().filter_map(|topic| self.last_stamp(topic)).filter(counts).max();
        Some(UpdateStamp::of_own(self.wall_ms, last, node, number))
    }

    /// The stamp of an update that was kept without one: any other is newer.
    pub(super) fn stamp_of_kept(&self, number: u64) -> Option<UpdateStamp> {
        Some(UpdateStamp { ms: 0, node: self.settings.node?, sequence: number as u32 })
    }

    /// How old an update of another node is when it comes: its topics are not kept for longer than elsewhere.
    pub(super) fn age_ms(&self, update: &Update) -> u64 {
        update.stamp.filter(|_| update.is_foreign).map_or(0, |stamp| stamp.age_ms(self.wall_ms))
    }

    fn last_stamp(&self, topic: &TopicName) -> Option<UpdateStamp> {
        self.shelf.find(topic)?.1.ring.last()?.update.stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::HubSettings;
    use crate::topic::TopicRules;
    use crate::update::Value;
    use crate::version::Epoch;

    fn hub() -> Hub {
        let mut settings = HubSettings { node: Some(1), ..HubSettings::default() };
        settings.add_rules("slow.*", TopicRules { every_ms: 100, ..TopicRules::default() }).unwrap();
        Hub::new(settings, Epoch(1))
    }

    fn name(topic: &str) -> TopicName {
        TopicName::new(topic).unwrap()
    }

    fn own(topic: &str, value: &str) -> Publication {
        Publication::new(name(topic), Value::of_bytes(value.as_bytes()))
    }

    fn foreign(topic: &str, value: &str, ms: u64) -> Publication {
        Publication { stamp: Some(UpdateStamp { ms, node: 9, sequence: 0 }), ..own(topic, value) }
    }

    fn held(hub: &Hub, topic: &str) -> (Vec<u8>, u64, bool) {
        let (_, update) = hub.value(&name(topic)).unwrap();
        (update.value.bytes().to_vec(), update.stamp.unwrap().ms, update.is_foreign)
    }

    #[test]
    fn the_greater_stamp_counts_whatever_comes_last() {
        let mut hub = hub();
        hub.set_wall_ms(1_000);
        hub.publish(own("a", "own"), 0).unwrap();
        assert_eq!(hub.publish(foreign("a", "old", 1_000 - 1), 0), Err(PublishFault::Outdated));
        hub.publish(foreign("a", "new", 5_000), 0).unwrap();
        assert_eq!(held(&hub, "a"), (b"new".to_vec(), 5_000, true));
        hub.publish(own("a", "newest"), 0).unwrap();
        assert_eq!(held(&hub, "a"), (b"newest".to_vec(), 5_001, false));
        // Of an update of several topics those are left out that have newer values.
        let several = Publication { topics: vec![name("a"), name("b")], ..foreign("a", "both", 2_000) };
        hub.publish(several, 0).unwrap();
        assert_eq!((held(&hub, "a").0, held(&hub, "b").0), (b"newest".to_vec(), b"both".to_vec()));
    }

    #[test]
    fn stamps_do_not_run_ahead_of_the_clock_however_much_is_published() {
        let mut hub = hub();
        let mut last = None;
        for round in 0..200_000_u64 {
            // A hundred updates in a millisecond; those of a node with a greater number come between.
            let wall_ms = 1_000 + round / 100;
            hub.set_wall_ms(wall_ms);
            hub.publish(own("a", "own"), 0).unwrap();
            let stamp = hub.value(&name("a")).unwrap().1.stamp;
            assert!(stamp > last && stamp.unwrap().ms <= wall_ms + 2, "{stamp:?} at {wall_ms}");
            last = stamp;
            if round % 1_000 == 0 {
                hub.publish(foreign("a", "new", wall_ms + 1), 0).unwrap();
                last = hub.value(&name("a")).unwrap().1.stamp;
            }
        }
    }

    #[test]
    fn what_a_wrong_clock_has_stamped_gives_way_once_the_clock_is_right() {
        let mut hub = hub();
        hub.set_wall_ms(3_600_000);
        hub.publish(own("a", "of tomorrow"), 0).unwrap();
        hub.publish(own("slow.a", "first"), 0).unwrap();
        hub.publish(own("slow.a", "of tomorrow"), 1).unwrap();
        hub.set_wall_ms(1_000);
        hub.publish(foreign("a", "of today", 900), 2).unwrap();
        hub.publish(foreign("slow.a", "of today", 900), 3).unwrap();
        hub.tick(100);
        for topic in ["a", "slow.a"] {
            assert_eq!(held(&hub, topic), (b"of today".to_vec(), 900, true));
        }
        // What is ahead by no more than clocks may be counts.
        hub.publish(foreign("a", "a minute ahead", 61_000), 101).unwrap();
        assert_eq!(hub.publish(foreign("a", "of today", 1_000), 102), Err(PublishFault::Outdated));
    }

    #[test]
    fn what_comes_late_is_not_kept_for_longer_than_where_it_was_published() {
        let mut settings = HubSettings { node: Some(1), ..HubSettings::default() };
        settings.add_rules("*", TopicRules { keep_ms: 100_000, ..TopicRules::default() }).unwrap();
        let mut hub = Hub::new(settings, Epoch(1));
        hub.set_wall_ms(1_000_000);
        let mut publish = |topic, ms| hub.publish(foreign(topic, "value", ms), 1_000).unwrap();
        // Clocks may differ by a minute: the first two may be new.
        for (topic, ms) in [("new", 1_000_000), ("maybe", 940_000), ("half", 890_000), ("old", 840_000)] {
            publish(topic, ms);
        }
        hub.publish(own("own", "value"), 1_000).unwrap();
        let mut is_kept = |now_ms| {
            hub.tick(now_ms);
            ["new", "maybe", "half", "old", "own"].map(|topic| hub.value(&name(topic)).is_some())
        };
        assert_eq!(is_kept(1_001), [true, true, true, false, true]);
        assert_eq!(is_kept(51_000), [true, true, false, false, true]);
        assert_eq!(is_kept(100_999), [true, true, false, false, true]);
        assert_eq!(is_kept(101_000), [false; 5]);
    }

    #[test]
    fn stamps_outlive_a_restart_and_what_has_none_is_older_than_all() {
        let restored = |from: &Hub| {
            let mut bytes = Vec::new();
            crate::write_state("", &from.introduction(), &mut bytes).unwrap();
            crate::write_end(&mut bytes).unwrap();
            let kept = crate::read_states(&mut &bytes[..]).unwrap().remove("").unwrap();
            Hub::restore(HubSettings { node: Some(1), ..HubSettings::default() }, kept, Epoch(1), 0)
        };
        let mut stamped = hub();
        stamped.publish(foreign("a", "new", 5_000), 0).unwrap();
        let mut again = restored(&stamped);
        assert_eq!(held(&again, "a").1, 5_000);
        assert_eq!(again.publish(foreign("a", "old", 4_999), 0), Err(PublishFault::Outdated));
        // A hub that had no other nodes.
        let mut alone = Hub::new(HubSettings::default(), Epoch(1));
        alone.publish(own("a", "1"), 0).unwrap();
        let mut again = restored(&alone);
        assert_eq!(held(&again, "a").1, 0);
        again.publish(foreign("a", "2", 1), 0).unwrap();
        assert_eq!(held(&again, "a").0, b"2");
    }

    #[test]
    fn what_is_held_back_is_replaced_by_what_is_newer() {
        let mut hub = hub();
        hub.set_wall_ms(1_000);
        hub.publish(own("slow.a", "first"), 0).unwrap();
        hub.publish(foreign("slow.a", "new", 3_000), 1).unwrap();
        assert_eq!(hub.publish(foreign("slow.a", "old", 2_000), 2), Err(PublishFault::Outdated));
        hub.tick(100);
        assert_eq!(held(&hub, "slow.a").0, b"new");
        hub.publish(own("slow.a", "own"), 101).unwrap();
        assert_eq!(hub.publish(foreign("slow.a", "old", 3_000), 102), Err(PublishFault::Outdated));
        hub.tick(201);
        assert_eq!(held(&hub, "slow.a"), (b"own".to_vec(), 3_001, false));
        hub.publish(own("slow.a", "own"), 202).unwrap();
        hub.publish(foreign("slow.a", "newer than what waits", 4_000), 203).unwrap();
        hub.tick(302);
        assert_eq!(held(&hub, "slow.a"), (b"newer than what waits".to_vec(), 4_000, true));
    }
}
