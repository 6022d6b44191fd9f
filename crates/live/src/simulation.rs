//! A hub, two workers and readers of every kind, driven by a seed: readers stall, are cut, resume, join and
//! leave during waves, sends are short at any byte, mail comes late.
//!
//! It owns the world and its order. It must never look at what is sent but through a client that decodes it.
//! Order: `World::run` with a seed; a failure names it, and `STAUNCH_SEED=N` repeats it alone.

mod client;
mod facts;
mod model;

use std::collections::VecDeque;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::form::{Coding, Form, Shape, Transport};
use crate::hub::{Content, Hub, HubSettings, Publication};
use crate::interest::{Grants, Interest};
use crate::letter::Letter;
use crate::pattern::Pattern;
use crate::reader::{Marks, Reader, Start};
use crate::topic::{Kind, TopicRules};
use crate::update::{Bytes, Value};
use crate::view::{Joined, View};
use crate::wave::{Audience, Delivery, Waves};
use client::Client;
use facts::{EPOCH, TOPICS, name};
use model::Model;

const WORKERS: usize = 2;
const WISHES: &[&[&str]] = &[
    &["v.a"],
    &["l.a"],
    &["l.a", "v.a"],
    &["l.*"],
    &["*"],
    &["j.a"],
    &["v.>", "j.a"],
    &["l.b", "l.a", "j.p"],
];

/// A connection of a client, as its worker sees it.
struct Connection {
    worker: usize,
    reader: Option<Reader>,
    client: Client,
    /// Handed over, and not yet taken by the peer.
    outgoing: VecDeque<u8>,
    is_stalled: bool,
    is_waiting: bool,
    is_gone: bool,
}

/// The connections, and how much of a delivery their sockets take at once.
struct Connections<'a> {
    all: &'a mut Vec<Connection>,
    random: &'a mut Xoshiro256PlusPlus,
}

impl Audience for Connections<'_> {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        self.all[slot as usize].reader.as_mut().expect("only readers are in groups")
    }

    fn deliver(&mut self, slot: u32, slices: &[Bytes]) -> Delivery {
        let connection = &mut self.all[slot as usize];
        assert!(connection.outgoing.is_empty(), "a send is under way");
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        assert!(!bytes.is_empty());
        if connection.is_gone {
            return Delivery::Broken;
        }
        let whole = !connection.is_stalled && self.random.random_bool(0.6);
        let taken = if whole { bytes.len() } else { self.random.random_range(0..bytes.len()) };
        connection.client.receive(&bytes[..taken]);
        connection.outgoing.extend(&bytes[taken..]);
        if whole { Delivery::Sent } else { Delivery::UnderWay }
    }
}

struct Worker {
    view: View,
    waves: Waves,
    inbox: VecDeque<Letter>,
}

struct World {
    random: Xoshiro256PlusPlus,
    hub: Hub,
    workers: Vec<Worker>,
    connections: Vec<Connection>,
    model: Model,
    /// Which of the wishes clients have in this world: with few the groups are large.
    wishes: usize,
}

fn rules(random: &mut Xoshiro256PlusPlus, kind: Kind) -> TopicRules {
    TopicRules { kind, ring_entries: random.random_range(1..8), ..TopicRules::default() }
}

