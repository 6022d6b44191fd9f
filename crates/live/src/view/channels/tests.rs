//! A reader whose channels come and go while everything is published, among others of the same groups.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::form::{Coding, Shape, Transport};
use crate::hub::{Hub, HubSettings, Publication};
use crate::reader::Marks;
use crate::topic::{Kind, TopicRules};
use crate::update::{Bytes, Value};
use crate::version::{Epoch, Version};
use crate::view::Joined;
use crate::wave::{Audience, Delivery, Waves};

const EPOCH: Epoch = Epoch(1);
const CHANNELS: [&str; 3] = ["v.a", "l.a", "l.b"];
/// The reader whose channels change; others stand behind it.
const OWN: u32 = 0;

fn form() -> Form {
    Form::new(Shape::Enveloped, Transport::Socket, Coding::Identity)
}

fn interest(channels: &[&str]) -> Arc<Interest> {
    Arc::new(Interest::read(channels.iter().copied(), Grants::default(), 10).unwrap())
}

/// The connections of a worker.
#[derive(Default)]
struct House {
    readers: Vec<Option<Reader>>,
    /// What came to the own reader: topic and number.
    came: BTreeMap<String, Vec<u64>>,
    /// Deliveries are under way until they are told to be over.
    is_slow: bool,
}

impl House {
    fn take(&mut self, slices: &[Bytes]) {
        for slice in slices {
            let start = slice.iter().position(|byte| *byte == b'{').unwrap();
            let message: serde_json::Value = serde_json::from_slice(&slice[start..]).unwrap();
            let push = &message["push"];
            let topic = push["channel"].as_str().unwrap().to_owned();
            self.came.entry(topic).or_default().push(push["pub"]["offset"].as_u64().unwrap());
        }
    }
}

impl Audience for House {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        self.readers[slot as usize].as_mut().unwrap()
    }

    fn deliver(&mut self, slot: u32, slices: &[Bytes]) -> Delivery {
        if slot == OWN {
            self.take(slices);
        }
        if self.is_slow { Delivery::UnderWay } else { Delivery::Sent }
    }
}

struct World {
    hub: Hub,
    view: View,
    waves: Waves,
    house: House,
    published: BTreeMap<String, Vec<u64>>,
    /// Where each channel was first, and where it is.
    first: BTreeMap<&'static str, u64>,
    held: Option<Arc<Interest>>,
}

impl World {
    fn new() -> Self {
        let mut settings = HubSettings::default();
        let log = TopicRules { kind: Kind::Log, ring_entries: 10_000, ..TopicRules::default() };
        settings.add_rules("l.*", log).unwrap();
        let house = House { readers: vec![None; 4], ..House::default() };
        let (hub, view, waves) = (Hub::new(settings, EPOCH), View::new(EPOCH, 10), Waves::new());
        let (published, first) = (BTreeMap::new(), BTreeMap::new());
        Self { hub, view, waves, house, published, first, held: None }
    }

    fn publish(&mut self, topic: &str) {
        let name = TopicName::new(topic).unwrap();
        let accepted = self.hub.publish(Publication::new(name, Value::of_bytes(b"x")), 0).unwrap();
        self.published.entry(topic.to_owned()).or_default().push(accepted.version.unwrap().number);
    }

    /// Mail goes both ways. Whether there was any.
    fn mail(&mut self) -> bool {
        self.view.take_requests().into_iter().for_each(|request| self.hub.request(0, request));
        let letter = self.hub.take_letter();
        letter.iter().for_each(|letter| self.view.read(letter));
        letter.is_some()
    }

    fn go(&mut self, readers_max: usize) -> bool {
        self.waves.go(&mut self.view, &mut self.house, readers_max)
    }

    fn sent(&mut self, slot: u32) {
        if self.house.readers[slot as usize].is_some() {
            self.waves.sent(&mut self.view, &mut self.house, slot);
        }
    }

    fn is_settled(&mut self) -> bool {
        self.sent(OWN);
        let reader = self.house.readers[OWN as usize].as_ref();
        reader.is_none_or(|reader| !reader.marks.has(Marks::SENDING) && !self.view.is_owed(reader))
    }

    fn reads(&self, channel: &str) -> bool {
        let reader = self.house.readers[OWN as usize].as_ref();
        reader.is_some_and(|reader| self.view.reads(reader, &interest(&[channel])))
    }

