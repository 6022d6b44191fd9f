//! A cluster in one thread: nodes with a hub each, and a network that loses, doubles, delays and parts.
//!
//! It owns time. Everything follows from its seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use staunch_dostp::Kind;
use staunch_dostp::fabric::{
    Became, Fabric, FabricSettings, FabricSite, HeardMessage, Held, Now, Outgoing, Stamp, ToldUpdate,
    Updated, limits,
};

/// The port of all fabrics.
pub(crate) const PORT: u16 = 5290;

/// The time of day at the begin.
const WALL_MS: u64 = 1_700_000_000_000;

/// The names of topics with a deadline begin so, and the longest that their messages may be held up.
pub(crate) const REALTIME: &str = "quotes.";
pub(crate) const DEADLINE_MS: u32 = 5;

/// What is told of the end of a topic.
const END: &[u8] = b"the end";

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// An update as a hub holds it: its topics, and its value; none if it is gone.
#[derive(Debug)]
pub(crate) struct Update {
    topics: Vec<String>,
    value: Option<Vec<u8>>,
}

/// What leads to it.
#[derive(Debug, Clone)]
pub(crate) struct Handle(Arc<Update>);

impl Held for Handle {
    fn topics(&self) -> Vec<&str> {
        self.0.topics.iter().map(String::as_str).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        // As in live data the end of a topic has bytes as well.
        out.extend_from_slice(self.0.value.as_deref().unwrap_or(END));
    }

    fn length(&self) -> usize {
        self.0.value.as_deref().unwrap_or(END).len()
    }
}

/// What waits for a hub: site, stamp, update, and whether it was published here.
type Waiting = (usize, Option<Stamp>, Update);

/// A topic of a site.
type Topic = (usize, String);

pub(crate) struct Node {
    pub(crate) address: u16,
    pub(crate) fabric: Fabric<Handle>,
    pub(crate) values: BTreeMap<Topic, (Stamp, Option<Vec<u8>>)>,
    queue: VecDeque<Waiting>,
    pub(crate) queue_max: usize,
    sequence: u32,
    /// By how much its clock is wrong.
    pub(crate) skew_ms: i64,
    /// Topics that its hub has room for, where another node publishes them.
    pub(crate) room: usize,
    pub(crate) is_up: bool,
    /// Messages to single nodes that were sent, by kind of transaction.
    pub(crate) requests: u64,
}

