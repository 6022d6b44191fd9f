//! A node, the way its frames travel, and the messages that wait to be read.
//!
//! It must never wait: waiting is for whoever holds the descriptor.

mod addresses;
mod batch;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, OwnedFd};

use staunch_netio::datagram::{Datagram, LinkAddress, LinkUdp};
use staunch_netio::host::interface::Interface;

pub(super) use self::addresses::low_bits;
use self::addresses::{is_of_all, same, unfit};
use super::body::{self, Carrier};
use super::claim::Claim;
use super::keeper_wait::KeeperWait;
use super::options::{Backend, Options};
use super::transmitting::transmit;
use crate::fault::Fault;
use crate::greeting::Link;
use crate::header::{EVERYBODY, Kind};
use crate::joined::JoinedFrames;
use crate::node::{Message, Node, SendFault, Sending, Settings};
use crate::outgoing::Outbound;
use crate::peers::{Own, PeerEvent};

/// Frames looked at in one go: more would keep a sender waiting.
const BATCH_COUNT: usize = 64;

/// Bytes of messages that wait to be read, as of a UDP socket in Linux (net.core.rmem_default).
const QUEUE_BYTES_MAX: usize = 212_992;

/// Messages that wait to be read, so that empty ones are bounded as well.
const QUEUE_MESSAGES_MAX: usize = 4_096;

/// A message that waits to be read.
#[derive(Debug, Clone)]
pub struct Received {
    /// The sender of the message.
    pub from: SocketAddrV4,
    /// DATA, REQUEST, REPLY or ACK.
    pub kind: Kind,
    /// Whether it was sent to all.
    pub to_all: bool,
    /// Its number at the sender's port.
    pub message_id: u16,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// What a socket is made of.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) node: Node,
    pub(super) body: Carrier,
    control_body: Option<Carrier>,
    pub(super) port: u16,
    own: Ipv4Addr,
    netmask: Ipv4Addr,
    interface: u32,
    pub(super) ether_type: u16,
    udp_port: Option<u16>,
    /// In UDP: whether nodes are named to which messages to all go.
    names_everybody: bool,
    /// In UDP: why the last control frame to all left for none of them.
    refused_to_all: Option<i32>,
    port_claim: Claim,
    voice: Option<Claim>,
    next_id: u16,
    /// Addresses the program has named, by their low 16 bits.
    named: BTreeMap<u16, Ipv4Addr>,
    pub(super) queue: VecDeque<Received>,
    queue_bytes: usize,
    control: Vec<u8>,
    overrun: u64,
    /// That of the thread beside the socket, if there is one.
    pub(super) keeper_wait: Option<KeeperWait>,
}

/// Interface, addresses and carriers of an endpoint that is being opened.
pub(super) struct Opening {
    pub(super) interface: Interface,
    pub(super) own: Ipv4Addr,
    pub(super) body: Carrier,
    pub(super) control: Option<Carrier>,
    pub(super) backend: Backend,
    pub(super) link: Link,
    pub(super) mtu: u16,
    pub(super) port: u16,
    pub(super) claim: Claim,
    /// Why other backends were not taken.
    pub(super) refused: Vec<(Backend, io::Error)>,
}

impl Endpoint {
    pub(super) fn new(opening: Opening, options: &Options, seed: [u8; 16], boot: u64, now_ns: u64) -> Self {
        let now_ms = now_ns / 1_000_000;
        let Opening { interface, own, body, control, backend, link, mtu, port, claim, refused: _ } = opening;
        let address = low_bits(own);
        let settings = Settings {
            cluster: options.cluster,
            sum: options.sum,
            bounds: options.bounds,
            secrets: options.secrets.clone(),
            ..Settings::new(Own { address, link, boot, mtu }, seed)
        };
        let mut node = Node::new(settings);
        node.ports_mut().open(port);
        node.open_counter(port, now_ns);
        let udp_port = (backend == Backend::Udp).then_some(options.udp_port);
        let mut endpoint = Self {
            node,
            body,
            control_body: control,
            port,
            own,
            netmask: interface.netmask.unwrap_or(Ipv4Addr::new(255, 255, 0, 0)),
            interface: interface.index,
            ether_type: options.ether_type,
            udp_port,
            names_everybody: udp_port.is_some() && options.udp_peers.is_some(),
            refused_to_all: None,
            port_claim: claim,
            voice: None,
            next_id: u16::from_le_bytes([seed[3], seed[11]]),
            named: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_bytes: 0,
            control: Vec::new(),
            overrun: 0,
            keeper_wait: None,
        };
        endpoint.start(options.is_quiet, now_ms);
        endpoint
    }

