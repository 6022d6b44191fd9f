//! Joining, resuming, leaving: what a reader gets first, and what a view forgets.

use super::*;
use crate::form::{Coding, Transport};
use crate::hub::{Hub, HubSettings, Publication};
use crate::interest::Grants;
use crate::limits::{
    PATTERNS_MAX, PATTERNS_PER_CLIENT_MAX, SLICES_PER_DELIVERY_MAX, STEP_WORK_MAX, WORKER_BEHIND_MAX,
};
use crate::topic::{Kind, TopicRules};
use crate::update::{Bytes, Value};
use crate::wave::{Audience, Delivery, Waves};

const EPOCH: Epoch = Epoch(1);

fn form() -> Form {
    Form::new(Shape::Bare, Transport::Plain, Coding::Identity)
}

struct House {
    hub: Hub,
    view: View,
    waves: Waves,
    readers: Vec<Option<Reader>>,
    received: Vec<String>,
    client: u64,
}

impl Audience for House {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        self.readers[slot as usize].as_mut().unwrap()
    }

    fn deliver(&mut self, slot: u32, slices: &[Bytes]) -> Delivery {
        slices
            .iter()
            .for_each(|slice| self.received[slot as usize].push_str(&String::from_utf8_lossy(slice)));
        Delivery::Sent
    }
}

impl House {
    fn new(rules: TopicRules) -> Self {
        let mut settings = HubSettings::default();
        settings.add_rules("*", rules).unwrap();
        let mut hub = Hub::new(settings, EPOCH);
        hub.request(0, Request::Hold(form()));
        let (view, waves) = (View::new(EPOCH, 3), Waves::new());
        Self { hub, view, waves, readers: Vec::new(), received: Vec::new(), client: 0 }
    }

    fn publish(&mut self, topic: &str, value: &str) {
        let topic = TopicName::new(topic).unwrap();
        self.hub.publish(Publication::new(topic, Value::of_bytes(value.as_bytes())), 0).unwrap();
    }

    /// Letters are read, forms are made, waves go to their end.
    fn settle(&mut self) {
        while let Some(letter) = self.hub.take_letter() {
            self.view.read(&letter);
            let mut waves = std::mem::take(&mut self.waves);
            let mut view = std::mem::replace(&mut self.view, View::new(EPOCH, 0));
            while waves.go(&mut view, self, 1) {}
            (self.view, self.waves) = (view, waves);
            for request in self.view.take_requests() {
                self.hub.request(0, request);
            }
        }
    }

    fn join(&mut self, topics: &[&str], start: Start) -> Result<usize, Joined> {
        let interest = Interest::read(topics.iter().copied(), Grants::default(), 10).unwrap();
        let slot = self.readers.len();
        match self.view.join(
            slot as u32,
            (&Arc::new(interest), self.client),
            form(),
            start,
            Marks::default(),
            0,
        ) {
            Joined::Reader(reader, batch) => {
                self.readers.push(Some(reader));
                self.received.push(String::new());
                self.deliver(slot as u32, &batch.slices);
                Ok(slot)
            }
            other => Err(other),
        }
    }

    fn leave(&mut self, slot: usize) {
        let mut waves = std::mem::take(&mut self.waves);
        let mut view = std::mem::replace(&mut self.view, View::new(EPOCH, 0));
        waves.leave(&mut view, self, slot as u32);
        (self.view, self.waves) = (view, waves);
    }

    /// The numbers that a reader received.
    fn numbers(&mut self, slot: usize) -> Vec<u64> {
        let text = std::mem::take(&mut self.received[slot]);
        let versions = text.lines().filter_map(|line| line.strip_prefix("id: #1-"));
        versions.map(|number| number.parse().unwrap()).collect()
    }
}

impl View {
    /// How many topics a reader covers by patterns.
    fn topics_of(&self, slot: u32, readers: &[Option<Reader>]) -> usize {
        let group = readers[slot as usize].as_ref().unwrap().group;
        let patterns = &self.groups.get(group).patterns;
        let mut topics: Vec<_> = self.groups.coverings.topics(patterns).collect();
        topics.sort_unstable();
        topics.dedup();
        topics.len()
    }

    /// How many pairs of topic and pattern are listed.
    fn covered(&self) -> usize {
        self.topics.ids().map(|id| self.topics.get(id).unwrap().patterns.len()).sum()
    }
}

fn log(ring_entries: usize) -> TopicRules {
    TopicRules { kind: Kind::Log, ring_entries, ..TopicRules::default() }
}

