//! Connecting beside accepting in one backend: neither takes room from the other, and each end of a relay
//! feels what the other end does.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use staunch_netio::{Address, Capacity, Io, Slot, Target, socket};

use super::Make;
use super::accepting::alone;
use super::harness::{Event, Harness, Random, nobody, pattern_bytes, reset};

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ECONNREFUSED: i32 = 111;

const BOTH: Capacity = Capacity { connected: 4, accepted: 6 };

fn peer() -> (TcpListener, Target) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::new(Address::Internet(listener.local_addr().unwrap()));
    (listener, target)
}

/// A peer whose connections have a receive buffer of a few KiB.
fn narrow_peer() -> (TcpListener, Target) {
    let (listener, target) = peer();
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 8 * 1024).unwrap();
    (listener, target)
}

/// A side of a relay.
#[derive(Default)]
struct End {
    partner: Slot,
    /// Bytes for it that are not handed over yet.
    queued: Vec<u8>,
    sending: bool,
    /// Its partner will send no more.
    last: bool,
}

/// Passes bytes on between pairs of connections. What is sent to one end is waited for before its partner is
/// read on.
#[derive(Default)]
struct Relay {
    ends: HashMap<Slot, End>,
}

impl Relay {
    /// Ties two connections to each other.
    fn tie<I: Io>(&mut self, harness: &mut Harness<I>, one: Slot, other: Slot) {
        for (slot, partner) in [(one, other), (other, one)] {
            self.ends.insert(slot, End { partner, ..End::default() });
            harness.io.receive(slot);
        }
    }