    /// Says that the node is there, if no other process of this host does.
    fn start(&mut self, is_quiet: bool, now_ms: u64) {
        if is_quiet {
            self.node.peers_mut().set_voice(self.udp_port.is_some(), now_ms);
        } else {
            self.claim_voice(now_ms);
        }
        self.greet(now_ms);
    }

    /// The users who have names of this process's claims without a right to them, in words.
    pub(super) fn strangers(&self) -> Vec<String> {
        let claims = [Some(&self.port_claim), self.voice.as_ref()].into_iter().flatten();
        let words =
            |stranger: &str| format!("{stranger} has a name of this node's claims, which does not count");
        claims.filter_map(|claim| claim.stranger().map(words)).collect()
    }

    /// Answers for the node, unless another process does. In UDP a node is one process.
    fn claim_voice(&mut self, now_ms: u64) {
        self.voice = match self.udp_port {
            Some(_) => None,
            None => Claim::voice(self.interface, self.ether_type).ok(),
        };
        self.node.peers_mut().set_voice(self.voice.is_some() || self.udp_port.is_some(), now_ms);
    }

    /// Says to all that the node is there, if that is this process's part.
    pub(super) fn greet(&mut self, now_ms: u64) {
        if self.voice.is_some() || self.names_everybody {
            self.node.start(now_ms);
        } else {
            self.node.peers_mut().start_quietly(now_ms);
        }
    }

    /// Leaves answering for the node to another process.
    pub(super) fn give_up_voice(&mut self) {
        self.voice = None;
        self.node.peers_mut().set_voice(false, 0);
    }

    /// Answers for the node again, unless another process does.
    pub(super) fn take_voice(&mut self, now_ms: u64) {
        self.claim_voice(now_ms);
        self.greet(now_ms);
    }

