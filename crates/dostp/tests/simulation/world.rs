//! A segment with nodes on it, driven by a seed: time, frames on their way, faults, and what must hold.
//!
//! It must never ask the real time: the same seed gives the same run.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use staunch_dostp::{
    EVERYBODY, Fault, Flags, JoinedFrames, Kind, Link, Node, Outbound, Own, Secrets, SendFault, Sending,
    Settings,
};

/// What may happen to frames, each in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Held up by up to 3 ms, so that later ones pass.
    pub(crate) delayed: u64,
    /// A bit is turned, behind the header or in it.
    pub(crate) damaged: u64,
    /// The way out has no room for a message that waited for its address.
    pub(crate) full: u64,
}

/// A node that is built wrongly, to see that the checks see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Canary {
    None,
    /// Hands every hundredth message on twice.
    Doubles,
    /// Forgets every hundredth message.
    Loses,
}

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn chance(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1_000) < per_mille
    }
}

/// A node and what is attached to it.
pub(crate) struct SimulatedNode {
    pub(crate) node: Node,
    pub(crate) link: Link,
    pub(crate) up: bool,
    /// Nodes of different parts do not hear each other.
    pub(crate) part: u32,
    next_id: u16,
}

struct Flight {
    to: usize,
    from: Link,
    frame: Vec<u8>,
}

/// The segment.
pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) canary: Canary,
    /// The secrets of nodes that are started.
    pub(crate) secrets: Option<Secrets>,
    /// Every frame that was put on the wire, while it is kept: who sent it, and where to.
    pub(crate) record: Option<Vec<(Link, Link, Vec<u8>)>>,
    pub(crate) nodes: Vec<SimulatedNode>,
    now_us: u64,
    flights: BTreeMap<(u64, u64), Flight>,
    serial: u64,
    /// Every message that was sent, with its bytes; the serial number stands in them.
    sent: BTreeMap<u64, (u16, Vec<u8>)>,
    received: BTreeMap<u64, BTreeSet<usize>>,
    messages: u64,
    pub(crate) frames_sent: u64,
    pub(crate) control_frames_sent: u64,
}