    /// Does what an event asks for.
    fn take<I: Io>(&mut self, harness: &mut Harness<I>, event: Event) {
        match event {
            Event::Received(slot, bytes) => {
                harness.io.pause(slot);
                let to = self.ends[&slot].partner;
                self.ends.get_mut(&to).unwrap().queued.extend(bytes);
                self.go_on(harness, to);
            }
            Event::Sent(slot, 0) => {
                self.ends.get_mut(&slot).unwrap().sending = false;
                self.go_on(harness, slot);
            }
            Event::Ended(slot, 0) => {
                let to = self.ends[&slot].partner;
                self.ends.get_mut(&to).unwrap().last = true;
                self.go_on(harness, to);
            }
            Event::Progress(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn go_on<I: Io>(&mut self, harness: &mut Harness<I>, slot: Slot) {
        let end = self.ends.get_mut(&slot).unwrap();
        if end.sending {
            return;
        }
        if !end.queued.is_empty() {
            end.sending = true;
            harness.send_bytes(slot, &std::mem::take(&mut end.queued), false);
        } else if end.last {
            harness.io.shutdown(slot);
        } else {
            harness.io.receive(end.partner);
        }
    }
}

/// A client, its slot, the server that a connection was made to, and that connection's slot.
fn tied<I: Io>(harness: &mut Harness<I>, listener: &TcpListener, target: &Target) -> Tied {
    let (client, accepted) = harness.connect_narrow();
    let connected = harness.connect_to(target);
    assert!(harness.io.capacity().is_connected(connected) && !harness.io.capacity().is_connected(accepted));
    let (server, _) = listener.accept().unwrap();
    Tied { client, accepted, server, connected }
}

struct Tied {
    client: TcpStream,
    accepted: Slot,
    server: TcpStream,
    connected: Slot,
}

/// Writes the pattern on from an offset until nobody takes any more, without reading.
fn fill_from(mut stream: &TcpStream, start: usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    while let Ok(count) = stream.write(&pattern_bytes((start + written) as u64, 4096)) {
        written += count;
    }
    stream.set_nonblocking(false).unwrap();
    written
}

/// Reads so many bytes of the pattern, then sends some more, and the end.
fn drain(mut stream: TcpStream, expected: usize) {
    let mut got = vec![0; expected];
    stream.read_exact(&mut got).unwrap();
    assert!(got == pattern_bytes(0, expected));
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "more than was sent");
}

/// Bytes stand still both ways while neither end reads, and all arrive once they do.
pub(crate) fn both_directions_full<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let (listener, target) = narrow_peer();
    let tied = tied(&mut harness, &listener, &target);
    let mut relay = Relay::default();
    relay.tie(&mut harness, tied.accepted, tied.connected);
    let (mut up, mut down) = (0, 0);
    loop {
        let before = (up, down);
        let (from_client, from_server) = (fill_from(&tied.client, up), fill_from(&tied.server, down));
        (up, down) = (up + from_client, down + from_server);
        for event in harness.settle() {
            relay.take(&mut harness, event);
        }
        if (up, down) == before {
            break;
        }
    }
    assert!(up > 0 && down > 0);
    let Tied { client, server, .. } = tied;
    let readers = [thread::spawn(move || drain(client, down)), thread::spawn(move || drain(server, up))];
    while readers.iter().any(|reader| !reader.is_finished()) {
        if let Some(event) = harness.next_within(Duration::from_millis(5)) {
            relay.take(&mut harness, event);
        }
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

/// Connections come and are made in any order; each is the other's peer for nobody.
pub(crate) fn in_any_order<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let (listener, target) = peer();
    for round in 0..20_u64 {
        let slot = harness.begin(&target).unwrap();
        let mut client = TcpStream::connect(harness.address).unwrap();
        let mut accepted = None;
        let mut connected = false;
        while accepted.is_none() || !connected {
            match harness.next() {
                Event::Accepted(slot) => accepted = Some(slot),
                Event::Connected(begun, 0) => connected = begun == slot,
                other => panic!("{other:?}"),
            }
        }
        let (mut server, _) = listener.accept().unwrap();
        let accepted = accepted.unwrap();
        let word = pattern_bytes(round, 9);
        harness.io.receive(accepted);
        harness.io.receive(slot);
        client.write_all(&word).unwrap();
        harness.expect(&Event::Received(accepted, word.clone()));
        harness.send_bytes(slot, &word, round % 2 == 0);
        harness.until(|event| *event == Event::Sent(slot, 0));
        let mut got = [0; 9];
        server.read_exact(&mut got).unwrap();
        assert_eq!(got[..], word);
        if round % 2 == 0 {
            harness.expect(&Event::Closed(slot));
        } else {
            harness.close_and_wait(slot);
        }
        drop(client);
        harness.expect(&Event::Ended(accepted, 0));
        harness.close_and_wait(accepted);
        harness.expect_quiet();
    }
}

/// A backend that is its own peer: both ends stand in the same table.
pub(crate) fn to_itself<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let target = Target::new(Address::Internet(harness.address));
    for round in 0..10_u64 {
        let slot = harness.begin(&target).unwrap();
        let mut accepted = None;
        for _ in 0..2 {
            match harness.next() {
                Event::Accepted(slot) => accepted = Some(slot),
                event => assert_eq!(event, Event::Connected(slot, 0)),
            }
        }
        let (accepted, length) = (accepted.unwrap(), 100_000);
        harness.io.receive(accepted);
        harness.send_bytes(slot, &pattern_bytes(round, length), true);
        let mut got = Vec::new();
        let mut closed = false;
        while got.len() < length || !closed {
            match harness.next() {
                Event::Received(from, bytes) => {
                    assert_eq!(from, accepted);
                    got.extend(bytes);
                }
                Event::Closed(_) => closed = true,
                Event::Sent(..) | Event::Progress(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(got == pattern_bytes(round, length));
        harness.expect(&Event::Ended(accepted, 0));
        harness.close_and_wait(accepted);
    }
}

/// What is refused, and what is given up before an answer has come, leaves the accepted ones alone.
pub(crate) fn refused_and_abandoned<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let (mut client, accepted) = harness.connect();
    harness.io.receive(accepted);
    let (_bound, nobody) = nobody();
    // A listener whose queue is full does not answer.
    let full = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 0).unwrap();
    let deaf = Target::new(Address::Internet(socket::local_address(&full).unwrap()));
    let in_queue = harness.connect_to(&deaf);
    for round in 0..10_u64 {
        let refused = harness.begin(&nobody).unwrap();
        harness.expect(&Event::Connected(refused, ECONNREFUSED));
        let waiting = harness.begin(&deaf).unwrap();
        client.write_all(&pattern_bytes(round, 5)).unwrap();
        harness.expect(&Event::Received(accepted, pattern_bytes(round, 5)));
        for slot in [refused, waiting] {
            harness.close(slot);
            harness.expect(&Event::Closed(slot));
        }
    }
    harness.close_and_wait(in_queue);
    harness.expect_quiet();
}

/// The peer of one end breaks off after so many bytes: what came before is passed on, and the other end hears
/// of it.
pub(crate) fn the_peer_is_cut<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let (listener, target) = peer();
    for length in 0..40 {
        let tied = tied(&mut harness, &listener, &target);
        let (accepted, connected) = (tied.accepted, tied.connected);
        let (Tied { mut client, mut server, .. }, from_server) = (tied, length % 2 == 0);
        let (cut, whole) = if from_server { (&mut server, &mut client) } else { (&mut client, &mut server) };
        let (from, to) = if from_server { (connected, accepted) } else { (accepted, connected) };
        let bytes = pattern_bytes(0, length);
        harness.io.receive(from);
        cut.write_all(&bytes).unwrap();
        if length > 0 {
            harness.expect(&Event::Received(from, bytes.clone()));
            harness.send_bytes(to, &bytes, false);
            harness.expect(&Event::Sent(to, 0));
        }
        let mut got = vec![0; length];
        whole.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
        reset(if from_server { server } else { client });
        harness.expect(&Event::Ended(from, 104));
        harness.close_and_wait(from);
        harness.close_and_wait(to);
        harness.expect_quiet();
    }
}

/// Neither those who come nor those we connect to take room from the other.
pub(crate) fn full_of_either<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, BOTH);
    let (listener, target) = peer();
    let refusal = |harness: &mut Harness<I>| harness.begin(&target).unwrap_err().raw_os_error();
    let mut connected: Vec<_> = (0..BOTH.connected).map(|_| harness.connect_to(&target)).collect();
    assert_eq!(refusal(&mut harness), Some(ENFILE));
    let mut clients: Vec<_> = (0..BOTH.accepted).map(|_| harness.connect()).collect();
    assert_eq!(refusal(&mut harness), Some(ENFILE));
    let _waiting = TcpStream::connect(harness.address).unwrap();
    harness.settle();
    for round in 0..20 {
        if round % 2 == 0 {
            let slot = connected.remove(0);
            harness.close_and_wait(slot);
            assert_eq!(harness.begin(&target).unwrap(), slot, "the slots of accepted ones are not ours");
            harness.until(|event| *event == Event::Connected(slot, 0));
            connected.push(slot);
        } else {
            let (client, slot) = clients.remove(0);
            harness.close_and_wait(slot);
            drop(client);
            assert_eq!(refusal(&mut harness), Some(ENFILE));
            harness.io.accept(0);
            // A client waits, and there is room for one.
            let accepted = loop {
                match harness.next() {
                    Event::Accepted(slot) => break slot,
                    Event::AcceptStopped(_) => harness.io.accept(0),
                    other => panic!("{other:?}"),
                }
            };
            clients.push((TcpStream::connect(harness.address).unwrap(), accepted));
        }
    }
    drop(listener);
}