    /// In UDP: why the last greeting left for nobody, if it was so.
    ///
    /// # Errors
    /// That reason: ENETUNREACH, for instance, while the interface is down.
    pub(super) fn reaches_anybody(&self) -> io::Result<()> {
        self.refused_to_all.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    /// Learns the full addresses of nodes that are named.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: one is no address of a node, or equal to another in the low 16 bits, or this node's is
    /// the only one.
    pub(super) fn name(&mut self, peers: &[Ipv4Addr]) -> io::Result<()> {
        let own = self.own;
        if !peers.is_empty() && peers.iter().all(|peer| *peer == own) {
            return Err(unfit(format!("{own} is this node's own address, and no other node is named")));
        }
        for (place, peer) in peers.iter().enumerate().filter(|(_, peer)| **peer != own) {
            let is_same = |other: &&Ipv4Addr| low_bits(**other) == low_bits(*peer) && *other != peer;
            if let Some(other) = peers[..place].iter().find(is_same) {
                return Err(same(*peer, *other));
            }
            if self.destination(*peer)? == EVERYBODY {
                return Err(unfit(format!("{peer} is a broadcast address: in UDP each node is named")));
            }
        }
        Ok(())
    }

    /// Copies of the sockets for messages and, where they come apart, for control frames, and of the port's
    /// claim.
    pub(super) fn descriptors(&self) -> io::Result<(OwnedFd, Option<OwnedFd>, OwnedFd)> {
        let control = self.control_body.as_ref().map(Carrier::socket).transpose()?;
        Ok((self.body.socket()?, control, self.port_claim.as_fd().try_clone_to_owned()?))
    }

    /// What tells of control frames, where they come apart from messages.
    pub(super) fn control_descriptor(&self) -> io::Result<Option<OwnedFd>> {
        self.control_body.as_ref().map(Carrier::descriptor).transpose()
    }

    /// Another process may have read: the places to go on at are looked for.
    pub(super) fn seek(&mut self) {
        self.body.seek();
        self.control_body.iter_mut().for_each(Carrier::seek);
    }

    /// This node's address.
    pub(super) fn own(&self) -> Ipv4Addr {
        self.own
    }

    /// The full address of a node.
    pub(super) fn address(&self, low: u16) -> Ipv4Addr {
        if low == EVERYBODY {
            return Ipv4Addr::BROADCAST;
        }
        let high = self.own.to_bits() & 0xffff_0000;
        self.named.get(&low).copied().unwrap_or(Ipv4Addr::from_bits(high | u32::from(low)))
    }

    /// The low bits of an address the program gives.
    ///
    /// # Errors
    /// Another address with the same low bits was named before, or it is no address of a node.
    pub(super) fn destination(&mut self, address: Ipv4Addr) -> io::Result<u16> {
        if is_of_all(address, self.own, self.netmask) {
            return Ok(EVERYBODY);
        }
        let low = low_bits(address);
        if low == 0 || low == EVERYBODY {
            let text = format!("{address} is no address of a node: its low 16 bits are 0 or all ones");
            return Err(unfit(text));
        }
        let known = self.address(low);
        if known != address && (self.named.contains_key(&low) || low == low_bits(self.own)) {
            return Err(same(address, known));
        }
        if known != address {
            self.named.insert(low, address);
        }
        Ok(low)
    }

    /// Sends a message; says whether all of it was taken. What was not finds no room just now.
    ///
    /// # Errors
    /// Why it cannot be sent, in the words of UDP's errors.
    pub(super) fn send(
        &mut self,
        kind: Kind,
        to: (u16, u16),
        message_id: u16,
        priority: bool,
        payload: &[u8],
        now_ms: u64,
    ) -> io::Result<bool> {
        let (destination, destination_port) = to;
        let source_port = self.port;
        let outbound = Outbound { kind, destination, source_port, destination_port, message_id, priority };
        let sent = self.send_message(&outbound, payload, now_ms);
        self.flush(now_ms)?;
        sent
    }

    /// An id for a message, which is no other's: somebody may have got a part of a message that was given up.
    pub(super) fn draw_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    #[inline]
    fn send_message(&mut self, outbound: &Outbound, payload: &[u8], now_ms: u64) -> io::Result<bool> {
        self.tell_of(outbound.destination, now_ms);
        match self.node.send(outbound, payload, now_ms) {
            Ok(Sending::Frames { link, frames }) => {
                let sent = transmit(&mut self.node, &mut self.body, link, frames, now_ms);
                if !matches!(sent, Ok(true)) {
                    self.node.unsent(1);
                }
                sent
            }
            Ok(Sending::Parked) => Ok(true),
            Err(fault) => Err(self.send_error(fault)),
        }
    }

    /// In UDP the link address of a node follows from its address.
    fn tell_of(&mut self, destination: u16, now_ms: u64) {
        let Some(port) = self.udp_port else { return };
        if destination != EVERYBODY && self.node.peers().link(destination).is_none() {
            let link = LinkUdp::link(SocketAddrV4::new(self.address(destination), port));
            self.node.peers_mut().tell(destination, Link(link.0), now_ms);
        }
    }

    /// Takes what has come. The first message goes to `sink` if it is wanted there, the others wait.
    pub(super) fn receive(&mut self, now_ms: u64, sink: &mut dyn FnMut(Received)) -> io::Result<usize> {
        let Self { node, body, own, named, port, queue, queue_bytes, .. } = self;
        let mut wanted = queue.is_empty();
        let frames = body.receive(BATCH_COUNT, &mut |datagram| {
            let mut joined = JoinedFrames::new(datagram.bytes);
            while let Some(message) = node.receive(Link(datagram.path.0), &mut joined, now_ms) {
                if message.destination_port != *port {
                    continue;
                }
                let received = received(*own, named, message);
                if wanted {
                    wanted = false;
                    sink(received);
                } else if queue.len() < QUEUE_MESSAGES_MAX
                    && *queue_bytes + received.payload.len() <= QUEUE_BYTES_MAX
                {
                    *queue_bytes += received.payload.len();
                    queue.push_back(received);
                } else {
                    node.count(Fault::Queue);
                }
            }
        })?;
        for _ in 0..body.take_strangers() {
            node.count(Fault::Unknown);
        }
        self.tend(now_ms)?;
        Ok(frames)
    }

    /// The next message that waits.
    pub(super) fn pop(&mut self) -> Option<Received> {
        let received = self.queue.pop_front()?;
        self.queue_bytes -= received.payload.len();
        Some(received)
    }

    /// Puts a message back that was only looked at.
    pub(super) fn put_back(&mut self, received: Received) {
        self.queue_bytes += received.payload.len();
        self.queue.push_front(received);
    }

    /// Takes control frames, where they come apart from messages, and does what is due.
    pub(super) fn keep(&mut self, now_ms: u64) -> io::Result<()> {
        let Self { node, control_body, keeper_wait, .. } = self;
        if let Some(wait) = keeper_wait {
            wait.end();
        }
        if let Some(body) = control_body {
            let mut take = |datagram: Datagram<'_, LinkAddress>| {
                // No message comes here, and no joined frame is one of control.
                node.receive(Link(datagram.path.0), &mut JoinedFrames::new(datagram.bytes), now_ms);
            };
            while body.receive(BATCH_COUNT, &mut take)? == BATCH_COUNT {}
        }
        self.tend(now_ms)
    }

