//! A node: what it does with each frame, and what it sends.
//!
//! It owns the order of checks of `docs/dostp.md` and every count of what was dropped. It must never read a
//! clock, make a system call, or hand a message on twice.
//!
//! Order of calls: [`Node::start`]; [`Node::receive`] for each frame of the link until it gives no message,
//! [`Node::send`] for each message, [`Node::tick`] when [`Node::due_ms`] has come; after each of them
//! [`Node::poll_control`] and [`Node::poll_parked`] until they have nothing. Each message of the latter goes
//! by [`Node::send_parked`].

mod parking;
mod receiving;

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::fault::{Drops, Fault};
use crate::greeting::{Greeting, Link};
use crate::header::{EVERYBODY, Flags, Header, Kind};
use crate::keys::{Keys, Mode, Secrets};
use crate::limits::{HEADER_BYTES, PEERS_MAX, SUM_BYTES};
use crate::outgoing::{FrameOut, Frames, Outbound};
use crate::parked::Parked;
use crate::peers::{Own, PeerEvent, Peers, Route};
use crate::ports::Ports;
use crate::reassembly::{Bounds, Reassembly};
use crate::window::FlowIds;

/// What a node is told once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The node's own addresses, boot number and MTU.
    pub own: Own,
    /// The number of its cluster.
    pub cluster: u8,
    /// Whether its frames bear a checksum.
    pub sum: bool,
    /// How much of incomplete messages it holds.
    pub bounds: Bounds,
    /// How many peers it knows at most.
    pub peers_max: usize,
    /// Secret, and different at each start.
    pub seed: [u8; 16],
    /// The secrets of the cluster; `None` if its frames bear no tag.
    pub secrets: Option<Secrets>,
}

impl Settings {
    /// The defaults.
    pub fn new(own: Own, seed: [u8; 16]) -> Self {
        Self {
            own,
            cluster: 0,
            sum: false,
            bounds: Bounds::default(),
            peers_max: PEERS_MAX,
            seed,
            secrets: None,
        }
    }
}

/// A whole message that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// DATA, REQUEST, REPLY or ACK.
    pub kind: Kind,
    /// The sender's address.
    pub source: u16,
    /// The sender's port.
    pub source_port: u16,
    /// This node's address, or all.
    pub destination: u16,
    /// The port it is for.
    pub destination_port: u16,
    /// Its number at the sender's port.
    pub message_id: u16,
    /// Its bytes: those of the frame, if it was whole.
    pub payload: Cow<'a, [u8]>,
}

/// How a message leaves.
#[derive(Debug)]
pub enum Sending<'a> {
    /// In these frames, to that link address.
    Frames {
        /// Where they go.
        link: Link,
        /// What is to be sent.
        frames: Frames<'a>,
    },
    /// The message waits until its node's link address is found; see [`Node::poll_parked`].
    Parked,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFault {
    /// No node answers at the address (EHOSTUNREACH).
    Unreachable,
    /// Too much waits for that address (ENOBUFS).
    NoRoom,
    /// Longer than the setting, or than 256 fragments hold (EMSGSIZE).
    TooLong,
    /// Another node holds this node's address (EADDRINUSE).
    Refused,
}

/// Counts of what passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Payloads of the link that came; joined frames are one.
    pub frames_received: u64,
    /// Control frames among them that were taken.
    pub control_received: u64,
    /// Messages handed on.
    pub messages_received: u64,
    /// Messages sent to peers.
    pub messages_sent: u64,
    /// Control frames sent.
    pub control_sent: u64,
}

/// The state of a node: its peers, its messages under way, and its deadlines.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    peers: Peers,
    ports: Ports,
    flows: FlowIds,
    reassembly: Reassembly,
    parked: Parked,
    drops: Drops,
    passed: Passed,
    events: VecDeque<PeerEvent>,
    keys: Option<Keys>,
}