/// How the network is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// All messages take so long.
    pub(crate) way_ms: u64,
    /// Of 1 000 messages.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) delayed: u64,
    /// No REQUEST arrives: a canary.
    pub(crate) drops_requests: bool,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) now_ms: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) faults: Faults,
    /// Nodes of different parts do not hear each other.
    pub(crate) parts: BTreeMap<u16, u8>,
    /// Requests to nodes that are not played here, for a test that answers them.
    pub(crate) unheard: Vec<Outgoing>,
    flying: BTreeMap<(u64, u64), (u16, u16, Outgoing)>,
    sent: u64,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let (random, nodes) = (Random(seed), Vec::new());
        let (parts, unheard, flying) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { random, now_ms: 0, nodes, faults, parts, unheard, flying, sent: 0 }
    }

    /// A node begins, with these sites.
    pub(crate) fn start(&mut self, address: u16, sites: &[&str]) -> usize {
        // Seconds, as in the server.
        let epoch = 100 + (self.now_ms / 1_000) as u32;
        let site = |name: &&str| FabricSite { name: (*name).to_owned(), topics_max: 1_000 };
        let settings = FabricSettings {
            address,
            port: PORT,
            epoch,
            seed: self.random.next(),
            sites: sites.iter().map(site).collect(),
            deadline_ms: DEADLINE_MS,
        };
        let node = Node {
            address,
            fabric: Fabric::new(settings),
            values: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_max: 4 + self.random.below(60) as usize,
            sequence: 0,
            skew_ms: self.random.below(4_000) as i64 - 2_000,
            room: usize::MAX,
            is_up: true,
            requests: 0,
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(crate) fn now(&self, place: usize) -> Now {
        let wall_ms = (WALL_MS + self.now_ms).saturating_add_signed(self.nodes[place].skew_ms);
        Now { ms: self.now_ms, wall_ms }
    }

    /// Publishes an update at a node.
    pub(crate) fn publish(&mut self, place: usize, site: usize, topics: &[&str], value: Option<&[u8]>) {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let update = Update { topics, value: value.map(<[u8]>::to_vec) };
        self.nodes[place].queue.push_back((site, None, update));
        self.number(place);
    }

    /// A node's hub forgets a topic whose time is over.
    pub(crate) fn forget(&mut self, place: usize, site: usize, topic: &str) {
        let now = self.now(place);
        self.nodes[place].values.remove(&(site, topic.to_owned()));
        self.nodes[place].fabric.forgotten(site, topic, now);
    }

    /// All values of a node's hub are told to its fabric anew.
    pub(crate) fn introduce(&mut self, place: usize, site: usize) {
        let now = self.now(place);
        let Node { fabric, values, .. } = &mut self.nodes[place];
        fabric.begin_anew(site);
        for ((_, topic), (stamp, value)) in values.iter().filter(|((of, _), _)| *of == site) {
            let is_gone = value.is_none();
            let handle = Handle(Arc::new(Update { topics: vec![topic.clone()], value: value.clone() }));
            let updated = Updated { stamp: *stamp, is_own: false, is_gone, is_realtime: false, handle };
            fabric.updated(site, &updated, now);
        }
    }

    /// Time passes.
    pub(crate) fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            self.arrive();
            for place in 0..self.nodes.len() {
                if self.nodes[place].is_up {
                    self.number(place);
                    let now = self.now(place);
                    let fabric = &mut self.nodes[place].fabric;
                    if fabric.due_ms(now) <= now.ms {
                        fabric.tick(now);
                    }
                    self.send(place);
                }
            }
        }
    }

    /// A message comes to a node, whoever sent it.
    pub(crate) fn deliver(&mut self, place: usize, heard: &HeardMessage<'_>) {
        let now = self.now(place);
        let Node { fabric, queue, queue_max, .. } = &mut self.nodes[place];
        fabric.heard(heard, now, &mut |told: &ToldUpdate<'_>| {
            if queue.len() >= *queue_max {
                return Became::Full;
            }
            assert!(!told.is_gone || told.body == END, "an end that does not say so");
            let topics: Vec<String> = told.topics.iter().map(|topic| (*topic).to_owned()).collect();
            assert_eq!(topics.iter().collect::<BTreeSet<_>>().len(), topics.len());
            let value = (!told.is_gone).then(|| told.body.to_vec());
            queue.push_back((told.site, Some(told.stamp), Update { topics, value }));
            Became::Taken
        });
        self.send(place);
    }

    fn arrive(&mut self) {
        while let Some(entry) = self.flying.first_entry() {
            if entry.key().0 > self.now_ms {
                return;
            }
            let (from, to, message) = entry.remove();
            let Some(place) = self.nodes.iter().position(|node| node.address == to && node.is_up) else {
                continue;
            };
            let heard = HeardMessage {
                from: (from, PORT),
                kind: message.kind,
                message_id: message.message_id.unwrap_or(0),
                payload: &message.payload,
            };
            self.deliver(place, &heard);
        }
    }

    /// A hub numbers what waits, as long as it is not outdated.
    fn number(&mut self, place: usize) {
        let now = self.now(place);
        let node = &mut self.nodes[place];
        while let Some((site, stamp, update)) = node.queue.pop_front() {
            let held = |topic: &String| node.values.get(&(site, topic.clone())).map(|(stamp, _)| *stamp);
            let is_own = stamp.is_none();
            // What is further ahead than clocks may be does not count.
            let counts = |stamp: &Stamp| stamp.ms <= now.wall_ms + limits::AHEAD_MS_MAX;
            let newest = update.topics.iter().filter_map(held).filter(counts).max();
            node.sequence += 1;
            let at = |ms| Stamp { ms, node: node.address, sequence: node.sequence };
            let own = match newest.filter(|newest| newest.ms >= now.wall_ms) {
                Some(newest) if at(newest.ms) > newest => at(newest.ms),
                Some(newest) => at(newest.ms + 1),
                None => at(now.wall_ms),
            };
            let stamp = stamp.unwrap_or(own);
            let is_newer =
                |topic: &&String| is_own || held(topic).filter(counts).is_none_or(|held| held < stamp);
            let has_room = |topic: &&String| is_own || held(topic).is_some() || node.values.len() < node.room;
            let topics: Vec<String> =
                update.topics.iter().filter(is_newer).filter(has_room).cloned().collect();
            if topics.is_empty() {
                continue;
            }
            let (is_gone, value) = (update.value.is_none(), update.value);
            for topic in &topics {
                node.values.insert((site, topic.clone()), (stamp, value.clone()));
            }
            let handle = Handle(Arc::new(Update { topics, value }));
            let is_realtime = handle.topics().iter().all(|topic| topic.starts_with(REALTIME));
            node.fabric.updated(site, &Updated { stamp, is_own, is_gone, is_realtime, handle }, now);
        }
        node.fabric.flush(now);
    }

    fn send(&mut self, place: usize) {
        while let Some(message) = self.nodes[place].fabric.poll_outgoing() {
            let from = self.nodes[place].address;
            self.nodes[place].requests += u64::from(message.kind == Kind::Request);
            if message.kind == Kind::Request && self.faults.drops_requests {
                continue;
            }
            let is_played = message.to.is_none_or(|to| self.nodes.iter().any(|node| node.address == to));
            if message.kind == Kind::Request && !is_played {
                self.unheard.push(message);
                continue;
            }
            let others = self.nodes.iter().map(|node| node.address).filter(|address| *address != from);
            let part = |address: u16| self.parts.get(&address).copied().unwrap_or_default();
            let others: Vec<u16> = others
                .filter(|address| message.to.is_none_or(|to| to == *address))
                .filter(|address| part(*address) == part(from))
                .collect();
            for to in others {
                self.fly(from, to, &message);
            }
        }
    }

    fn fly(&mut self, from: u16, to: u16, message: &Outgoing) {
        let Faults { way_ms, lost, doubled, delayed, .. } = self.faults;
        if self.random.below(1_000) < lost {
            return;
        }
        let copies = if self.random.below(1_000) < doubled { 2 } else { 1 };
        for _ in 0..copies {
            let late_ms = if self.random.below(1_000) < delayed { self.random.below(50) } else { 0 };
            self.sent += 1;
            self.flying.insert((self.now_ms + 1 + way_ms + late_ms, self.sent), (from, to, message.clone()));
        }
    }

    /// What a node holds: topics with a value.
    pub(crate) fn values(&self, place: usize, site: usize) -> BTreeMap<&str, &[u8]> {
        let of_site = self.nodes[place].values.iter().filter(|((of, _), _)| *of == site);
        of_site.filter_map(|((_, topic), (_, value))| Some((topic.as_str(), value.as_deref()?))).collect()
    }

    /// The newest update of each topic that any node up holds.
    pub(crate) fn newest(&self, site: usize) -> BTreeMap<&str, &[u8]> {
        let mut newest: BTreeMap<&str, (Stamp, Option<&[u8]>)> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.is_up) {
            for ((_, topic), (stamp, value)) in node.values.iter().filter(|((of, _), _)| *of == site) {
                let known = newest.get(topic.as_str()).map(|(stamp, _)| *stamp);
                if known.is_none_or(|known| known < *stamp) {
                    newest.insert(topic, (*stamp, value.as_deref()));
                }
            }
        }
        newest.into_iter().filter_map(|(topic, (_, value))| Some((topic, value?))).collect()
    }

    /// Whether all nodes hold the newest values of a site.
    pub(crate) fn agrees(&self, site: usize) -> bool {
        let newest = self.newest(site);
        let up = (0..self.nodes.len()).filter(|place| self.nodes[*place].is_up);
        up.clone().all(|place| self.values(place, site) == newest)
            && up.clone().all(|place| {
                let first = self.nodes[up.clone().next().unwrap_or(0)].fabric.digest(site);
                self.nodes[place].fabric.digest(site) == first
            })
    }
}