/// In a process of its own: without a descriptor nothing is begun; the listener and what is there go on.
pub(crate) fn descriptors_run_out_for_both<I: Io>(make: Make<I>) {
    alone("beside::descriptors_run_out_for_both", || {
        let mut harness = Harness::new(make, BOTH);
        let (listener, target) = peer();
        let (mut client, accepted) = harness.connect();
        harness.io.receive(accepted);
        let made = harness.connect_to(&target);
        let (mut server, _) = listener.accept().unwrap();
        let before = getrlimit(Resource::Nofile);
        let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/dev/null").unwrap()) as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(next), ..before }).unwrap();
        for round in 0..10 {
            assert_eq!(harness.begin(&target).unwrap_err().raw_os_error(), Some(EMFILE));
            client.write_all(&[round]).unwrap();
            harness.expect(&Event::Received(accepted, vec![round]));
            harness.send_bytes(made, &[round], false);
            harness.expect(&Event::Sent(made, 0));
            server.read_exact(&mut [0]).unwrap();
        }
        setrlimit(Resource::Nofile, before).unwrap();
        harness.connect_to(&target);
        harness.connect();
    });
}

/// Clients, servers and the owner do anything at any time; the harness holds all of it against the contract.
pub(crate) fn chaos_of_both<I: Io>(make: Make<I>) {
    for seed in 1..=3 {
        println!("seed {seed}");
        Chaos::new(make, seed).play();
    }
}

