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
        /// The update.
        update: &'a Arc<Update>,
        /// Whether its topic is a log.
        is_log: bool,
    },
    /// A topic was forgotten.
    Forgotten(TopicName),
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Following {
    topics: HashMap<TopicId, (TopicName, Kind)>,
}

impl Following {
    /// One that has heard nothing yet.
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
                }
                News::Forgotten(place) => {
                    if let Some((name, _)) = self.topics.remove(&place.topic) {
                        tell(FollowedValue::Forgotten(name));
                    }
                }
                News::Dropped(_) | News::Form(..) => {}
            }
        }
    }
}