    /// Moves the own reader, as a worker does. Nothing happens while it is owed something.
    fn toggle(&mut self, channel: &'static str) {
        if !self.is_settled() {
            return;
        }
        let wanted = interest(&[channel]);
        let reads = self.reads(channel);
        let Some(own) = self.house.readers[OWN as usize] else {
            if self.begin(channel, &wanted) {
                self.join(OWN, &wanted);
            }
            return;
        };
        if !reads {
            if self.begin(channel, &wanted) {
                assert!(self.waves.widen(&mut self.view, &mut self.house, OWN, (&wanted, 0)));
            }
        } else if self.view.counts(&own).0 > 1 {
            assert!(self.waves.narrow(&mut self.view, &mut self.house, OWN, (&wanted, 0)));
        } else {
            self.waves.leave(&mut self.view, &mut self.house, OWN);
            self.house.readers[OWN as usize] = None;
        }
    }

    /// Hands over what a channel owes. Whether that exists.
    fn begin(&mut self, channel: &'static str, wanted: &Arc<Interest>) -> bool {
        let last = self.house.came.get(channel).and_then(|came| came.last()).copied();
        let number = self.first.get(channel).copied().max(last);
        let start = number.map_or(Start::Values, |number| Start::After(Version { epoch: EPOCH, number }));
        let held = self.held.take();
        let batch = match self.view.first((wanted, 0), form(), start) {
            First::Batch(batch) => batch,
            First::Later(_) => {
                self.held = Some(wanted.clone());
                Batch::default()
            }
            First::Full => panic!("there is room"),
        };
        if let Some(held) = held {
            self.view.waited(&held, form());
        }
        if self.held.is_none() {
            assert_eq!(batch.number, self.view.version().number);
            assert!(!batch.has_gap && batch.from <= batch.number);
            self.first.entry(channel).or_insert(batch.from);
            self.house.take(&batch.slices);
        }
        self.held.is_none()
    }

    fn join(&mut self, slot: u32, interest: &Arc<Interest>) {
        let joined = self.view.join(slot, (interest, 0), form(), Start::Now, Marks::default(), 0);
        let Joined::Reader(reader, batch) = joined else { panic!("{joined:?}") };
        assert!(batch.slices.is_empty(), "from now on nothing is owed");
        self.house.readers[slot as usize] = Some(reader);
    }

    /// Another reader comes or leaves.
    fn toggle_other(&mut self, slot: u32) {
        if self.house.readers[slot as usize].is_some() {
            self.waves.leave(&mut self.view, &mut self.house, slot);
            self.house.readers[slot as usize] = None;
        } else {
            self.join(slot, &interest(&CHANNELS[..slot as usize]));
        }
    }

    fn end(mut self) {
        self.house.is_slow = false;
        for _ in 0..100 {
            (0..4).for_each(|slot| self.sent(slot));
            while self.mail() || self.go(1) {}
            for channel in CHANNELS {
                if !self.reads(channel) {
                    self.toggle(channel);
                }
            }
        }
        assert!(CHANNELS.iter().all(|channel| self.reads(channel)), "it reads all again");
        for channel in CHANNELS {
            let from = self.first[channel];
            let published = self.published.get(channel).map_or(&[][..], |numbers| numbers);
            let owed: Vec<u64> = published.iter().copied().filter(|number| *number > from).collect();
            let came = self.house.came.get(channel).cloned().unwrap_or_default();
            assert!(came.is_sorted_by(|one, other| one < other), "{channel}: {came:?}");
            match channel.starts_with("l.") {
                true => assert_eq!(came, owed, "{channel} from {from}"),
                false => assert_eq!(came.last(), owed.last(), "{channel} from {from}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn channels_that_come_and_go_lose_nothing_and_bring_nothing_twice(
        steps in prop::collection::vec((0u8..10, 0usize..3), 1..200),
    ) {
        let mut world = World::new();
        for (what, draw) in steps {
            match what {
                0..=2 => world.publish(CHANNELS[draw]),
                3 | 4 => drop(world.mail()),
                5 => drop(world.go(draw + 1)),
                6 => world.house.is_slow = draw > 0,
                7 => world.sent(draw as u32),
                8 => world.toggle(CHANNELS[draw]),
                _ => world.toggle_other(draw as u32 + 1),
            }
        }
        world.end();
    }
}

#[test]
fn history_is_what_may_be_read() {
    let mut world = World::new();
    (0..4).for_each(|_| world.publish("l.a"));
    let name = TopicName::new("l.a").unwrap();
    let private = Publication { private: true, ..Publication::new(name.clone(), Value::of_bytes(b"x")) };
    world.hub.publish(private, 0).unwrap();
    world.mail();
    let numbers = |after, grants: &Grants| -> Vec<u64> {
        world.view.history(&name, after, grants).iter().map(|update| update.number).collect()
    };
    assert_eq!(numbers(0, &Grants::default()), [1, 2, 3, 4]);
    assert_eq!(numbers(2, &Grants::new(vec![name.clone()], Vec::new())), [3, 4, 5]);
    assert!(world.view.history(&TopicName::new("l.b").unwrap(), 0, &Grants::default()).is_empty());
}
