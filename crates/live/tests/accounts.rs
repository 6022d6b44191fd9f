//! What readers make the view and the hub hold, against what stands in their accounts: whole conversations of
//! streams and WebSockets, measured by an allocator that counts.
//!
//! It must never measure what a publisher brought: topics exist before.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_live::{
    Audience, Bytes, Coding, Delivery, Epoch, First, Form, Grants, Hub, HubSettings, Interest, Joined, Marks,
    Publication, Reader, Shape, Start, TopicName, Transport, Value, View, Waves,
};

const CONNECTIONS: u32 = 40;
/// Tables are as long as a power of two, and what is held in them is counted by the average.
const SPARE_BYTES: u64 = 16 * 1024;

struct House {
    readers: Vec<Option<Reader>>,
}

impl Audience for House {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        self.readers[slot as usize].as_mut().expect("only readers are in groups")
    }

    fn deliver(&mut self, _slot: u32, _slices: &[Bytes]) -> Delivery {
        Delivery::Sent
    }
}

struct World {
    hub: Hub,
    view: View,
    waves: Waves,
    house: House,
    random: Xoshiro256PlusPlus,
}

impl World {
    fn new(seed: u64) -> Self {
        let (hub, view) = (Hub::new(HubSettings::default(), Epoch(1)), View::new(Epoch(1), 1000));
        let house = House { readers: vec![None; CONNECTIONS as usize] };
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut world = Self { hub, view, waves: Waves::new(), house, random };
        for number in 0..500 {
            let name = TopicName::new(&format!("board.{}.{number}", number % 9)).unwrap();
            world.hub.publish(Publication::new(name, Value::of_bytes(b"1")), 0).unwrap();
        }
        world.mail();
        world
    }

    fn mail(&mut self) {
        self.view.take_requests().into_iter().for_each(|request| self.hub.request(0, request));
        if let Some(letter) = self.hub.take_letter() {
            self.view.read(&letter);
        }
        while self.view.has_work() {
            self.view.step();
        }
        while self.waves.go(&mut self.view, &mut self.house, 256) {}
        self.view.take_requests().into_iter().for_each(|request| self.hub.request(0, request));
        drop(self.view.take_recharged());
    }

    /// Something that a connection asks for: mostly a name of no topic, for it is the peer's own.
    fn channel(&mut self, slot: u32) -> String {
        let draw: u32 = self.random.random_range(0..600);
        let many = (draw * 37 % 230) as usize;
        match draw % 12 {
            0 => format!("board.{}.*", draw % 11),
            1 => format!("board.{}.{draw}", draw % 9),
            2 => format!("{slot}-{draw}{}.*", "p".repeat(many)),
            _ => format!("{slot}-{draw}{}", "n".repeat(many)),
        }
    }

    fn interest(&mut self, slot: u32, count: usize) -> Arc<Interest> {
        let channels: Vec<String> = (0..count).map(|_| self.channel(slot)).collect();
        Arc::new(Interest::read(channels.iter().map(String::as_str), Grants::default(), count).unwrap())
    }

    fn join(&mut self, slot: u32, interest: &Arc<Interest>) {
        let client = u64::from(slot);
        for _ in 0..100 {
            let wish = (interest, client);
            match self.view.join(slot, wish, form(), Start::Now, Marks::default(), 0) {
                Joined::Reader(reader, _) => {
                    self.house.readers[slot as usize] = Some(reader);
                    return;
                }
                Joined::Later(_) => {
                    self.mail();
                    self.view.waited(interest, form());
                }
                Joined::Full => panic!("there is room"),
            }
        }
        panic!("it never joins");
    }

    fn step(&mut self) {
        let slot = self.random.random_range(0..CONNECTIONS);
        let has_reader = self.house.readers[slot as usize].is_some();
        match (self.random.random_range(0..20), has_reader) {
            (0, true) => self.leave(slot),
            (1, _) => self.mail(),
            (_, false) => {
                let count = self.random.random_range(1..64);
                let interest = self.interest(slot, count);
                self.join(slot, &interest);
            }
            // Every other connection is a stream, whose interest stays.
            (_, true) if slot % 2 == 0 => {}
            (2..6, true) => (0..10).for_each(|_| {
                let channel = self.channel(slot);
                self.narrow(slot, &channel);
            }),
            (_, true) => (0..20).for_each(|_| self.widen(slot)),
        }
    }

