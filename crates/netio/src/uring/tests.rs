//! What the kernel does only now and then: completions in an order that some versions of it produce, and a
//! chain that it takes in part.
//!
//! It must never depend on the time something takes: what is awaited is waited for.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::handed::Device;
use super::ring_set::Burst;
use super::slots::CLOSE_LINKED;
use super::token::{Operation, pack};
use super::{Limits, Uring, probe};
use crate::{Completion, Io, Outgoing, Slot, Waker, socket};

/// After this long without the completion it waits for, a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer that is copied behind its head.
const ANSWER_BYTES: usize = 20_000;

struct Scene {
    io: Uring,
    address: SocketAddr,
}

impl Scene {
    /// A backend that accepts; `None` where io_uring may not be used.
    fn new() -> Option<Self> {
        Self::of(16, Duration::from_secs(10))
    }

    /// A backend for so many connections, with bursts that are over after this time.
    fn of(capacity: u32, burst: Duration) -> Option<Self> {
        let features = probe().inspect_err(|refusal| eprintln!("not tested: {refusal}")).ok()?;
        let listener = listener();
        let address = socket::local_address(&listener).unwrap();
        let waker = Waker::new().unwrap();
        let limits = Limits { ring_capacity: capacity, buffers_max: 1024, burst };
        let mut io = Uring::with_limits(vec![listener], waker, capacity, &features, limits).unwrap();
        io.accept(0);
        Some(Self { io, address })
    }

    fn next(&mut self) -> Completion {
        for _ in 0..100 {
            if let Some(completion) = self.io.next_completion() {
                return completion;
            }
            self.io.submit_and_wait(Some(PATIENCE)).unwrap();
        }
        panic!("nothing happened");
    }

    /// A peer, and the slot it was accepted into.
    fn connection(&mut self) -> (TcpStream, Slot) {
        let peer = peer(self.address);
        match self.next() {
            Completion::Accepted { slot, .. } => (peer, slot),
            other => panic!("{other:?}"),
        }
    }

    /// Sends an answer and closes, by a chain that is not handed over yet.
    fn send_last(&mut self, slot: Slot) {
        // What belongs to the accept is handed over.
        self.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
        let mut outgoing = Box::<Outgoing>::default();
        outgoing.bytes().extend_from_slice(&[b'x'; ANSWER_BYTES]);
        self.io.send(slot, outgoing, true);
        assert!(self.io.connections.slots.get(slot).has(CLOSE_LINKED));
    }

    /// How the last send of a slot ended, after which the slot is closed.
    fn end_of(&mut self, slot: Slot) -> i32 {
        let errno = match self.next() {
            Completion::Sent { slot: sent, errno, .. } if sent == slot => errno,
            other => panic!("{other:?}"),
        };
        let closed = self.next();
        assert!(matches!(closed, Completion::Closed { slot: closed } if closed == slot), "{closed:?}");
        errno
    }
}

/// Connections of this listener have room for less than an answer.
fn listener() -> OwnedFd {
    let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 16).unwrap();
    sockopt::set_socket_send_buffer_size(&listener, 2048).unwrap();
    listener
}

/// A peer who has room for less than an answer.
fn peer(address: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 2048).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let peer = TcpStream::from(socket);
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    peer
}

/// How many connections bring something at once.
const CROWD: usize = 100;

impl Scene {
    /// Waits until so many receives were reported and given back. Returns how many buffers there were at
    /// most.
    fn receive(&mut self, mut count: usize) -> usize {
        let mut most = 0;
        while count > 0 {
            if let Completion::Received { input, .. } = self.next() {
                assert_eq!(self.io.input(&input), b"hello");
                self.io.release(input);
                count -= 1;
            }
            most = most.max(self.io.receive_buffers());
        }
        most
    }

    /// Lets the time pass until the condition holds.
    fn wait_until(&mut self, holds: impl Fn(&Uring) -> bool) {
        for _ in 0..1000 {
            if holds(&self.io) {
                return;
            }
            self.io.submit_and_wait(Some(PATIENCE / 1000)).unwrap();
            while self.io.next_completion().is_some() {}
        }
        panic!("{} buffers, {} resident", self.io.receive_buffers(), self.io.rings.all[0].buffers.resident());
    }
}