struct Chaos<I> {
    harness: Harness<I>,
    random: Random,
    listener: TcpListener,
    targets: [Target; 2],
    /// Keeps the port of the second target.
    _bound: OwnedFd,
    /// Clients and servers, whichever.
    peers: Vec<TcpStream>,
    /// Slots by number: whether bytes may be sent.
    owned: HashMap<Slot, bool>,
    /// Accepting has stopped.
    stopped: bool,
}

impl<I: Io> Chaos<I> {
    fn new(make: Make<I>, seed: u64) -> Self {
        let harness = Harness::new(make, Capacity { connected: 9, accepted: 13 });
        let ((bound, nobody), (listener, target)) = (nobody(), peer());
        listener.set_nonblocking(true).unwrap();
        let targets = [target, nobody];
        let (random, peers, owned) = (Random(seed), Vec::new(), HashMap::new());
        Self { harness, random, listener, _bound: bound, targets, peers, owned, stopped: false }
    }

    fn play(mut self) {
        for _ in 0..4_000 {
            self.peers.extend(self.listener.accept().map(|(server, _)| server));
            if std::mem::take(&mut self.stopped) {
                self.harness.io.accept(0);
            }
            self.act_as_peer();
            self.act_as_owner();
            self.harness.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
            while let Some(event) = self.harness.poll() {
                self.note(&event);
            }
        }
        self.peers.clear();
        let mut slots: Vec<Slot> = std::mem::take(&mut self.owned).into_keys().collect();
        slots.sort_unstable();
        let mut harness = self.harness;
        slots.into_iter().for_each(|slot| harness.close(slot));
        harness.settle();
        // Nothing is lost: all slots to connect with are free.
        for _ in 0..harness.io.capacity().connected {
            harness.begin(&self.targets[0]).unwrap();
        }
    }

    fn act_as_peer(&mut self) {
        if self.random.below(3) == 0 && self.peers.len() < 40 {
            // A client finds a queue, at the worst.
            self.peers.extend(TcpStream::connect(self.harness.address));
        }
        if self.peers.is_empty() {
            return;
        }
        let index = self.random.below(self.peers.len());
        match self.random.below(6) {
            0 => drop(self.peers.swap_remove(index)),
            1 => reset(self.peers.swap_remove(index)),
            2 => drop((&self.peers[index]).write(b"whatever")),
            _ => {}
        }
    }

    fn act_as_owner(&mut self) {
        let slot = self.random.below(22) as Slot;
        let choice = self.random.below(8);
        match (choice, self.owned.get(&slot).copied()) {
            (0..=1, None) => {
                let target = &self.targets[usize::from(self.random.below(8) == 0)];
                if let Ok(slot) = self.harness.begin(target) {
                    self.owned.insert(slot, false);
                }
            }
            (2..=3, Some(_)) => {
                self.harness.close(slot);
                self.owned.remove(&slot);
            }
            (4, Some(true)) => self.harness.send_once(slot, b"words"),
            (5, Some(true)) => self.harness.io.receive(slot),
            (6, Some(true)) => self.harness.io.pause(slot),
            (7, Some(_)) if self.harness.io.capacity().is_connected(slot) => self.harness.inspect_once(slot),
            _ => {}
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Accepted(slot) => _ = self.owned.insert(*slot, true),
            Event::Connected(slot, 0) => _ = self.owned.get_mut(slot).map(|open| *open = true),
            Event::AcceptStopped(_) => self.stopped = true,
            _ => {}
        }
    }
}