    /// Does what is due, and sends what the node wants to say.
    pub(super) fn tend(&mut self, now_ms: u64) -> io::Result<()> {
        if self.node.due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            self.node.tick(now_ms);
        }
        if self.node.peers().has_unheard() {
            // The process that spoke for this node may have ended: this process claims the voice.
            self.claim_voice(now_ms);
        }
        self.flush(now_ms)
    }

    /// Frames that the kernel dropped because nobody took them in time.
    pub(super) fn overrun(&mut self) -> u64 {
        self.overrun += self.body.overrun();
        self.overrun
    }

    /// What has happened to peers.
    pub(super) fn poll_event(&mut self) -> Option<PeerEvent> {
        self.node.poll_event()
    }

    /// Sends what the node wants to say, and what waited and may go now.
    fn flush(&mut self, now_ms: u64) -> io::Result<()> {
        let acted = self.say(now_ms).and_then(|said| Ok(said | self.send_parked(now_ms)?));
        if !matches!(acted, Ok(false))
            && let Some(wait) = &mut self.keeper_wait
        {
            // The program may do nothing more here for long, and a question has to be repeated.
            wait.shorten(self.node.due_ms());
        }
        acted.map(|_| ())
    }

    /// Says whether there was anything to say.
    fn say(&mut self, now_ms: u64) -> io::Result<bool> {
        let mut frame = std::mem::take(&mut self.control);
        let mut said = false;
        while let Some(link) = self.node.poll_control(now_ms, &mut frame) {
            said = true;
            // What matters is repeated: a frame that finds no room is not kept. In UDP there is no way to
            // all where nobody is named.
            let sent = self.body.send(&[body::transmit(link, &[], &frame)])?;
            if link == Link::EVERYBODY && self.names_everybody {
                self.refused_to_all = (sent.refused > 0).then_some(sent.errno);
            }
            frame.clear();
        }
        self.control = frame;
        Ok(said)
    }

    /// Says whether anything was tried.
    fn send_parked(&mut self, now_ms: u64) -> io::Result<bool> {
        let mut tried = false;
        while let Some((outbound, payload)) = self.node.poll_parked(now_ms) {
            tried = true;
            self.tell_of(outbound.destination, now_ms);
            let Self { node, body, .. } = self;
            let sent = node.send_parked(outbound, payload, now_ms, |node, link, frames| {
                transmit(node, body, link, frames, now_ms)
            });
            // An error of the message alone is counted, and is no error of the call that found its address.
            sent.or_else(|error| if error.kind() == ErrorKind::NetworkDown { Err(error) } else { Ok(()) })?;
        }
        Ok(tried)
    }

    /// The thread beside the socket begins to wait. Says until when.
    pub(super) fn keeper_waits(&mut self) -> Option<u64> {
        let due_ms = self.node.due_ms();
        if let Some(wait) = &mut self.keeper_wait {
            wait.begin(due_ms);
        }
        due_ms
    }

    fn send_error(&self, fault: SendFault) -> io::Error {
        let errno = match fault {
            SendFault::Unreachable => rustix::io::Errno::HOSTUNREACH,
            SendFault::NoRoom => rustix::io::Errno::NOBUFS,
            SendFault::TooLong => rustix::io::Errno::MSGSIZE,
            SendFault::Refused => return self.conflict(),
        };
        errno.into()
    }

    /// The error of a node whose address another one holds.
    pub(super) fn conflict(&self) -> io::Error {
        let peers = self.node.peers();
        let holder = peers.refused_by().map_or_else(String::new, |link| link.to_string());
        let message = format!("address {} is held by {holder} (this node is {})", self.own, peers.own().link);
        io::Error::new(ErrorKind::AddrInUse, message)
    }
}

fn received(own: Ipv4Addr, named: &BTreeMap<u16, Ipv4Addr>, message: Message<'_>) -> Received {
    let high = own.to_bits() & 0xffff_0000;
    let derived = Ipv4Addr::from_bits(high | u32::from(message.source));
    let address = named.get(&message.source).copied().unwrap_or(derived);
    Received {
        from: SocketAddrV4::new(address, message.source_port),
        kind: message.kind,
        to_all: message.destination == EVERYBODY,
        message_id: message.message_id,
        payload: message.payload.into_owned(),
    }
}