impl World {
    fn new(seed: u64, forgets_moved: bool) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut settings = HubSettings { workers: WORKERS, ..HubSettings::default() };
        settings.add_rules("l.*", rules(&mut random, Kind::Log)).unwrap();
        settings.add_rules("j.*", rules(&mut random, Kind::Json)).unwrap();
        if random.random_bool(0.2) {
            settings.live_memory_bytes = random.random_range(8_000..20_000);
        }
        let workers = (0..WORKERS).map(|_| Worker {
            view: View::new(EPOCH, 1000),
            waves: Waves::of_canary(forgets_moved),
            inbox: VecDeque::new(),
        });
        let workers = workers.collect();
        let hub = Hub::new(settings, EPOCH);
        let wishes = random.random_range(1..=WISHES.len());
        Self { random, hub, workers, connections: Vec::new(), model: Model::default(), wishes }
    }

    /// Plays a seed; the first promise that was broken.
    fn run(seed: u64, forgets_moved: bool) -> Result<(), String> {
        let mut world = Self::new(seed, forgets_moved);
        for _ in 0..world.random.random_range(20..300) {
            world.step();
        }
        world.leave_during_waves();
        world.settle();
        for connection in &mut world.connections {
            connection.client.decode();
            let owner = &world.workers[connection.worker].view;
            let left_early = connection.reader.is_none();
            world.model.check(&connection.client, left_early, owner.version().number)?;
        }
        Ok(())
    }

    fn step(&mut self) {
        match self.random.random_range(0..20) {
            0..=5 => self.publish(),
            6..=7 => self.deal_letter(),
            8..=10 => self.wave(),
            11..=13 => self.drain(),
            14..=15 => self.join_new(),
            16 => self.cut(),
            17 => self.resume(),
            18 => self.stall(),
            _ => self.requests(),
        }
    }

    /// The last thing that happens: an update whose waves are under way while readers leave.
    fn leave_during_waves(&mut self) {
        for _ in 0..self.random.random_range(0..8) {
            self.join_new();
        }
        self.publish();
        self.post();
        for worker in 0..WORKERS {
            while let Some(letter) = self.workers[worker].inbox.pop_front() {
                self.workers[worker].view.read(&letter);
                self.try_again(worker);
            }
        }
        for _ in 0..self.random.random_range(0..20) {
            match self.random.random_range(0..3) {
                0 => self.cut(),
                1 => self.wave(),
                _ => self.drain(),
            }
        }
    }

    fn publish(&mut self) {
        for _ in 0..self.random.random_range(1..4) {
            let topic = TOPICS[self.random.random_range(0..TOPICS.len())];
            let mut publication = Publication::new(name(topic), Value::Text(Arc::from(&b""[..])));
            publication.private = topic.ends_with('p') && self.random.random_bool(0.5);
            publication.content = self.content(topic);
            if topic.starts_with('v') && self.random.random_bool(0.2) {
                publication.topics.push(name("l.b"));
            }
            if let Ok(accepted) = self.hub.publish(publication.clone(), 0) {
                let (_, update) = self.hub.value(&name(topic)).unwrap();
                assert_eq!(Some(update.number), accepted.version.map(|version| version.number));
                self.model.published(update);
            }
        }
        if self.random.random_bool(0.7) {
            self.post();
        }
    }

    fn content(&mut self, topic: &str) -> Content {
        let draw: u32 = self.random.random_range(0..1000);
        if !topic.starts_with('j') {
            let length = self.random.random_range(0..4) * 60;
            return Content::Whole(Value::of_bytes(format!("{draw}{}", "x".repeat(length)).as_bytes()));
        }
        let mut document = serde_json::json!({ "long": "a member that stays".repeat(8) });
        for member in ["a", "b", "c"] {
            if self.random.random_bool(0.6) {
                document[member] = serde_json::json!({ member: self.random.random_range(0..3) });
            }
        }
        Content::Whole(Value::Json(document.to_string().into_bytes().into()))
    }

    fn post(&mut self) {
        let letter = self.hub.take_letter();
        for worker in &mut self.workers {
            worker.inbox.extend(letter.clone());
        }
    }

    fn deal_letter(&mut self) {
        let worker = self.random.random_range(0..WORKERS);
        if let Some(letter) = self.workers[worker].inbox.pop_front() {
            self.workers[worker].view.read(&letter);
            self.try_again(worker);
        }
    }

    fn requests(&mut self) {
        let worker = self.random.random_range(0..WORKERS);
        self.requests_of(worker);
        self.post();
        if self.random.random_bool(0.3) {
            self.hub.let_forms_go();
            self.post();
        }
    }

    fn requests_of(&mut self, worker: usize) {
        for request in self.workers[worker].view.take_requests() {
            self.hub.request(worker, request);
        }
    }

    fn wave(&mut self) {
        let worker = self.random.random_range(0..WORKERS);
        let readers = self.random.random_range(1..5);
        self.wave_of(worker, readers);
    }

    fn wave_of(&mut self, worker: usize, readers: usize) -> bool {
        let Worker { view, waves, .. } = &mut self.workers[worker];
        let mut audience = Connections { all: &mut self.connections, random: &mut self.random };
        waves.go(view, &mut audience, readers)
    }

    fn drain(&mut self) {
        let Some(slot) = self.any_connection() else { return };
        let connection = &mut self.connections[slot];
        if connection.is_stalled || connection.outgoing.is_empty() {
            return;
        }
        let count = self.random.random_range(1..=connection.outgoing.len());
        let taken: Vec<u8> = connection.outgoing.drain(..count).collect();
        connection.client.receive(&taken);
        self.sent_if_drained(slot);
    }

    fn sent_if_drained(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        let is_sending = connection.reader.is_some_and(|reader| reader.marks.has(Marks::SENDING));
        if connection.outgoing.is_empty() && is_sending {
            let Worker { view, waves, .. } = &mut self.workers[connection.worker];
            let mut audience = Connections { all: &mut self.connections, random: &mut self.random };
            waves.sent(view, &mut audience, slot as u32);
        }
    }

    fn any_connection(&mut self) -> Option<usize> {
        let count = self.connections.len();
        (count > 0).then(|| self.random.random_range(0..count))
    }

    fn join_new(&mut self) {
        if self.connections.len() > 40 {
            return;
        }
        let wish = WISHES[self.random.random_range(0..self.wishes)];
        let granted = self.random.random_bool(0.3);
        let grants = match granted {
            true => Grants::new(Vec::new(), vec![Pattern::new("*").unwrap()]),
            false => Grants::default(),
        };
        let interest = Arc::new(Interest::read(wish.iter().copied(), grants, 10).unwrap());
        let shape = [Shape::Enveloped, Shape::Patch][self.random.random_range(0..2)];
        let transport = [Transport::Chunked, Transport::Plain, Transport::Socket, Transport::Protobuf]
            [self.random.random_range(0..4)];
        let coding =
            [Coding::Identity, Coding::Gzip, Coding::Deflate, Coding::Zstd][self.random.random_range(0..4)];
        let start = [Start::Snapshot, Start::Now][self.random.random_range(0..2)];
        let client = Client::new(interest, granted, shape, transport, coding, start);
        self.connections.push(Connection {
            worker: self.random.random_range(0..WORKERS),
            reader: None,
            client,
            outgoing: VecDeque::new(),
            is_stalled: false,
            is_waiting: false,
            is_gone: false,
        });
        self.join(self.connections.len() - 1);
    }

    fn join(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let client = &mut connection.client;
        let form = Form::new(client.shape, client.transport, client.coding);
        let view = &mut self.workers[connection.worker].view;
        let start = client.start();
        let joined = view.join(slot as u32, (&client.interest, 0), form, start, Marks::default(), 0);
        if std::mem::take(&mut connection.is_waiting) {
            view.waited(&client.interest, form);
        }
        match joined {
            Joined::Full => panic!("there are few groups"),
            Joined::Later(_) => connection.is_waiting = true,
            Joined::Reader(mut reader, batch) => {
                client.joined(start, view.version().number, |topic| view.dropped_to(topic));
                let first = [client.coding_head().to_vec()].into_iter();
                let slices = batch.slices.iter().map(|slice| slice.to_vec());
                connection.outgoing.extend(first.chain(slices).flatten());
                if !connection.outgoing.is_empty() {
                    reader.marks.set(Marks::SENDING);
                }
                connection.reader = Some(reader);
            }
        }
    }

    /// Those who wait for a form join again.
    fn try_again(&mut self, worker: usize) {
        for slot in 0..self.connections.len() {
            if self.connections[slot].is_waiting && self.connections[slot].worker == worker {
                self.join(slot);
            }
        }
    }

    /// The connection breaks, at any byte.
    fn cut(&mut self) {
        let Some(slot) = self.any_connection() else { return };
        let connection = &mut self.connections[slot];
        if connection.reader.is_none() {
            return;
        }
        let Worker { view, waves, .. } = &mut self.workers[connection.worker];
        connection.outgoing.clear();
        connection.client.decode();
        let mut audience = Connections { all: &mut self.connections, random: &mut self.random };
        waves.leave(view, &mut audience, slot as u32);
        self.connections[slot].reader = None;
    }

    /// A reader that was cut comes back, maybe to the other worker.
    fn resume(&mut self) {
        let Some(slot) = self.any_connection() else { return };
        let connection = &mut self.connections[slot];
        if connection.reader.is_some() || connection.is_waiting {
            return;
        }
        connection.worker = self.random.random_range(0..WORKERS);
        connection.client.reconnect();
        self.join(slot);
    }

    fn stall(&mut self) {
        let Some(slot) = self.any_connection() else { return };
        self.connections[slot].is_stalled ^= true;
    }

    /// Ends all stalls, and lets everything arrive that is under way.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.post();
            let mut is_quiet = true;
            for worker in 0..WORKERS {
                while let Some(letter) = self.workers[worker].inbox.pop_front() {
                    self.workers[worker].view.read(&letter);
                    self.try_again(worker);
                }
                while self.wave_of(worker, 1000) {}
                self.requests_of(worker);
            }
            for slot in 0..self.connections.len() {
                self.connections[slot].is_stalled = false;
                let connection = &mut self.connections[slot];
                is_quiet &= connection.outgoing.is_empty() && !connection.is_waiting;
                let taken: Vec<u8> = connection.outgoing.drain(..).collect();
                connection.client.receive(&taken);
                self.sent_if_drained(slot);
            }
            self.post();
            if is_quiet && self.workers.iter().all(|worker| worker.inbox.is_empty()) {
                return;
            }
        }
        panic!("the world does not come to rest");
    }
}

fn seeds() -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("STAUNCH_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return seed..seed + 1;
    }
    0..std::env::var("STAUNCH_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(250)
}

#[test]
fn every_reader_sees_what_is_promised() {
    for seed in seeds() {
        if let Err(broken) = World::run(seed, false) {
            panic!("{broken}\nrepeat with STAUNCH_SEED={seed}");
        }
    }
}

/// A reader that comes from a worker that is ahead was once sent an update twice.
#[test]
fn seeds_that_failed_once() {
    for seed in [778, 1122] {
        World::run(seed, false).unwrap();
    }
}

/// The canary: without the look at readers that were moved in their list, one is missed.
#[test]
fn without_the_look_at_who_was_moved_a_seed_fails() {
    assert!((0..1000).any(|seed| World::run(seed, true).is_err()));
}
