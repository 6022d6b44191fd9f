//! Last values of topics, as whoever follows the hub's letters hears of them.
//!
//! It owns names of topics by their places. It must never hold an update.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::letter::{Letter, News, TopicFacts};
use crate::name::TopicName;
use crate::topic::{Kind, TopicId};
use crate::update::Update;

/// What a letter tells of values.
#[derive(Debug)]
pub enum FollowedValue<'a> {
    /// Topics have a new value; the first one is a log or not.
    Updated {
        /// The update that carries the value.
        update: &'a Arc<Update>,
        /// Whether its topic is a log.
        is_log: bool,
    },
    /// A topic was forgotten.
    Forgotten(TopicName),
}

/// Names and last values of topics, as letters tell them.
#[derive(Debug, Default)]
pub struct Following {
    topics: HashMap<TopicId, (TopicName, Kind)>,
}

impl Following {
    /// A follower that has heard nothing yet.
    pub fn new() -> Self {
        Self { topics: HashMap::new() }
    }

    /// Goes through a letter. An introduction is told to a new value of this type.
    pub fn take(&mut self, letter: &Letter, tell: &mut dyn FnMut(FollowedValue<'_>)) {
        for news in letter.news.iter() {
            match news {
                News::Topic(TopicFacts { id, name, kind }) => {
                    self.topics.insert(*id, (name.clone(), *kind));
                }
                News::Update(update, _) => {
                    let (first, _) = &update.topics[0];
                    let is_log = self.topics.get(first).is_some_and(|(_, kind)| *kind == Kind::Log);
                    tell(FollowedValue::Updated { update, is_log });
                    // An update may outlive one of its topics, whose value it is not any more.
                    for (id, name) in &update.topics {
                        if !self.topics.contains_key(id) {
                            tell(FollowedValue::Forgotten(name.clone()));
                        }
                    }
                }
                News::Forgotten(place) => {
                    if let Some((name, _)) = self.topics.remove(&place.topic) {
                        tell(FollowedValue::Forgotten(name));
                    }
                }
                News::Dropped(_) | News::Form(..) | News::FormsDropped(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Hub, HubSettings, Publication};
    use crate::topic::TopicRules;
    use crate::update::Value;
    use crate::version::Epoch;

    #[test]
    fn a_topic_that_was_forgotten_has_no_value_in_an_introduction() {
        let mut settings = HubSettings::default();
        settings.add_rules("short", TopicRules { keep_ms: 1, ..TopicRules::default() }).unwrap();
        let mut hub = Hub::new(settings, Epoch(1));
        let name = |name| TopicName::new(name).unwrap();
        let both = Publication::new(name("short"), Value::of_bytes(b"1"));
        hub.publish(Publication { topics: vec![name("short"), name("long")], ..both }, 0).unwrap();
        hub.tick(10);
        let held = |hub: &Hub| {
            let mut held = std::collections::BTreeSet::new();
            Following::new().take(&hub.introduction(), &mut |followed| match followed {
                FollowedValue::Updated { update, .. } => {
                    held.extend(update.topics().map(|topic| topic.as_str().to_owned()));
                }
                FollowedValue::Forgotten(topic) => assert!(held.remove(topic.as_str())),
            });
            held.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(held(&hub), ["long"]);
        // Once it has begun anew it has a value again.
        hub.publish(Publication::new(name("short"), Value::of_bytes(b"2")), 11).unwrap();
        assert_eq!(held(&hub), ["long", "short"]);
    }
}