#[test]
fn a_newcomer_begins_where_it_asks() {
    let mut house = House::new(log(3));
    for number in 1..=5 {
        house.publish("a", &number.to_string());
    }
    house.settle();
    let version = |number| Version { epoch: EPOCH, number };
    let table = [
        (Start::Snapshot, vec![3, 4, 5]),
        (Start::Now, vec![]),
        (Start::After(version(4)), vec![5]),
        (Start::After(version(5)), vec![]),
        (Start::After(version(6)), vec![]),
        (Start::After(version(6 + 2 * WORKER_BEHIND_MAX as u64)), vec![3, 4, 5]),
        (Start::After(Version { epoch: Epoch(2), number: 4 }), vec![3, 4, 5]),
    ];
    for (start, expected) in table {
        let slot = house.join(&["a"], start).unwrap();
        assert_eq!(house.numbers(slot), expected, "{start:?}");
    }
    assert_eq!(house.view.unknown_versions(), 2);
    let slot = house.join(&["a"], Start::After(version(0))).unwrap();
    let text = house.received[slot].clone();
    let mark = "event: gap\ndata: {\"topic\":\"a\",\"missed\":2}\n\n";
    assert!(text.starts_with(mark), "{text}");
    assert_eq!(house.numbers(slot), [3, 4, 5], "what the ring has");
    house.publish("a", "6");
    house.settle();
    assert_eq!(house.numbers(0), [6]);
}

#[test]
fn a_reader_of_several_topics_gets_an_update_once() {
    let mut house = House::new(TopicRules::default());
    let slot = house.join(&["a", "a.*", "*"], Start::Snapshot).unwrap();
    let mut publication = Publication::new(TopicName::new("a").unwrap(), Value::of_bytes(b"1"));
    publication.topics.push(TopicName::new("a.b").unwrap());
    house.hub.publish(publication, 0).unwrap();
    house.settle();
    assert_eq!(house.numbers(slot), [1]);
}

#[test]
fn a_topic_that_comes_later_is_awaited() {
    let mut house = House::new(TopicRules::default());
    let (exact, pattern) = (house.join(&["late"], Start::Now), house.join(&["*"], Start::Now));
    assert!(matches!(pattern, Err(Joined::Full)) || pattern.is_ok());
    house.publish("late", "1");
    house.publish("other", "1");
    house.settle();
    assert_eq!(house.numbers(exact.unwrap()), [1]);
}

#[test]
fn groups_are_bounded_and_given_back() {
    let mut house = House::new(TopicRules::default());
    for topic in ["a", "b", "c"] {
        house.join(&[topic], Start::Now).unwrap();
    }
    assert!(matches!(house.join(&["d"], Start::Now), Err(Joined::Full)));
    house.join(&["a"], Start::Now).unwrap();
    house.leave(1);
    assert_eq!(house.view.groups.len(), 2);
    let slot = house.join(&["d"], Start::Now).unwrap();
    house.publish("d", "1");
    house.publish("b", "1");
    house.settle();
    assert_eq!((house.numbers(slot), house.numbers(1)), (vec![1], vec![]));
}

#[test]
fn patterns_are_bounded_and_given_back() {
    let mut house = House::new(TopicRules::default());
    house.view = View::new(EPOCH, 2 * PATTERNS_MAX);
    for number in 0..PATTERNS_MAX {
        house.client = (number / PATTERNS_PER_CLIENT_MAX) as u64;
        house.join(&[&format!("a{number}.*")], Start::Now).unwrap();
    }
    house.client = 100;
    assert!(matches!(house.join(&["b.*"], Start::Now), Err(Joined::Full)));
    house.join(&["a0.*", "b"], Start::Now).unwrap();
    house.leave(7);
    house.view.step();
    house.join(&["b.*"], Start::Now).unwrap();
}

#[test]
fn a_client_takes_no_more_than_its_share_of_patterns() {
    let mut house = House::new(TopicRules::default());
    house.view = View::new(EPOCH, 2 * PATTERNS_MAX);
    for number in 0..PATTERNS_PER_CLIENT_MAX {
        house.join(&[&format!("a{number}.*")], Start::Now).unwrap();
    }
    assert!(matches!(house.join(&["b.*"], Start::Now), Err(Joined::Full)));
    house.join(&["a0.*"], Start::Now).expect("nothing new");
    house.client = 1;
    house.join(&["b.*"], Start::Now).expect("others have a share of their own");
    house.client = 0;
    house.leave(7);
    house.view.step();
    house.join(&["c.*"], Start::Now).expect("what was left may be asked for again");
}