#[test]
fn buffers_of_a_burst_are_given_back_and_taken_again() {
    let Some(mut scene) = Scene::of(128, Duration::from_millis(200)) else { return };
    if !scene.io.rings.features.defer_taskrun {
        return;
    }
    let first = scene.io.receive_buffers();
    let mut peers: Vec<_> = (0..CROWD).map(|_| scene.connection()).collect();
    peers.iter().for_each(|(_, slot)| scene.io.receive(*slot));
    for round in 0..3 {
        // All at once, so that the kernel runs out.
        peers.iter_mut().for_each(|(peer, _)| peer.write_all(b"hello").unwrap());
        let most = scene.receive(CROWD);
        assert!(most > first, "round {round}: {most} buffers");
        scene.wait_until(|io| io.receive_buffers() == first && io.rings.burst == Burst::None);
        assert_eq!(scene.io.rings.all[0].buffers.resident(), 0, "round {round}");
        // A trickle does not touch all of them again, one by one.
        for _ in 0..6 {
            for (peer, _) in &mut peers {
                peer.write_all(b"hello").unwrap();
                scene.receive(1);
            }
        }
        let resident = scene.io.rings.all[0].buffers.resident();
        assert!(resident <= first, "round {round}: {resident} resident after a trickle");
    }
}

#[test]
fn an_accept_that_overtakes_the_linked_close_of_its_descriptor_ends_the_former_connection() {
    let Some(mut scene) = Scene::new() else { return };
    let (_peer, slot) = scene.connection();
    scene.send_last(slot);
    let generation = scene.io.connections.slots.get(slot).generation();
    // The accept's completion, then that of the close which made room for it.
    scene.io.completions.turn_left = 1;
    assert!(scene.io.dispatch(pack(Operation::Accept, 0, 0), slot as i32, 2).is_none());
    assert_eq!(scene.end_of(slot), 0);
    let accepted = scene.next();
    assert!(matches!(accepted, Completion::Accepted { slot: other, .. } if other == slot), "{accepted:?}");
    assert!(scene.io.dispatch(pack(Operation::Close, generation, slot), 0, 0).is_none());
    assert_eq!(scene.io.rings.all[0].accepted, 1);
}

#[test]
fn a_chain_that_was_divided_frees_nothing_the_kernel_still_reads() {
    let Some(mut scene) = Scene::new() else { return };
    let (mut peer, slot) = scene.connection();
    scene.send_last(slot);
    // The kernel stops behind the send, which waits for the peer.
    scene.io.rings.all[0].offer(1, 0, None).unwrap();
    assert_ne!(scene.end_of(slot), 0, "what was not sent is reported");
    scene.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
    let mut bytes = Vec::new();
    // The end, or a reset.
    let _ = peer.read_to_end(&mut bytes);
    assert!(bytes.len() < ANSWER_BYTES && bytes.iter().all(|byte| *byte == b'x'), "{} bytes", bytes.len());
    // The slot serves on.
    let (_peer, again) = scene.connection();
    assert_eq!(again, slot);
}

#[test]
fn a_divided_chain_whose_send_is_done_closes_as_a_whole_one() {
    let Some(mut scene) = Scene::new() else { return };
    let (mut peer, slot) = scene.connection();
    scene.send_last(slot);
    scene.io.rings.all[0].offer(1, 0, None).unwrap();
    let mut bytes = vec![0; ANSWER_BYTES];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(scene.end_of(slot), 0);
    scene.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
}