    fn widen(&mut self, slot: u32) {
        let channel = self.interest(slot, 1);
        let client = u64::from(slot);
        let reader = *self.house.reader(slot);
        let (count, patterns) = self.view.counts(&reader);
        if self.view.reads(&reader, &channel) || count >= 1000 || patterns >= 64 {
            return;
        }
        match self.view.first((&channel, client), form(), Start::Now) {
            First::Batch(_) => {
                let wider = self.waves.widen(&mut self.view, &mut self.house, slot, (&channel, client));
                assert!(wider, "there is room");
            }
            First::Later(_) => {
                self.mail();
                self.view.waited(&channel, form());
            }
            First::Full => panic!("there is room"),
        }
    }

    fn narrow(&mut self, slot: u32, channel: &str) {
        let channel = Interest::read([channel], Grants::default(), 1).unwrap();
        let reader = *self.house.reader(slot);
        if self.view.reads(&reader, &channel) && self.view.counts(&reader).0 > 1 {
            assert!(self.waves.narrow(&mut self.view, &mut self.house, slot, (&channel, 0)));
        }
    }

    fn leave(&mut self, slot: u32) {
        self.waves.leave(&mut self.view, &mut self.house, slot);
        self.house.readers[slot as usize] = None;
    }

    fn counted(&self) -> u64 {
        let readers = self.house.readers.iter().flatten();
        readers.map(|reader| self.view.held_bytes(reader) as u64).sum()
    }
}

fn form() -> Form {
    Form::new(Shape::Enveloped, Transport::Socket, Coding::Identity)
}

fn is_near(held: u64, counted: u64) -> bool {
    held.abs_diff(counted) <= held.max(counted) / 10 + SPARE_BYTES
}

#[test]
fn what_is_held_is_counted() {
    let mut most = 0;
    for seed in 0..30 {
        let mut world = World::new(seed);
        let mut counted = 0;
        let steps = world.random.random_range(50..1500);
        let measured = allocation_counter::measure(|| {
            (0..steps).for_each(|_| world.step());
            world.mail();
            counted = world.counted();
        });
        let held = u64::try_from(measured.bytes_current).unwrap();
        assert!(is_near(held, counted), "seed {seed}, {steps} steps: {held} held, {counted} counted");
        most = most.max(held);
    }
    // So much that an error of a tenth shows beside what is spare.
    assert!(most > 1_000_000, "much was held: {most}");
}

/// What several readers ask for together is in the account of one of them, whoever leaves.
#[test]
fn what_is_shared_is_counted_once_and_stays_counted() {
    let mut world = World::new(1);
    let channels: Vec<String> = (0..60).map(|number| format!("{number}-{}", "s".repeat(200))).collect();
    let interest = |channels: &[String]| {
        Arc::new(Interest::read(channels.iter().map(String::as_str), Grants::default(), 64).unwrap())
    };
    (0..10).for_each(|slot| world.join(slot, &interest(&channels)));
    let all = world.counted();
    assert!((15_000..20_000).contains(&all), "{all}");
    for slot in 0..9 {
        world.leave(slot);
        let left = world.counted();
        assert!(left.abs_diff(all) < 100, "{left} of {all}");
        // The last of the list has the place of the first.
        let heard = if slot == 0 { vec![9] } else { Vec::new() };
        assert_eq!(world.view.take_recharged(), heard);
    }
    // A pattern is in the account of one group of those that have it.
    let with_pattern = |slot: u32| interest(&[format!("own{slot}"), "board.*.*".into()]);
    (10..20).for_each(|slot| world.join(slot, &with_pattern(slot)));
    let both = world.counted();
    world.leave(10);
    let left = world.counted();
    assert!(both - left < 1000, "the pattern and its 500 topics stay counted: {left} of {both}");
    (11..20).for_each(|slot| world.leave(slot));
    world.leave(9);
    assert_eq!(world.counted(), 0);
}