/// The port all nodes have open.
const PORT: u16 = 2000;

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            random: Random::new(seed),
            faults,
            canary: Canary::None,
            secrets: None,
            record: None,
            nodes: Vec::new(),
            now_us: 1_000_000_000,
            flights: BTreeMap::new(),
            serial: 0,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            messages: 0,
            frames_sent: 0,
            control_frames_sent: 0,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    /// Adds a node with this address and starts it.
    pub(crate) fn start(&mut self, address: u16, mtu: u16) -> usize {
        let place = self.nodes.len();
        let link = Link([2, 0, 0, 0, (place >> 8) as u8, place as u8]);
        let node = self.make(address, link, mtu);
        let next_id = self.random.below(65_536) as u16;
        self.nodes.push(SimulatedNode { node, link, up: true, part: 0, next_id });
        let now_ms = self.now_ms();
        self.nodes[place].node.start(now_ms);
        self.flush(place);
        place
    }

    /// The node starts anew: it knows nothing, and has another boot number.
    pub(crate) fn restart(&mut self, place: usize) {
        let own = self.nodes[place].node.peers().own();
        self.nodes[place].node = self.make(own.address, self.nodes[place].link, own.mtu);
        let now_ms = self.now_ms();
        self.nodes[place].node.start(now_ms);
        self.flush(place);
    }

    fn make(&mut self, address: u16, link: Link, mtu: u16) -> Node {
        let mut seed = [0; 16];
        seed.fill_with(|| self.random.below(256) as u8);
        let own = Own { address, link, boot: 1 + self.random.below(1 << 60), mtu };
        let secrets = self.secrets.clone();
        let mut node = Node::new(Settings { secrets, ..Settings::new(own, seed) });
        node.ports_mut().open(PORT);
        node
    }

    /// Sends a message of so many bytes, at least 16, and remembers it.
    pub(crate) fn send(&mut self, from: usize, to: u16, length: usize) -> Result<u64, SendFault> {
        let (number, outbound, payload) = self.message(from, to, length);
        let result = self.send_now(from, &outbound, &payload);
        if result == Err(SendFault::NoRoom) {
            // Its sender is told so.
            self.sent.remove(&number);
        }
        self.flush(from);
        result.map(|()| number)
    }

    /// Sends small messages to a node, joined in one frame of the link where its address is known.
    ///
    /// They are joined here: the sender's own joining, which is the socket's, is not simulated.
    pub(crate) fn send_joined(&mut self, from: usize, to: u16, count: u64) {
        let now_ms = self.now_ms();
        let messages: Vec<_> = (0..count).map(|_| self.message(from, to, 24)).collect();
        let (mut ways, mut going) = (BTreeSet::new(), Vec::new());
        let node = &mut self.nodes[from].node;
        for (number, outbound, payload) in &messages {
            match node.send(outbound, payload, now_ms) {
                Ok(Sending::Frames { link, frames }) => {
                    ways.insert(link);
                    going.extend(frames);
                }
                Ok(Sending::Parked) => {}
                Err(_) => _ = self.sent.remove(number),
            }
        }
        assert!(ways.len() <= 1, "frames to one node go one way: {ways:?}");
        let mut bytes = Vec::new();
        let last = going.pop();
        for frame in &mut going {
            frame.header.flags = frame.header.flags.with(Flags::MORE);
            frame.head = frame.header.encode(0);
        }
        for frame in going.iter().chain(&last) {
            node.write(frame, now_ms, &mut bytes);
        }
        if let Some(link) = ways.pop_first() {
            self.transmit(from, link, &bytes);
        }
        self.flush(from);
    }

    /// A message that is remembered, with its number.
    fn message(&mut self, from: usize, to: u16, length: usize) -> (u64, Outbound, Vec<u8>) {
        self.messages += 1;
        let number = self.messages;
        let mut payload = vec![0; length.max(16)];
        for (place, byte) in payload.iter_mut().enumerate().skip(8) {
            *byte = (number as usize * 31 + place) as u8;
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        let id = self.nodes[from].next_id;
        self.nodes[from].next_id = id.wrapping_add(1);
        let outbound = Outbound {
            kind: Kind::Data,
            destination: to,
            source_port: PORT,
            destination_port: PORT,
            message_id: id,
            priority: false,
        };
        self.sent.insert(number, (to, payload.clone()));
        (number, outbound, payload)
    }

    fn send_now(&mut self, from: usize, outbound: &Outbound, payload: &[u8]) -> Result<(), SendFault> {
        let now_ms = self.now_ms();
        let sending = self.nodes[from].node.send(outbound, payload, now_ms)?;
        if let Sending::Frames { link, frames } = sending {
            for frame in frames {
                let mut bytes = Vec::new();
                self.nodes[from].node.write(&frame, now_ms, &mut bytes);
                self.transmit(from, link, &bytes);
            }
        }
        Ok(())
    }

    /// Sends what the node wants to send by itself.
    pub(crate) fn flush(&mut self, place: usize) {
        let now_ms = self.now_ms();
        let mut frame = Vec::new();
        while let Some(link) = self.nodes[place].node.poll_control(now_ms, &mut frame) {
            self.control_frames_sent += 1;
            self.transmit(place, link, &frame);
            frame.clear();
        }
        while let Some((outbound, payload)) = self.nodes[place].node.poll_parked(now_ms) {
            self.send_parked(place, outbound, payload);
        }
    }

    /// Sends a message that waited for its address, unless the way out is full.
    fn send_parked(&mut self, place: usize, outbound: Outbound, payload: Vec<u8>) {
        let now_ms = self.now_ms();
        let is_full = self.random.chance(self.faults.full);
        let mut written = Vec::new();
        let sent = self.nodes[place].node.send_parked(outbound, payload, now_ms, |node, link, frames| {
            if !is_full {
                written.extend(frames.map(|frame| {
                    let mut bytes = Vec::new();
                    node.write(&frame, now_ms, &mut bytes);
                    (link, bytes)
                }));
            }
            Ok::<bool, Infallible>(!is_full)
        });
        assert_eq!(sent, Ok(()));
        for (link, bytes) in written {
            self.transmit(place, link, &bytes);
        }
    }

    /// Puts a frame on the wire, as whoever is attached there.
    pub(crate) fn transmit(&mut self, place: usize, to: Link, frame: &[u8]) {
        let from = self.nodes[place].link;
        self.transmit_as(place, from, to, frame);
    }

    /// Puts a frame on the wire with another link address as its sender.
    pub(crate) fn transmit_as(&mut self, place: usize, from: Link, to: Link, frame: &[u8]) {
        self.frames_sent += 1;
        if let Some(record) = &mut self.record {
            record.push((from, to, frame.to_vec()));
        }
        if !self.nodes[place].up {
            return;
        }
        for receiver in 0..self.nodes.len() {
            let other = &self.nodes[receiver];
            let hears = other.up && other.part == self.nodes[place].part && receiver != place;
            if !hears || (to != Link::EVERYBODY && to != other.link) || self.random.chance(self.faults.lost) {
                continue;
            }
            for _ in 0..1 + u64::from(self.random.chance(self.faults.doubled)) {
                let mut frame = frame.to_vec();
                if self.random.chance(self.faults.damaged) {
                    let bit = self.random.below(16 * 8) as usize;
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
                let held_us =
                    if self.random.chance(self.faults.delayed) { self.random.below(3_000) } else { 0 };
                self.serial += 1;
                let at = (self.now_us + 20 + held_us, self.serial);
                self.flights.insert(at, Flight { to: receiver, from, frame });
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, length_ms: u64) {
        let end_us = self.now_us + length_ms * 1_000;
        loop {
            let due = self.nodes.iter().enumerate().filter(|(_, place)| place.up);
            let due = due.filter_map(|(index, place)| Some((place.node.due_ms()? * 1_000, index))).min();
            let landing = self.flights.first_key_value().map(|((at_us, _), _)| *at_us);
            let next_us = due.map(|(at_us, _)| at_us).into_iter().chain(landing).min();
            let Some(next_us) = next_us.filter(|at_us| *at_us <= end_us) else { break };
            self.now_us = self.now_us.max(next_us);
            if landing.is_some_and(|at_us| at_us <= self.now_us) {
                if let Some((_, flight)) = self.flights.pop_first() {
                    self.land(flight);
                }
            } else if let Some((_, index)) = due {
                let now_ms = self.now_ms();
                self.nodes[index].node.tick(now_ms);
                self.flush(index);
            }
        }
        self.now_us = end_us;
    }

    fn land(&mut self, flight: Flight) {
        let Flight { to, from, mut frame } = flight;
        if !self.nodes[to].up {
            return;
        }
        let now_ms = self.now_ms();
        let mut joined = JoinedFrames::new(&mut frame);
        while let Some(message) = self.nodes[to].node.receive(from, &mut joined, now_ms) {
            let number = u64::from_be_bytes(*message.payload.first_chunk().unwrap());
            let (sent_to, payload) = &self.sent[&number];
            assert!(*message.payload == payload[..], "message {number} was changed");
            assert_eq!(message.destination, *sent_to);
            self.hand_on(to, number);
        }
        self.flush(to);
    }

    fn hand_on(&mut self, to: usize, number: u64) {
        let turn = self.messages % 100 == number % 100 && number % 100 == 7;
        let times = match self.canary {
            Canary::Doubles if turn => 2,
            Canary::Loses if turn => 0,
            _ => 1,
        };
        for _ in 0..times {
            let receivers = self.received.entry(number).or_default();
            assert!(receivers.insert(to), "message {number} was handed on twice");
        }
    }

    /// How many messages to one node were handed on, and how many were sent.
    pub(crate) fn delivered(&self) -> (usize, usize) {
        let single = self.sent.iter().filter(|(_, (to, _))| *to != EVERYBODY);
        let delivered = single.clone().filter(|(number, _)| self.received.contains_key(number)).count();
        (delivered, single.count())
    }

    /// How many nodes were handed this message.
    pub(crate) fn receivers(&self, number: u64) -> usize {
        self.received.get(&number).map_or(0, BTreeSet::len)
    }

    /// Counts of one fault, over all nodes.
    pub(crate) fn dropped(&self, fault: Fault) -> u64 {
        self.nodes.iter().map(|place| place.node.drops().of(fault)).sum()
    }
}