#[test]
fn a_listener_keeps_its_number_until_nothing_names_it() {
    let Some(mut scene) = Scene::new() else { return };
    let listener = listener();
    let place = format!("/proc/self/fd/{}", listener.as_raw_fd());
    let socket = std::fs::read_link(&place).unwrap();
    let number = scene.io.add_listener(listener).unwrap();
    // Neither the accept nor its cancel is handed over.
    scene.io.accept(number);
    scene.io.drop_listener(number);
    assert_eq!(std::fs::read_link(&place).unwrap(), socket);
    while scene.io.accepting.listeners[usize::from(number)].leaving.is_some() {
        scene.io.submit_and_wait(Some(PATIENCE)).unwrap();
        assert!(scene.io.next_completion().is_none());
    }
    assert_ne!(std::fs::read_link(&place).ok(), Some(socket));
}

/// A peer that takes an answer slowly is seen doing so up to its last bytes, whether the answer is short and
/// not the last one, or the rest of a long one with which the connection ends.
#[test]
fn progress_is_seen_up_to_the_last_bytes() {
    for (bytes, last) in [(ANSWER_BYTES, false), (8 * ANSWER_BYTES, true)] {
        let Some(mut scene) = Scene::new() else { return };
        let (mut peer, slot) = scene.connection();
        let mut outgoing = Box::<Outgoing>::default();
        outgoing.bytes().resize(bytes, b'x');
        scene.io.send(slot, outgoing, last);
        let reader = std::thread::spawn(move || peer.read_exact(&mut vec![0; bytes]).map(|()| peer));
        let mut seen = 0;
        loop {
            match scene.next() {
                Completion::Progress { bytes, .. } => seen += bytes as usize,
                Completion::Sent { errno: 0, .. } => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(reader.join().unwrap().is_ok());
        // What fits into the socket at once may go unseen at the end.
        assert!(seen + ANSWER_BYTES / 2 >= bytes, "{seen} of {bytes} bytes were seen being taken");
    }
}

/// A listener that stands for khttpd's device, and a connection as it is taken from there, with its peer.
fn handed(io: &mut Uring) -> (usize, OwnedFd, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let (connection, _) = listener.accept().unwrap();
    connection.set_nonblocking(true).unwrap();
    let number = usize::from(io.add_listener(listener.into()).unwrap());
    io.accepting.listeners[number].device = Some(Device::new());
    (number, connection.into(), peer)
}

#[test]
fn a_connection_that_was_handed_over_is_one_like_others() {
    let Some(mut scene) = Scene::new() else { return };
    let (device, connection, mut peer) = handed(&mut scene.io);
    let address = peer.local_addr().unwrap();
    let claims = scene.io.rings.all[0].claims;
    scene.io.accepting.take_in(&mut scene.io.rings, device, 0, 0, connection, Some(address));
    let slot = match scene.next() {
        Completion::Accepted { listener, slot } if usize::from(listener) == device => slot,
        other => panic!("{other:?}"),
    };
    assert_eq!(scene.io.peer_address(slot), Some(address));
    assert_eq!((scene.io.rings.all[0].claims, scene.io.rings.all[0].accepted), (claims, 1));
    peer.write_all(b"hello").unwrap();
    scene.io.receive(slot);
    scene.receive(1);
    scene.io.close(slot);
    assert!(matches!(scene.next(), Completion::Closed { .. }));
    scene.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap(), 0, "its normal descriptor keeps it");
}

#[test]
fn a_connection_that_cannot_be_placed_ends_and_is_told() {
    let Some(mut scene) = Scene::of(1, Duration::from_secs(10)) else { return };
    let (_peer, _slot) = scene.connection();
    // The table is full, which the listener has to say, too.
    assert!(matches!(scene.next(), Completion::AcceptStopped { listener: 0, .. }));
    let (device, connection, mut peer) = handed(&mut scene.io);
    scene.io.accepting.listeners[device].wanted = true;
    let claims = scene.io.rings.all[0].claims;
    scene.io.accepting.take_in(&mut scene.io.rings, device, 0, 0, connection, None);
    let stopped = scene.next();
    assert!(matches!(stopped, Completion::AcceptStopped { errno: libc::ENFILE, .. }), "{stopped:?}");
    assert_eq!(scene.io.rings.all[0].claims, claims);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}
