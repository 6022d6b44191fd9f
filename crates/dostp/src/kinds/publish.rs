//! Publishing from one node to all: versions of topics, one broadcast frame each.
//!
//! Contract: a subscriber never goes back to an older version; where versions are missing it is told how
//! many, and asks the publisher by a transaction if it needs them. Nothing is repeated.

use std::collections::HashMap;

use super::{PUBLISH, Sender, VERSION};

/// Bytes before the value: kind, version, two zeros, epoch (4 bytes), topic (8), version (8).
const HEAD_BYTES: usize = 24;

/// Topics one subscriber remembers, of all publishers: some 4 MiB with the table around them.
const TOPICS_MAX: usize = 65_536;

/// The sending side.
#[derive(Debug)]
pub struct Publisher {
    epoch: u32,
    versions: HashMap<u64, u64>,
}

impl Publisher {
    /// `epoch` has to be larger after each start of the publisher: seconds since 1970 will do.
    pub fn new(epoch: u32) -> Self {
        Self { epoch, versions: HashMap::new() }
    }

    /// The start of this publisher.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The payload that publishes the next version of a topic.
    pub fn publish(&mut self, topic: u64, value: &[u8]) -> Vec<u8> {
        let version = self.versions.entry(topic).or_default();
        *version += 1;
        let mut payload = vec![PUBLISH, VERSION, 0, 0];
        payload.extend_from_slice(&self.epoch.to_be_bytes());
        payload.extend_from_slice(&topic.to_be_bytes());
        payload.extend_from_slice(&version.to_be_bytes());
        payload.extend_from_slice(value);
        payload
    }
}

/// Reads a payload: epoch, topic, version and value. `None` if it is of no publication.
pub fn read(payload: &[u8]) -> Option<(u32, u64, u64, &[u8])> {
    let (head, value) = payload.split_first_chunk::<HEAD_BYTES>()?;
    if head[..2] != [PUBLISH, VERSION] {
        return None;
    }
    let number = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let epoch = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    Some((epoch, number(8), number(16), value))
}

/// What a payload brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update<'a> {
    /// A newer version.
    New {
        /// The publisher's start.
        epoch: u32,
        /// The number of the topic.
        topic: u64,
        /// The version of the value.
        version: u64,
        /// Versions between the last one known and this one.
        missing: u64,
        /// The bytes that were published.
        value: &'a [u8],
    },
    /// A version that is known, or an older one.
    Old,
    /// No room for one more topic.
    Full,
    /// No payload of this kind.
    Foreign,
}

/// The receiving side.
#[derive(Debug, Default)]
pub struct Subscriber {
    known: HashMap<(Sender, u64), (u32, u64)>,
}

impl Subscriber {
    /// Takes a payload.
    pub fn take<'a>(&mut self, from: Sender, payload: &'a [u8]) -> Update<'a> {
        let Some((epoch, topic, version, value)) = read(payload) else { return Update::Foreign };
        let key = (from, topic);
        let known = self.known.get(&key).copied();
        if known.is_some_and(|known| (epoch, version) <= known) {
            return Update::Old;
        }
        if known.is_none() && self.known.len() >= TOPICS_MAX {
            return Update::Full;
        }
        self.known.insert(key, (epoch, version));
        // A subscriber that hears of a topic for the first time misses nothing that it asked for.
        let missing = match known {
            Some((known_epoch, last)) if known_epoch == epoch => version - last - 1,
            Some(_) => version.saturating_sub(1),
            None => 0,
        };
        Update::New { epoch, topic, version, missing, value }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_go_forward_and_gaps_are_told() {
        let (mut publisher, mut subscriber) = (Publisher::new(5), Subscriber::default());
        let payloads: Vec<Vec<u8>> = (0..5).map(|value| publisher.publish(9, &[value])).collect();
        let from = (7, 1);
        let missing = |update| if let Update::New { missing, .. } = update { Some(missing) } else { None };
        assert_eq!(missing(subscriber.take(from, &payloads[0])), Some(0));
        assert_eq!(missing(subscriber.take(from, &payloads[3])), Some(2));
        assert_eq!(subscriber.take(from, &payloads[2]), Update::Old);
        assert_eq!(missing(subscriber.take(from, &payloads[4])), Some(0));
        let mut later = Publisher::new(6);
        let first = later.publish(9, b"");
        assert_eq!(missing(subscriber.take(from, &first)), Some(0));
        assert_eq!(subscriber.take(from, &payloads[4]), Update::Old);
        assert_eq!(subscriber.take(from, &payloads[4][..20]), Update::Foreign);
    }

    proptest! {
        /// However payloads come, a topic never goes back, and versions and gaps add up.
        #[test]
        fn it_never_goes_back(order in prop::collection::vec(0_usize..40, 1..200)) {
            let mut publisher = Publisher::new(1);
            let payloads: Vec<Vec<u8>> = (0..40).map(|number| publisher.publish(number % 3, b"")).collect();
            let mut subscriber = Subscriber::default();
            let mut last = HashMap::new();
            for place in order {
                let update = subscriber.take((1, 1), &payloads[place]);
                if let Update::New { topic, version, missing, .. } = update {
                    let former = last.insert(topic, version);
                    prop_assert!(former < Some(version));
                    prop_assert_eq!(missing, former.map_or(0, |former| version - former - 1));
                }
            }
        }
    }
}