/// Topics that fit the beginning of a pattern are compared with it, a thousand at a time.
#[test]
fn a_new_pattern_is_compared_in_steps() {
    let mut house = House::new(TopicRules::default());
    for number in 0..5000 {
        house.publish(&format!("board.{}.{number}", number % 7), "1");
        house.publish(&format!("other.{number}"), "1");
    }
    house.settle();
    let wish = ["board.*.x1", "board.*.x2", "board.3.*"];
    let waits = house.join(&wish, Start::Snapshot);
    let Err(Joined::Later(Awaited::Turn(turn))) = waits else { panic!("{waits:?}") };
    let mut steps = 0;
    while house.view.compared_to() < turn {
        // What is published meanwhile is covered too.
        house.publish(&format!("board.3.late{steps}"), "1");
        let before = house.view.work();
        house.settle();
        assert!(house.view.work() - before <= STEP_WORK_MAX as u64 + 10, "what is new has candidates alone");
        steps += 1;
    }
    assert!((8..14).contains(&steps), "{steps}");
    assert!(
        house.view.work() < 11_200,
        "topics with another beginning are not looked at: {}",
        house.view.work()
    );
    let slot = house.join(&wish, Start::Snapshot).unwrap();
    let interest = Interest::read(wish, Grants::default(), 10).unwrap();
    house.view.waited(&interest, form());
    assert_eq!(house.view.topics_of(slot as u32, &house.readers), 714 + steps);
    house.publish("board.3.more", "1");
    house.settle();
    assert_eq!(house.numbers(slot).last(), Some(&house.view.version().number));
    // Its leaving is told to the topics in steps as well, and leaves nothing.
    house.leave(slot);
    house.view.step();
    while house.view.has_work() {
        house.view.step();
    }
    assert_eq!(house.view.covered(), 0);
}

/// A pattern of everything has no list: many readers with it cost what their own names do.
#[test]
fn patterns_of_everything_list_nothing() {
    let mut house = House::new(TopicRules::default());
    house.view = View::new(EPOCH, 1000);
    for number in 0..2000 {
        house.publish(&format!("t{number}"), "1");
    }
    house.settle();
    for number in 0..100 {
        house.join(&["*", &format!("u{number}")], Start::Now).unwrap();
    }
    assert_eq!((house.view.covered(), house.view.work()), (0, 0));
    let bytes = (0..100).map(|slot| house.view.held_bytes(house.readers[slot].as_ref().unwrap())).max();
    assert!(bytes.unwrap() < 2048, "{bytes:?}");
    house.publish("t1", "2");
    house.publish("u7", "1");
    house.settle();
    let came: Vec<usize> = (0..100).map(|slot| house.numbers(slot).len()).collect();
    assert_eq!(came, [2; 100]);
}

#[test]
fn what_is_too_much_for_a_delivery_comes_in_two() {
    let mut house = House::new(log(2 * SLICES_PER_DELIVERY_MAX));
    for _ in 0..SLICES_PER_DELIVERY_MAX + 10 {
        house.publish("a", "1");
    }
    house.settle();
    let slot = house.join(&["a"], Start::Snapshot).unwrap();
    house.publish("a", "2");
    house.settle();
    let expected: Vec<u64> = (1..=SLICES_PER_DELIVERY_MAX as u64 + 11).collect();
    assert_eq!(house.numbers(slot), expected);
}

#[test]
fn a_form_that_does_not_exist_is_made_and_released() {
    let mut house = House::new(TopicRules::default());
    house.hub.request(0, Request::Release(form()));
    house.publish("a", "1");
    house.settle();
    let waits = house.join(&["a"], Start::Snapshot);
    assert!(matches!(waits, Err(Joined::Later(Awaited::Letter))));
    for request in house.view.take_requests() {
        house.hub.request(0, request);
    }
    house.settle();
    let slot = house.join(&["a"], Start::Snapshot).unwrap();
    house.view.waited(&Interest::read(["a"], Grants::default(), 1).unwrap(), form());
    assert_eq!(house.numbers(slot), [1]);
    house.leave(slot);
    assert!(house.view.take_requests().contains(&Request::Release(form())));
    assert_eq!(house.view.readers(), 0);
}

#[test]
fn the_hub_hears_how_many_read() {
    let mut house = House::new(TopicRules::default());
    house.join(&["a", "b.*"], Start::Now).unwrap();
    house.join(&["a", "b.*"], Start::Now).unwrap();
    house.leave(0);
    for request in house.view.take_requests() {
        house.hub.request(0, request);
    }
    let publication = |topic| Publication::new(TopicName::new(topic).unwrap(), Value::of_bytes(b"1"));
    assert_eq!(house.hub.publish(publication("a"), 0).unwrap().readers, 1);
    assert_eq!(house.hub.publish(publication("b.x"), 0).unwrap().readers, 1);
    assert_eq!(house.hub.publish(publication("c"), 0).unwrap().readers, 0);
}

/// A view that begins with the hub's introduction knows what one knows that read all letters.
#[test]
fn an_introduction_tells_all() {
    let mut house = House::new(log(3));
    for topic in ["a", "b", "a", "a", "a", "b"] {
        house.publish(topic, "1");
    }
    let introduction = house.hub.introduction();
    house.settle();
    house.view = View::new(EPOCH, 3);
    house.view.read(&introduction);
    assert!(matches!(house.join(&["a", "b"], Start::Snapshot), Err(Joined::Later(_))));
    for request in house.view.take_requests() {
        house.hub.request(0, request);
    }
    house.settle();
    let slot = house.join(&["a", "b"], Start::Snapshot).unwrap();
    assert_eq!(house.numbers(slot), [2, 3, 4, 5, 6]);
}
