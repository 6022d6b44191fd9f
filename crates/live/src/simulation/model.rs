//! What each reader may have seen.
//!
//! It owns the promises, as the documents state them. It must never use the code that keeps them.

use std::collections::BTreeMap;

use super::client::{Client, ReceivedEvent};
use crate::update::Update;

/// Everything that was published.
#[derive(Default)]
pub(super) struct Model {
    topics: BTreeMap<String, Vec<Published>>,
}

struct Published {
    number: u64,
    value: serde_json::Value,
    private: bool,
    shared: bool,
}

impl Model {
    pub(super) fn published(&mut self, update: &Update) {
        let bytes = update.value.bytes();
        let value = match &update.value {
            crate::update::Value::Json(_) => serde_json::from_slice(bytes).unwrap(),
            _ => serde_json::Value::from(std::str::from_utf8(bytes).unwrap()),
        };
        let shared = update.topics().count() > 1;
        for topic in update.topics() {
            let all = self.topics.entry(topic.to_string()).or_default();
            let (number, private) = (update.number, update.private);
            all.push(Published { number, value: value.clone(), private, shared });
        }
    }

    fn find(&self, topic: &str, number: u64) -> Option<&Published> {
        self.topics.get(topic)?.iter().find(|published| published.number == number)
    }

    pub(super) fn check(&self, client: &Client, left_early: bool, number: u64) -> Result<(), String> {
        let told = &client.told;
        self.check_order(client).map_err(|broken| format!("{broken}: {told:?}"))?;
        for (topic, from) in &client.promised_from {
            let covered = client.interest.covers(&super::facts::name(topic));
            let checked = match (covered, &topic[..1]) {
                (false, _) => Ok(()),
                (true, "l") => self.check_log(client, topic, *from, left_early),
                (true, _) if left_early => Ok(()),
                (true, _) => self.check_last(client, topic, *from),
            };
            checked.map_err(|broken| {
                let way = (client.transport, client.coding, client.cuts, &client.interest);
                format!("{topic} from {from}: {broken} (now {number}, {way:?}): {told:?}")
            })?;
        }
        Ok(())
    }

    /// Each update once, in order, and nothing that may not be read; documents are what was published.
    fn check_order(&self, client: &Client) -> Result<(), String> {
        let mut last = 0;
        let mut documents: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        for told in &client.told {
            let ReceivedEvent::Update { number, topic, data, patch } = told else { continue };
            if *number <= last {
                return Err(format!("{number} after {last}"));
            }
            last = *number;
            let published = self.find(topic, *number).ok_or(format!("{number} was never published"))?;
            if published.private && !client.granted {
                return Err(format!("{number} is private"));
            }
            let document = documents.entry(topic).or_default();
            match (data, patch) {
                (Some(data), _) => *document = data.clone(),
                (_, Some(patch)) => crate::merge_patch::merge(document, patch.clone()),
                _ => return Err(format!("{number} says nothing")),
            }
            if *document != published.value {
                return Err(format!("{number} is {document}, was {}", published.value));
            }
        }
        Ok(())
    }

    fn received(&self, client: &Client, topic: &str) -> Vec<u64> {
        let numbers = client.told.iter().filter_map(|told| match told {
            ReceivedEvent::Update { number, .. } => Some(*number),
            ReceivedEvent::Gap { .. } => None,
        });
        numbers.filter(|number| self.find(topic, *number).is_some()).collect()
    }

    /// All that is promised of a log came, or was told to be missing.
    fn check_log(&self, client: &Client, topic: &str, from: u64, left_early: bool) -> Result<(), String> {
        let received = self.received(client, topic);
        let to = if left_early { received.last().copied().unwrap_or(0) } else { u64::MAX };
        let promised: Vec<&Published> = self
            .topics
            .get(topic)
            .map_or(&[][..], |all| all)
            .iter()
            .filter(|published| published.number > from && published.number <= to)
            .collect();
        let readable = promised.iter().filter(|published| client.granted || !published.private);
        let lost = readable.filter(|published| !received.contains(&published.number));
        let lost = lost.map(|published| published.number).collect::<Vec<_>>();
        // What two topics share may come by one while it left the ring of the other.
        let shared = promised.iter().filter(|published| published.shared).count() as u64;
        let marked = client.told.iter().filter_map(|told| match told {
            ReceivedEvent::Gap { topic: of, missed } if of == topic => Some(*missed),
            _ => None,
        });
        let marked: u64 = marked.sum();
        // A client that was cut off may be told of some updates twice.
        let is_exact = client.transport.language().is_none() && client.cuts == 0 && !left_early;
        if marked < lost.len() as u64 || (is_exact && marked > lost.len() as u64 + shared) {
            return Err(format!("lost {lost:?}, told of {marked}"));
        }
        Ok(())
    }

    /// The last value came.
    fn check_last(&self, client: &Client, topic: &str, from: u64) -> Result<(), String> {
        let Some(last) = self.topics.get(topic).and_then(|all| all.last()) else { return Ok(()) };
        let readable = client.granted || !last.private;
        let received = self.received(client, topic).last().copied();
        if readable && last.number > from && received != Some(last.number) {
            return Err(format!("the last is {}, received {received:?}", last.number));
        }
        Ok(())
    }
}
