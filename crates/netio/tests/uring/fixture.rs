//! A backend and a peer of it: a test plays both the engine and the peers of a backend.
//!
//! Owns the sizes of the backend and what has happened; the harness of the conformance tests holds each event
//! against the contract. It must never wait for ever: a test that hangs fails after [`PATIENCE`].

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::time::Duration;

use staunch_netio::uring::{Limits, Uring, probe};
use staunch_netio::{Capacity, Io, Slot, Waker, socket};

pub(crate) use crate::conformance::harness::Event;
use crate::conformance::harness::Harness;

/// After this long without the completion it waits for, a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// After this long a burst is over.
const BURST: Duration = Duration::from_millis(20);

/// Sizes of a fixture.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) capacity: Capacity,
    pub(crate) ring_capacity: u32,
    pub(crate) buffers_max: u16,
    pub(crate) backlog: i32,
    /// Leave out all that is optional in io_uring, as on an old kernel.
    pub(crate) plain: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            capacity: Capacity::accepting(1024),
            ring_capacity: 1024,
            buffers_max: 256,
            backlog: 128,
            plain: false,
        }
    }
}

/// A backend whose engine and peers are played by a test.
pub(crate) struct Fixture {
    harness: Harness<Uring>,
    events: VecDeque<Event>,
}

impl Deref for Fixture {
    type Target = Harness<Uring>;

    fn deref(&self) -> &Harness<Uring> {
        &self.harness
    }
}

impl DerefMut for Fixture {
    fn deref_mut(&mut self) -> &mut Harness<Uring> {
        &mut self.harness
    }
}

impl Sizes {
    /// A backend of these sizes; `None` where io_uring may not be used.
    pub(crate) fn backend(self, listeners: Vec<OwnedFd>, waker: Waker) -> Option<Uring> {
        let mut features = match probe() {
            Ok(features) => features,
            Err(refusal) => {
                eprintln!("not tested: {refusal}");
                return None;
            }
        };
        if self.plain {
            features.submit_all = false;
            features.coop_taskrun = false;
            features.single_issuer = false;
            features.defer_taskrun = false;
            features.no_sqarray = false;
            features.fixed_fd_install = false;
            features.divided_tables = false;
            features.socket_options = false;
        }
        let limits =
            Limits { ring_capacity: self.ring_capacity, buffers_max: self.buffers_max, burst: BURST };
        Some(Uring::with_limits(listeners, waker, self.capacity, &features, limits).unwrap())
    }
}

impl Fixture {
    /// `None` where io_uring may not be used.
    pub(crate) fn new(sizes: Sizes) -> Option<Self> {
        let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), sizes.backlog).unwrap();
        let address = socket::local_address(&listener).unwrap();
        let waker = Waker::new().unwrap();
        let mut io = sizes.backend(vec![listener], waker.clone())?;
        io.accept(0);
        Some(Self { harness: Harness::around(io, waker, address), events: VecDeque::new() })
    }

    /// A fixture that connects.
    pub(crate) fn client(sizes: Sizes) -> Option<Self> {
        let waker = Waker::new().unwrap();
        let io = sizes.backend(Vec::new(), waker.clone())?;
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Some(Self { harness: Harness::around(io, waker, nowhere), events: VecDeque::new() })
    }

    /// A peer whose connection has not been accepted yet.
    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// A peer and its slot.
    pub(crate) fn connection(&mut self) -> (TcpStream, Slot) {
        let stream = self.connect();
        let Event::Accepted(slot) = self.wait(|event| matches!(event, Event::Accepted(_))) else {
            unreachable!()
        };
        (stream, slot)
    }

    /// A connection on which receiving is multishot and armed.
    pub(crate) fn receiving_connection(&mut self) -> (TcpStream, Slot) {
        let (mut stream, slot) = self.connection();
        self.io.receive(slot);
        stream.write_all(b"first").unwrap();
        assert_eq!(self.next(), Event::Received(slot, b"first".to_vec()));
        self.turns(2);
        (stream, slot)
    }

    /// Closes and waits for the end of the slot.
    pub(crate) fn close_and_wait(&mut self, slot: Slot) {
        self.close(slot);
        self.wait(|event| *event == Event::Closed(slot));
        // `Closed` may come before the descriptor is gone: that is handed over with the next turn.
        self.turns(1);
    }

    /// The next event but `Progress`.
    pub(crate) fn next(&mut self) -> Event {
        self.wait(|event| !matches!(event, Event::Progress(_)))
    }

    /// The first event the condition holds for. Those before it are dropped.
    pub(crate) fn wait(&mut self, mut condition: impl FnMut(&Event) -> bool) -> Event {
        loop {
            while let Some(event) = self.events.pop_front() {
                if condition(&event) {
                    return event;
                }
            }
            self.turn(Some(PATIENCE));
            assert!(!self.events.is_empty(), "nothing happened");
        }
    }

    /// Some turns that do not wait.
    pub(crate) fn turns(&mut self, count: u32) {
        for _ in 0..count {
            self.turn(Some(Duration::ZERO));
        }
    }

    /// All events that came by themselves within some time.
    pub(crate) fn events_within(&mut self, milliseconds: u64) -> Vec<Event> {
        self.turns(2);
        self.turn(Some(Duration::from_millis(milliseconds)));
        self.turns(2);
        self.events.drain(..).collect()
    }

    fn turn(&mut self, timeout: Option<Duration>) {
        // A wait may end without a completion: the kernel has worked something out that concerns nobody.
        for _ in 0..50 {
            self.io.submit_and_wait(timeout).unwrap();
            while let Some(event) = self.harness.poll() {
                self.events.push_back(event);
            }
            if !self.events.is_empty() || timeout.is_some_and(|timeout| timeout < PATIENCE) {
                return;
            }
        }
    }
}

/// A peer.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Closes a peer so that the other side sees a reset.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

/// Bytes that are easy to tell apart by their place.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position / 251 * 7 + position) as u8).collect()
}
