//! Settings of the hub, and which rules a topic has.
//!
//! It must never know which topics exist.

use crate::interest::Grants;
use crate::limits::{LIVE_MEMORY_BYTES_DEFAULT, TOPICS_MAX, VALUE_BYTES_DEFAULT};
use crate::name::{NameFault, TopicName};
use crate::pattern::Pattern;
use crate::topic::{Kind, TopicRules};

/// Settings of the hub.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// Rules of topics: the first pattern or name that fits counts.
    pub rules: Vec<(Grants, TopicRules)>,
    /// Most topics.
    pub topics_max: usize,
    /// Longest value.
    pub value_bytes_max: usize,
    /// Most bytes of values, rings and forms.
    pub live_memory_bytes: usize,
    /// How many workers read the letters.
    pub workers: usize,
    /// The number of this node, if there are others that publish to the same topics: then updates are
    /// stamped.
    pub node: Option<u16>,
}

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            topics_max: TOPICS_MAX,
            value_bytes_max: VALUE_BYTES_DEFAULT,
            live_memory_bytes: LIVE_MEMORY_BYTES_DEFAULT,
            workers: 1,
            node: None,
        }
    }
}

impl HubSettings {
    /// The rules of a topic.
    pub fn rules_of(&self, topic: &TopicName) -> TopicRules {
        self.rules_of_new(topic, false)
    }

    /// The rules of a topic that begins. Where no rule fits it is a log if `begins_log`.
    pub(crate) fn rules_of_new(&self, topic: &TopicName, begins_log: bool) -> TopicRules {
        let fits = self.rules.iter().find(|(names, _)| names.cover(topic));
        let kind = if begins_log { Kind::Log } else { Kind::default() };
        fits.map_or_else(|| TopicRules { kind, ..TopicRules::default() }, |(_, rules)| rules.clone())
    }

    /// Adds rules for the topics of a name or pattern.
    ///
    /// # Errors
    /// The text is neither.
    pub fn add_rules(&mut self, fits: &str, rules: TopicRules) -> Result<(), NameFault> {
        let (mut names, mut patterns) = (Vec::new(), Vec::new());
        match Pattern::is_pattern(fits) {
            true => patterns.push(Pattern::new(fits)?),
            false => names.push(TopicName::new(fits)?),
        }
        self.rules.push((Grants::new(names, patterns), rules));
        Ok(())
    }
}