impl Node {
    /// A node that was not started.
    pub fn new(settings: Settings) -> Self {
        let [low, high] =
            [0, 8].map(|at| settings.seed[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        Self {
            peers: Peers::new(settings.own, settings.peers_max, settings.seed),
            ports: Ports::default(),
            flows: FlowIds::new(low),
            reassembly: Reassembly::new(settings.bounds, high),
            parked: Parked::default(),
            drops: Drops::default(),
            passed: Passed::default(),
            events: VecDeque::new(),
            keys: settings
                .secrets
                .clone()
                .map(|secrets| Keys::new(secrets, settings.own.address, settings.own.boot)),
            settings,
        }
    }

    /// Says to all that it is there.
    pub fn start(&mut self, now_ms: u64) {
        self.peers.start(now_ms);
    }

    /// The table of peers.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// The table of peers, to start quietly, to leave, or to tell an address.
    pub fn peers_mut(&mut self) -> &mut Peers {
        &mut self.peers
    }

    /// The open ports.
    pub fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Other secrets, or another slot to send by. A node without keys stays without.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        if let Some(keys) = &mut self.keys {
            keys.set(secrets);
        }
    }

    /// A socket opens this port at that time of a clock that begins with the host's start: with keys,
    /// counters must not be used twice.
    pub fn open_counter(&mut self, port: u16, now_ns: u64) {
        if let Some(keys) = &mut self.keys {
            keys.open_port(port, now_ns);
        }
    }

    /// Whether frames bear a trailer: then they are written by [`Node::write`].
    pub fn has_trailer(&self) -> bool {
        self.settings.sum || self.keys.is_some()
    }

    /// Writes a frame, header, payload and trailer, behind what stands in `bytes`.
    pub fn write(&mut self, frame: &FrameOut<'_>, now_ms: u64, bytes: &mut Vec<u8>) {
        match &mut self.keys {
            Some(keys) => keys.seal(frame, now_ms, bytes),
            None => frame.write(bytes),
        }
    }

    /// What was dropped.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Counts a drop that happens above: a full queue.
    pub fn count(&mut self, fault: Fault) {
        self.drops.count(fault);
    }

    /// What passed.
    pub fn passed(&self) -> Passed {
        self.passed
    }

    /// Messages under way and the bytes held for them.
    pub fn under_way(&self) -> (usize, usize) {
        (self.reassembly.messages(), self.reassembly.bytes())
    }

    /// Prepares a message for sending.
    ///
    /// # Errors
    /// Why it cannot be sent.
    #[inline]
    pub fn send<'a>(
        &mut self,
        outbound: &Outbound,
        payload: &'a [u8],
        now_ms: u64,
    ) -> Result<Sending<'a>, SendFault> {
        if payload.len() > self.settings.bounds.message_bytes_max {
            return Err(SendFault::TooLong);
        }
        let has_to_wait = self.parked.is_ready(outbound.destination);
        match self.peers.route(outbound.destination, now_ms) {
            Route::To { link, mtu } if !has_to_wait => {
                let frames = self.frames(outbound, payload, mtu).ok_or(SendFault::TooLong)?;
                self.passed.messages_sent += 1;
                Ok(Sending::Frames { link, frames })
            }
            Route::To { .. } | Route::Wait if self.parked.park(outbound, payload) => Ok(Sending::Parked),
            Route::To { .. } | Route::Wait => Err(SendFault::NoRoom),
            Route::Unreachable if self.peers.refused_by().is_some() => Err(SendFault::Refused),
            Route::Unreachable => Err(SendFault::Unreachable),
        }
    }

    /// Whether a message to this address leaves at once: the address is known, and none waits before it.
    pub fn is_open(&self, destination: u16) -> bool {
        destination == EVERYBODY
            || (self.peers.link(destination).is_some() && !self.parked.is_ready(destination))
    }

    /// Takes messages of [`Node::send`] out of the count, so many that found no room and were not sent.
    pub fn unsent(&mut self, count: usize) {
        self.passed.messages_sent -= count as u64;
    }

    /// Does what is due.
    pub fn tick(&mut self, now_ms: u64) {
        for _ in 0..self.reassembly.expire(now_ms) {
            self.drops.count(Fault::Expired);
        }
        self.peers.tick(now_ms);
        self.digest_events();
    }

    /// When [`Node::tick`] has something to do at the earliest.
    pub fn due_ms(&self) -> Option<u64> {
        let due = [self.peers.due_ms(), self.reassembly.expiry_ms(), self.parked.due_ms()];
        due.into_iter().flatten().min()
    }

    /// Writes the next control frame that is due behind what stands in `frame`, and says where it goes.
    pub fn poll_control(&mut self, now_ms: u64, frame: &mut Vec<u8>) -> Option<Link> {
        let control = self.peers.poll_control(now_ms)?;
        let own = self.settings.own;
        let greeting = Greeting {
            boot: own.boot,
            challenge: control.challenge,
            echo: control.echo,
            mtu: own.mtu,
            link: own.link,
        };
        let mut payload = greeting.encode().to_vec();
        let (mark, _) = self.mark();
        let trailer_bytes = if self.keys.is_some() { Mode::Mac.trailer_bytes() } else { self.mark().1 };
        let padded = usize::from(control.frame_bytes).saturating_sub(HEADER_BYTES + trailer_bytes);
        payload.resize(payload.len().max(padded), 0);
        let header = Header {
            kind: control.kind,
            flags: mark.with(Flags::WHOLE),
            source: own.address,
            destination: control.destination,
            source_port: 0,
            destination_port: 0,
            message_id: 0,
            length: payload.len() as u16,
            sequence: 0,
        };
        let head = header.encode(self.settings.cluster);
        self.write(&FrameOut { header, head, payload: &payload }, now_ms, frame);
        self.passed.control_sent += 1;
        Some(control.to)
    }

    /// The oldest change of a peer that was not asked for yet.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.digest_events();
        self.events.pop_front()
    }

    fn frames<'a>(&self, outbound: &Outbound, payload: &'a [u8], mtu: u16) -> Option<Frames<'a>> {
        let (mark, trailer_bytes) = self.mark();
        let source = self.settings.own.address;
        Frames::new(source, outbound, payload, mtu, mark, trailer_bytes, self.settings.cluster)
    }

    /// The flag of the trailer this node's frames bear, and its length.
    fn mark(&self) -> (Flags, usize) {
        match &self.keys {
            Some(keys) => (Flags::AUTH, keys.mode().trailer_bytes()),
            None if self.settings.sum => (Flags::SUM, SUM_BYTES),
            None => (Flags::default(), 0),
        }
    }

    /// What happened to peers concerns what they have under way and what waits for them.
    #[inline]
    fn digest_events(&mut self) {
        while let Some(event) = self.peers.poll_event() {
            match event {
                PeerEvent::Restarted(address) => {
                    self.flows.forget(address);
                    self.reassembly.forget(address);
                    if let Some(keys) = &mut self.keys {
                        keys.forget(address);
                    }
                }
                PeerEvent::Appeared(address) => self.parked.found(address),
                PeerEvent::Unreachable(address) => {
                    for _ in 0..self.parked.lost(address) {
                        self.drops.count(Fault::Unresolved);
                    }
                }
                PeerEvent::Moved(_) | PeerEvent::Gone(_) | PeerEvent::SmallPath(_) => {}
            }
            if self.events.len() < EVENTS_MAX {
                self.events.push_back(event);
            }
        }
    }
}

/// Events kept for whoever tells people of them; the others are not told, but acted upon.
const EVENTS_MAX: usize = 1_024;

#[cfg(test)]
mod tests;
